"""The resource kinds: what the console lists and what `slinkytui get` prints, one description for both."""

from __future__ import annotations

from typing import Final

from slinkytui.kinds.base import Kind
from slinkytui.kinds.decisions import DECISIONS
from slinkytui.kinds.gpus import GPUS
from slinkytui.kinds.jobs import JOBS
from slinkytui.kinds.kubenodes import KUBENODES
from slinkytui.kinds.nodes import NODES
from slinkytui.kinds.nodesets import NODESETS
from slinkytui.kinds.others import EVENTS, JOURNAL, PARTITIONS, PROBLEMS, RESERVATIONS
from slinkytui.kinds.pods import PODS
from slinkytui.kinds.slinky import ACCOUNTINGS, CONTROLLERS, LOGINSETS, RESTAPIS, TOKENS

KINDS: Final[dict[str, Kind]] = {
    k.id: k
    for k in (
        NODESETS,
        NODES,
        GPUS,
        JOBS,
        PARTITIONS,
        RESERVATIONS,
        PODS,
        KUBENODES,
        EVENTS,
        CONTROLLERS,
        LOGINSETS,
        RESTAPIS,
        ACCOUNTINGS,
        TOKENS,
        PROBLEMS,
        JOURNAL,
        DECISIONS,
    )
}
"""By id, in the order of menus."""

_WORDS: Final = {word: k for k in KINDS.values() for word in (k.id, k.singular, *k.aliases)}


def find_kind(word: str) -> Kind | None:
    """A kind by its plural, singular or short name, in any case."""
    return _WORDS.get(word.lower())


__all__ = ["KINDS", "Kind", "find_kind"]
