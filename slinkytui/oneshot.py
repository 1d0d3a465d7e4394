"""An engine for one command, in the command's own loop, and what its sources say of a table."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import ConfigError, NotAllowed, NotFound, SlinkyError, Unreachable
from slinkytui.backend.models import Source, Table
from slinkytui.backend.options import Options
from slinkytui.backend.slurm.tokens import claims, clean
from slinkytui.kinds.text import span

SLURM_TABLES = (Table.NODES, Table.GPUS, Table.JOBS, Table.PARTITIONS, Table.RESERVATIONS)
_WORDS = {Table.KUBENODES: "nodes", Table.GPUS: "nodes", Table.OPERATORS: "leases"}
OURS = (Table.PROBLEMS, Table.JOURNAL, Table.SOURCES, Table.CLUSTERS, Table.DECISIONS)
"""Tables that this program makes itself: true whatever answers."""


@asynccontextmanager
async def settled_engine(
    options: Options, settle_s: float = 30.0, reads: Collection[Table] = frozenset(Table)
) -> AsyncIterator[Engine]:
    """An engine that reads these tables, and whose sources have answered or failed."""
    check_files(options)
    engine = Engine(options, reads=reads)
    try:
        await engine.start()
        try:
            await engine.settled(settle_s)
        except TimeoutError:
            raise Unreachable(_waited_for(engine), hint="slinkytui doctor shows more") from None
        yield engine
    finally:
        await engine.close()


def check_files(options: Options) -> None:
    """A file that was named and cannot be read is told at once, before any server is asked."""
    for flag, path in (("token", options.token_file), ("CA", options.ca_file)):
        if path:
            try:
                text = Path(path).read_bytes()
            except OSError as error:
                raise ConfigError(f"the {flag} file {path} cannot be read", detail=error.strerror or "") from error
            if not text.strip():
                raise ConfigError(f"the {flag} file {path} is empty")
    without_controller = [u for u in options.slurm if "=" not in u.partition("://")[0]]
    if without_controller and not options.token_file and not os.environ.get("SLURM_JWT"):
        raise ConfigError("no Slurm token", hint="--token-file FILE, or SLURM_JWT=$(scontrol token)")


def _waited_for(engine: Engine) -> str:
    held = [s for s in engine.facts.rows(Table.SOURCES).values() if isinstance(s, Source)]
    waiting = [s.name for s in held if s.state == "starting"]
    if engine.access is not None and not waiting:
        names = {s.name for s in held}
        waiting = [
            f"kubernetes/{r.plural} at {engine.access.server}"
            for r in engine.watched
            if f"kubernetes/{r.plural}" not in names
        ]
    waiting += [link.label for link in engine.clusters.links.values() if not link.tried.is_set()]
    return f"no answer in time from {', '.join(waiting[:3]) or 'the servers'}"


def sources_of(engine: Engine, table: Table) -> list[Source]:
    """The sources that a table's rows come from; of an unreachable Slurm cluster its one source."""
    slurm = table in SLURM_TABLES
    held = [s for s in engine.store.rows(Table.SOURCES).values() if isinstance(s, Source)]
    held = [s for s in held if s.name.startswith("slurm/" if slurm else "kubernetes/")]
    word = _WORDS.get(table, str(table))
    known = ("nodes", "jobs", "partitions", "reservations")
    return [s for s in held if s.name.endswith(f"/{word}") or (slurm and s.name.rpartition("/")[2] not in known)]


def trouble(source: Source) -> SlinkyError | None:
    """The error that a source without an answer is, or None."""
    # An optional resource that is refused counts as absent for the console; here its refusal is the answer.
    if source.state == "refused" or (source.state == "absent" and "not allowed" in source.error):
        return NotAllowed(f"{source.name} is refused", detail=source.error)
    if source.state == "absent":
        return NotFound(f"{source.name}: the server has no such resource", hint="slinkytui crds | kubectl apply -f -")
    if source.state != "live":
        return Unreachable(f"{source.name} has no answer", detail=source.error)
    return None


def token_end(options: Options, now: float) -> str:
    """That the given token has ended, or ""."""
    try:
        text = Path(options.token_file).read_text("utf-8") if options.token_file else os.environ.get("SLURM_JWT", "")
    except (OSError, UnicodeDecodeError) as error:
        return f"the token file cannot be read: {error}"
    end = claims(clean(text)).get("exp")
    return f"the token ended {span(now - end)} ago" if isinstance(end, int | float) and end < now else ""


def demand(engine: Engine, table: Table) -> None:
    """Raise when the source behind a table has no answer: an empty list would be a lie."""
    if table in OURS:
        return
    mine = sources_of(engine, table)
    if not mine and table in SLURM_TABLES:
        # Slurm is found through Kubernetes: what failed there is why there is none.
        for via in (Table.CONTROLLERS, Table.RESTAPIS):
            mine += [s for s in sources_of(engine, via) if s.state in ("refused", "stale")]
    for source in mine:
        error = trouble(source)
        if isinstance(error, NotAllowed) and table in SLURM_TABLES:
            error.hint = token_end(engine.options, engine.clock.now())
        if error is not None:
            raise error
    if not mine:
        slurm = table in SLURM_TABLES
        raise Unreachable(
            f"no source of {table}",
            detail="no Controller with a RestApi was found" if slurm and engine.access is not None else "",
            hint="--slurm URL --token-file FILE" if slurm else "--kubeconfig FILE",
        )
