"""The words that a drain says in Slurm. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from slinkytui.backend.controllers.nodeset.causes import Cause
from slinkytui.backend.controllers.nodeset.identity import value
from slinkytui.backend.controllers.nodeset.world import CORDON_REASON, PREFIX
from slinkytui.backend.models import KubeNode, Pod

_MOST: Final = 256
_ORDER: Final = (
    Cause.NODE,
    Cause.USER,
    Cause.DELETION,
    Cause.SCALE_IN,
    Cause.UPDATE,
    Cause.MODE,
    Cause.HOSTNAME,
    Cause.DUPLICATE,
    Cause.INELIGIBLE,
)
"""What a machine's owner says stands before what we plan with its worker."""


def drain_reason(pod: Pod, causes: Iterable[Cause], node: KubeNode | None, propagated: Sequence[str]) -> str:
    """The reason for these causes, with the operator's prefix. Every word of it is safe to send and to show."""
    held = set(causes)
    cause = next(c for c in _ORDER if c in held)
    match cause:
        case Cause.NODE:
            text = _node_reason(pod, node, propagated)
        case Cause.USER:
            text = f"Pod ({pod.id}) was cordoned"
        case _:
            # Upstream has one text for all of these; which cause it is stands on the pod.
            text = f"Pod ({pod.id}) is pending termination for scale-in"
    return PREFIX + (clean(text) or "unknown")


def _node_reason(pod: Pod, node: KubeNode | None, propagated: Sequence[str]) -> str:
    if node is not None:
        own = clean(value(node.meta.annotations, CORDON_REASON))
        if own:
            return own
        found = [
            f"({c.reason}: {c.message})" for kind in propagated for c in node.conditions
            if c.type == kind and c.status == "True"
        ]  # fmt: skip
        if found:
            return "; ".join(found)
    return f"Node ({pod.node}) was cordoned, Pod ({pod.id}) must be cordoned"


def clean(text: str) -> str:
    """One line without control characters, at most 256 characters."""
    spaced = "".join(" " if c in "\t\n\r" else c for c in text)
    return "".join(c for c in spaced if unicodedata.category(c)[0] != "C").strip()[:_MOST].strip()
