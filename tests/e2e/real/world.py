"""An engine on real servers with a reader on it, and waiting for what shall become true."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from slinkytui.backend.engine import Engine
from slinkytui.backend.feed import MemoryPipe
from slinkytui.backend.models import FleetNode, Source, Table
from slinkytui.backend.options import Options
from slinkytui.backend.reader import Reader
from tests.lab.slurm import SlurmLab


@dataclass(frozen=True)
class Real:
    """`options` and `argv` are the same cluster for an engine and for a command."""

    lab: SlurmLab
    folder: Path

    @property
    def options(self) -> Options:
        return Options(
            slurm=(self.lab.url,), token_file=str(self.folder / "token"), journal=str(self.folder / "journal.jsonl"),
            actor="tester",
        )  # fmt: skip

    @property
    def argv(self) -> list[str]:
        return ["--slurm", self.lab.url, "--token-file", str(self.folder / "token")]


@asynccontextmanager
async def reading(options: Options, *tables: Table) -> AsyncIterator[tuple[Engine, Reader]]:
    """An engine and a reader of these tables, over the feed."""
    engine = Engine(options)
    await engine.start()
    ours, theirs = MemoryPipe.pair()
    serving = asyncio.create_task(engine.serve(theirs))
    reader = Reader(ours)
    try:
        await reader.start()
        await reader.subscribe(Table.SOURCES, *tables)
        yield engine, reader
    finally:
        await reader.close()
        await asyncio.wait_for(serving, 10)
        await engine.close()


async def until(done: Callable[[], object], what: str, seconds: float = 40.0) -> None:
    """Wait for a condition, with an end; the error names what was waited for."""
    try:
        async with asyncio.timeout(seconds):
            while not done():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {seconds:.0f} s") from None


def source(reader: Reader, end: str) -> Source:
    """The source whose name ends so; one that is not there yet is starting."""
    found = [s for s in reader.rows(Table.SOURCES).values() if isinstance(s, Source) and s.name.endswith(end)]
    return found[0] if found else Source(end, "starting")


def nodes(reader: Reader) -> dict[str, FleetNode]:
    return {n.id.name: n for n in reader.rows(Table.NODES).values() if isinstance(n, FleetNode)}
