"""What Slurm says of a worker, on its pod: conditions, the protect label, the deadline of its jobs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from slinkytui.backend.models import Condition, Job, SlurmNode
from slinkytui.backend.slurm.states import holds_node, is_busy

TYPE: Final = "SlurmNodeState"
_BASE: Final = ("ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN")
_FLAGS: Final = ("COMPLETING", "DRAIN", "FAIL", "INVALID", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "UNDRAIN")
_FOREVER: Final = 292 * 365 * 86_400
"""Upstream's longest duration: a job without a limit never has to end."""
_LAST: Final = 253_402_300_799
"""The last second that RFC 3339 has room for."""


def wanted_conditions(node: SlurmNode | None) -> tuple[tuple[str, str], ...]:
    """Type and message of each condition that is true now; at most one of them is a base state."""
    if node is None:
        return ()
    base = next((s for s in _BASE if s in node.states), None)
    states = [*([base] if base else []), *(s for s in _FLAGS if s in node.states)]
    return tuple((TYPE + "".join(w.capitalize() for w in s.split("_")), node.reason) for s in states)


def difference(
    held: Sequence[Condition], wanted: Sequence[tuple[str, str]]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """What has to be set, and which types of ours have to go."""
    there = {c.type: c for c in held}
    put = tuple((t, m) for t, m in wanted if t not in there or there[t].status != "True" or there[t].message != m)
    names = {t for t, _ in wanted}
    return put, tuple(sorted(t for t in there if t.startswith(TYPE) and t not in names))


def is_occupied(node: SlurmNode, jobs: Sequence[Job]) -> bool:
    """Whether evicting the worker would end work; suspended jobs leave their node idle and count all the same."""
    return is_busy(node.states) or any(holds_node(j.states) for j in jobs)


def deadline_of(jobs: Sequence[Job]) -> str:
    """When the last job on a node has to end, as RFC 3339; "" without one."""
    ends = [
        j.start_time + (_FOREVER if j.time_limit_min is None else min(j.time_limit_min * 60, _FOREVER))
        for j in jobs if holds_node(j.states) and j.start_time
    ]  # fmt: skip
    if not ends:
        return ""
    return datetime.fromtimestamp(min(max(ends), _LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
