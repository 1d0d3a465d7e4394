"""Capacity in one line, kept up to date by what changes: what is there, what is free, who waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from slinkytui.backend.models import FleetNode, Job, Table
from slinkytui.kinds.states import job_state, node_state

_parts: dict[tuple[str, int], tuple[str, int]] = {}
"""Most jobs are alike: they share one value."""
_TAKES_JOBS: Final = ("idle", "mixed", "allocated")


class _NodeShare(NamedTuple):
    glyph: str
    gpus: int
    used: int | None
    free: int
    whole: int


class Tally:
    """`glyphs` counts nodes by the glyph of their state; GPU figures are None while a node's use is unknown.

    `free` counts devices on nodes that take jobs, `whole` such nodes with none in use. `oldest_wait` is the
    submit time (Unix seconds) of the longest waiting job that is not held.
    """

    def __init__(self) -> None:
        self.nodes: dict[Any, _NodeShare] = {}
        self.jobs: dict[Any, tuple[str, int]] = {}
        self.glyphs: Counter[str] = Counter()
        self.gpus = self.free = self.whole = self.running = self.pending = 0
        self._used = self._unknown = 0
        self._waits: dict[Any, int] = {}
        self._hole: tuple[str, int] | None = None
        self._hole_stale = False

    @property
    def used(self) -> int | None:
        return None if self._unknown else self._used

    @property
    def oldest_wait(self) -> int | None:
        return min(self._waits.values(), default=None)

    def largest_hole(self) -> tuple[str, int] | None:
        """The node that takes jobs with the most free devices, and how many; None when none is free."""
        if self._hole_stale:
            self._hole_stale = False
            best = max(self.nodes.items(), key=lambda pair: pair[1].free, default=None)
            self._hole = (best[0].name, best[1].free) if best is not None and best[1].free else None
        return self._hole

    def change(self, table: Table, ids: Iterable[Any], rows: Mapping[Any, Any]) -> None:
        """Take changed rows of a table into account."""
        if table == Table.NODES:
            self._hole_stale = True
            for row_id in ids:
                self._count_node(self.nodes.pop(row_id, None), -1)
                row = rows.get(row_id)
                if isinstance(row, FleetNode):
                    self.nodes[row_id] = share = _share(row)
                    self._count_node(share, 1)
        elif table == Table.JOBS:
            for row_id in ids:
                self._count_job(self.jobs.pop(row_id, None), -1)
                self._waits.pop(row_id, None)
                row = rows.get(row_id)
                if isinstance(row, Job):
                    state = job_state(row)
                    part = _parts.setdefault(part := (state.code, row.task_count or 1), part)
                    self.jobs[row_id] = part
                    self._count_job(part, 1)
                    if state.code == "PD" and not row.hold and row.submit_time:
                        self._waits[row_id] = int(row.submit_time)

    def _count_node(self, share: _NodeShare | None, by: int) -> None:
        if share is None:
            return
        self.glyphs[share.glyph] += by
        self.gpus += by * share.gpus
        self.free += by * share.free
        self.whole += by * share.whole
        if share.used is None:
            self._unknown += by
        else:
            self._used += by * share.used

    def _count_job(self, part: tuple[str, int] | None, by: int) -> None:
        if part is None:
            return
        if part[0] == "R":
            self.running += by
        elif part[0] == "PD":
            self.pending += by * part[1]


def _share(node: FleetNode) -> _NodeShare:
    state = node_state(node)
    total = node.gpus_total or 0
    if not total:
        return _NodeShare(state.glyph, 0, 0, 0, 0)
    if node.gpus_used is None:
        return _NodeShare(state.glyph, total, None, 0, 0)
    takes = state.word in _TAKES_JOBS
    return _NodeShare(
        state.glyph, total, node.gpus_used, total - node.gpus_used if takes else 0, int(takes and not node.gpus_used)
    )
