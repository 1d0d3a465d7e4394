"""The order in which pods leave: the first differing key of nine decides, smaller goes first. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from slinkytui.backend.controllers.nodeset.causes import is_true
from slinkytui.backend.controllers.nodeset.identity import note, ordinal
from slinkytui.backend.controllers.nodeset.world import CORDON, COST, DEADLINE
from slinkytui.backend.models import Pod

_COST: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EARLIEST: Final = float("-inf")


def rank(pod: Pod) -> tuple[float, ...]:
    ready = ready_since(pod)
    return (
        1.0 if pod.node else 0.0,
        {"Unknown": 1.0, "Running": 2.0}.get(pod.phase, 0.0),
        0.0 if ready is None else 1.0,
        float(deletion_cost(note(pod, COST))),
        deadline(note(pod, DEADLINE)),
        0.0 if is_true(note(pod, CORDON)) else 1.0,
        -float(ordinal(pod.id.name)),
        -ready if ready else _EARLIEST,
        -float(pod.meta.created) if pod.meta.created else _EARLIEST,
    )


def ready_since(pod: Pod) -> float | None:
    """When it got ready, 0 when ready since a time that is not known; None while it is not ready."""
    found = next((c for c in pod.conditions if c.type == "Ready" and c.status == "True"), None)
    return None if found is None else float(found.since or 0)


def deletion_cost(text: str) -> int:
    """An int32; anything else, a leading plus or zeros is 0."""
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def deadline(text: str) -> float:
    """Unix seconds of an RFC 3339 text; absent or unreadable is the earliest, so that idle pods go before busy ones."""
    try:
        return datetime.fromisoformat(text).timestamp() if _RFC3339.fullmatch(text) else _EARLIEST
    except ValueError:
        return _EARLIEST
