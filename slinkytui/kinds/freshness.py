"""Where the rows of a table come from, and how fresh that is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinkytui.backend.models import Source, Table

_SLURM: Final = (Table.NODES, Table.GPUS, Table.JOBS, Table.PARTITIONS, Table.RESERVATIONS)
_WORDS: Final = {Table.KUBENODES: "nodes", Table.GPUS: "nodes", Table.OPERATORS: "leases"}
_OURS: Final = (Table.PROBLEMS, Table.CLUSTERS, Table.SOURCES, Table.JOURNAL, Table.DECISIONS)


def sources_of(table: Table, sources: Iterable[Source]) -> list[Source]:
    """The sources behind a table; none for what we make ourselves.

    A Slurm table falls back to every Slurm source: a cluster that was never reached has no better one.
    """
    if table in _OURS:
        return []
    slurm = table in _SLURM
    mine = [s for s in sources if s.name.startswith("slurm/" if slurm else "kubernetes/")]
    word = _WORDS.get(table, str(table))
    return [s for s in mine if s.name.endswith(f"/{word}")] or (mine if slurm else [])


def known(table: Table, sources: Iterable[Source]) -> bool:
    """Whether any source of a table has ever answered: before that no row is not the same as none."""
    mine = sources_of(table, list(sources))
    return any(s.last_success is not None for s in mine) if mine else table in _OURS


def worst(sources: Iterable[Source]) -> Source | None:
    """The source that has been quiet for longest, or None while all answer."""
    bad = [s for s in sources if s.state in ("stale", "refused")]
    return min(bad, key=lambda s: s.last_success or 0, default=None)
