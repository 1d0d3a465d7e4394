"""Why a worker is drained, recorded on its pod. A cause is withdrawn by whoever set it; a person's is never ours. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isfinite
from typing import Final

from slinkytui.backend.controllers.nodeset.identity import note
from slinkytui.backend.controllers.nodeset.world import CAUSES, CORDON, PREFIX
from slinkytui.backend.models import Pod, SlurmNode
from slinkytui.backend.slurm.states import is_drain

_TRUE: Final = frozenset({"1", "t", "T", "true", "True", "TRUE"})
_TWIN: Final = r"Pod \({}/\S+\) is pending termination for scale-in"
CHOSEN_S: Final = 60.0
"""How long pods that a plan has chosen wait for the smaller size that the plan goes on to set."""


class Cause(StrEnum):
    USER = "user"
    """A person set the cordon annotation."""
    NODE = "node-cordon"
    SCALE_IN = "scale-in"
    UPDATE = "update"
    MODE = "mode"
    HOSTNAME = "hostname"
    DUPLICATE = "duplicate"
    INELIGIBLE = "ineligible"
    """Its Kubernetes node no longer takes pods of this NodeSet."""
    DELETION = "nodeset-deletion"


LEAVING: Final = frozenset(Cause) - {Cause.USER, Cause.NODE}
"""Causes that end with the pod's deletion."""


@dataclass(frozen=True, slots=True)
class Why:
    """One cause: since when (Unix seconds), and the hash of the plan that chose the pod, if one did."""

    since: float
    plan: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What we noted on a pod: the causes, whether the cordon annotation is ours, whether the drain in Slurm is.

    `foreign`: somebody else had drained the node when it was chosen, so that withdrawing our causes lifts nothing.
    """

    causes: Mapping[Cause, Why] = field(default_factory=dict)
    cordon: bool = False
    drain: bool = False
    foreign: bool = False

    def text(self) -> str:
        """As it stands in the annotation; "" for an empty record."""
        if not self.causes and not self.drain and not self.cordon:
            return ""
        causes = {
            c.value: {"since": round(w.since), **({"plan": w.plan} if w.plan else {})}
            for c, w in sorted(self.causes.items())
        }
        flags = {n: True for n in ("cordon", "drain", "foreign") if getattr(self, n)}
        return json.dumps({"causes": causes, **flags}, separators=(",", ":"), sort_keys=True)


def is_true(text: str) -> bool:
    """The one reading of a boolean annotation, for ranking and for draining alike."""
    return text in _TRUE


def read_record(pod: Pod) -> Record | None:
    """The record of a pod; None without one, or when it cannot be read (then nothing of it counts as ours)."""
    text = note(pod, CAUSES)
    if not text:
        return None
    try:
        found = json.loads(text)
        known = {Cause(c): Why(float(w["since"]), str(w.get("plan") or "")) for c, w in found["causes"].items()}
        if not all(isfinite(w.since) for w in known.values()):
            return None
        return Record(known, *(found.get(n) is True for n in ("cordon", "drain", "foreign")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def is_ours(reason: str) -> bool:
    return reason.startswith(PREFIX)


def is_our_drain(node: SlurmNode, record: Record) -> bool:
    """Whether the drain of a node is ours to lift: our note says that we set it, and nobody has said otherwise since."""
    return record.drain and not record.foreign and (not node.reason or is_ours(node.reason))


def adopt(pod: Pod, node: SlurmNode | None, cordoned_node: bool, now: float) -> Record:
    """The record of a pod that has none, from what upstream's operator leaves behind: the annotation, the drain's
    prefix and its known texts. What cannot be told apart counts as a person's."""
    marked = is_true(note(pod, CORDON))
    drained = node is not None and is_drain(node.states)
    ours = drained and node is not None and is_ours(node.reason)
    if not marked:
        return Record(drain=ours and node is not None and _is_leftover(pod, node))
    since = float(node.reason_time or now) if ours and node is not None else now
    reason = node.reason if ours and node is not None else ""
    if "is pending termination for scale-in" in reason:
        return Record({Cause.SCALE_IN: Why(since)}, cordon=True, drain=True)
    if cordoned_node and (not ours or " was cordoned" not in reason or reason.startswith(f"{PREFIX}Node (")):
        return Record({Cause.NODE: Why(since)}, cordon=True, drain=ours)
    if reason.startswith(f"{PREFIX}Node ("):
        # The node was cordoned and is no more: upstream lifts that itself.
        return Record({}, cordon=True, drain=True)
    return Record({Cause.USER: Why(since)}, drain=ours)


def is_older(node: SlurmNode, pod: Pod) -> bool:
    """Whether what a node's reason says was said before this pod was made. Both times are whole seconds: a predecessor
    that goes and its successor often share one, while no pod starts, registers and is spoken of within its first."""
    return pod.meta.created is not None and node.reason_time is not None and node.reason_time <= pod.meta.created


def _is_leftover(pod: Pod, node: SlurmNode) -> bool:
    """Whether a drain with the operator's prefix, on a pod without any mark, is one that an operator left behind: it is
    older than the pod, or says what only an operator says. Anything else may be a person's, whatever its prefix."""
    if is_older(node, pod):
        return True
    text = node.reason.removeprefix(PREFIX)
    known = (f"Pod ({pod.id}) ", "Pod is terminating", f"Node ({pod.node}) was cordoned")
    # A second worker on the same machine drains the node of both, and names itself.
    return text.startswith(known) or re.fullmatch(_TWIN.format(re.escape(pod.id.namespace)), text) is not None


def merge(old: Record, wanted: Mapping[Cause, str], now: float) -> Record:
    """The old record with exactly the wanted causes (each with its plan, or ""); those that stay keep their time."""
    kept = {c: old.causes.get(c, Why(now, plan)) for c, plan in wanted.items()}
    return replace(old, causes=kept)
