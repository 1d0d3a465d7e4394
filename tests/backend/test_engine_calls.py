"""An engine over the simulator's servers: rights before verbs, another namespace or context, the journal as rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import ConfigError
from slinkytui.backend.feed import MemoryPipe
from slinkytui.backend.models import Ask, JournalEntry, Plan, StepResult, Table
from slinkytui.backend.options import Options
from slinkytui.backend.reader import Reader


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    found = Engine(Options(sim="small", journal=str(tmp_path / "journal.jsonl"), actor="tester"))
    await found.start()
    await found.settled()
    yield found
    await found.close()


async def reader_of(engine: Engine) -> Reader:
    ours, theirs = MemoryPipe.pair()
    engine.test_task = asyncio.create_task(engine.serve(theirs))  # type: ignore[attr-defined]
    reader = Reader(ours)
    await reader.start()
    return reader


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not done():
            await asyncio.sleep(0.02)


async def test_rights_come_with_reasons(engine: Engine) -> None:
    reader = await reader_of(engine)
    found = await reader.rights("sim_small", "slurm")
    assert found == dict.fromkeys(
        ("node.drain", "node.undrain", "job.cancel", "job.hold", "job.release", "nodeset.scale"), ""
    )
    away = await reader.rights("elsewhere", "")
    assert away["node.drain"] == "slurmrestd of elsewhere is not reached"
    assert "nodeset.scale" not in away
    engine.rights._read_only = True
    assert set((await reader.rights("sim_small", "slurm")).values()) == {"started with --read-only"}
    await reader.close()


async def test_another_namespace_and_back(engine: Engine) -> None:
    reader, other = await reader_of(engine), await reader_of(engine)
    await reader.subscribe(Table.NODESETS, Table.PODS, Table.NODES)
    await reader.loaded(Table.NODESETS)
    assert len(reader.rows(Table.NODESETS)) == 3
    hello = await reader.switch(namespace="kube-system")
    assert hello.namespace == "kube-system"
    await until(lambda: not reader.rows(Table.NODESETS) and not reader.rows(Table.PODS))
    await until(lambda: other.hello is not None and other.hello.namespace == "kube-system")
    await reader.switch(namespace="")
    await until(lambda: len(reader.rows(Table.NODESETS)) == 3 and len(reader.rows(Table.NODES)) == 16)
    await reader.close()
    await other.close()


async def test_a_context_that_is_not_there_changes_nothing(engine: Engine) -> None:
    reader = await reader_of(engine)
    await reader.subscribe(Table.NODESETS)
    await reader.loaded(Table.NODESETS)
    context = engine.access.context if engine.access else ""
    with pytest.raises(ConfigError, match="no context"):
        await engine.switch(context + "x", None)
    assert engine.options.namespace == ""
    assert len(reader.rows(Table.NODESETS)) == 3
    await reader.close()


async def test_what_was_done_stands_in_the_journal(engine: Engine) -> None:
    reader = await reader_of(engine)
    await reader.subscribe(Table.JOURNAL)
    plan: Plan = await reader.plan(Ask("node.drain", ("cpu-0",), reason="test"))
    told: list[StepResult] = []
    await reader.run(plan, told.append)
    await until(lambda: len(reader.rows(Table.JOURNAL)) == 1)
    entry = next(iter(reader.rows(Table.JOURNAL).values()))
    assert isinstance(entry, JournalEntry)
    assert (entry.who, entry.verb, entry.target, entry.ok, entry.reason) == (
        "tester",
        "node.drain",
        "cpu-0",
        True,
        "test",
    )
    undo = plan.undo()
    assert undo is not None
    assert (undo.verb, undo.targets) == ("node.undrain", ("cpu-0",))
    await reader.close()
