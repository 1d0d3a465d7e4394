"""An engine for one command, in the command's own loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import NotAllowed, Unreachable
from slinkytui.backend.models import Source, Table
from slinkytui.backend.options import Options


@asynccontextmanager
async def settled_engine(options: Options) -> AsyncIterator[Engine]:
    """An engine whose sources have all answered or failed."""
    engine = Engine(options)
    await engine.start()
    try:
        try:
            await engine.settled()
        except TimeoutError:
            raise Unreachable(
                "the servers take too long to answer", hint="slinkytui with the same options shows which"
            ) from None
        yield engine
    finally:
        await engine.close()


def demand(engine: Engine, table: Table) -> None:
    """Raise when the source behind a table has no answer: an empty list would be a lie."""
    if table == Table.PROBLEMS:
        return
    slurm = table in (Table.NODES, Table.GPUS, Table.JOBS, Table.PARTITIONS, Table.RESERVATIONS)
    prefix = "slurm/" if slurm else "kubernetes/"
    word = {Table.KUBENODES: "nodes", Table.GPUS: "nodes"}.get(table, str(table))
    sources = [
        s for s in engine.store.rows(Table.SOURCES).values() if isinstance(s, Source) and s.name.startswith(prefix)
    ]
    mine = [s for s in sources if s.name.endswith(f"/{word}")] or [s for s in sources if slurm]
    for source in mine:
        if source.state == "refused":
            raise NotAllowed(f"{source.name} is refused", detail=source.error)
        if source.state == "stale":
            raise Unreachable(f"{source.name} has no answer", detail=source.error)
    if not mine:
        hint = "--slurm URL --token-file FILE" if slurm else "--kubeconfig FILE"
        raise Unreachable(f"no source of {table}", hint=hint)
