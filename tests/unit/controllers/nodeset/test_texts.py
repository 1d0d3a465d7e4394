"""What a drain says in Slurm: whose words come first, and that nothing in them harms a terminal or a log."""

from __future__ import annotations

import pytest

from slinkytui.backend.controllers.nodeset.causes import Cause
from slinkytui.backend.controllers.nodeset.reasons import clean, drain_reason
from slinkytui.backend.models import Condition, KubeNode
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import kube, pod

REASON = "nodeset.slinky.slurm.net/node-cordon-reason"
DEFAULT = "Node (n0) was cordoned, Pod (slurm/gpu-0) must be cordoned"
LEAVES = "Pod (slurm/gpu-0) is pending termination for scale-in"


CLEANED = [
    case("Z1", "empty", "", ""),
    case("Z2", "plain", "fan broken", "fan broken"),
    case("Z3", "trimmed", "  fan broken \t", "fan broken"),
    case("Z4", "a line feed is a blank", "fan\nbroken", "fan broken"),
    case("Z5", "carriage return and tab are two blanks", "fan\r\tbroken", "fan  broken"),
    case("Z6", "no second line can be forged", "ok\r\nState=IDLE\r\nReason=x", "ok  State=IDLE  Reason=x"),
    case("Z7", "NUL and BEL are dropped", "fan\x00 bro\x07ken", "fan broken"),
    case("Z8", "ESC is dropped, the rest of its sequence is harmless", "\x1b[31mred\x1b[0m", "[31mred[0m"),
    case("Z9", "characters of more than one byte stay", "Lüfter 风扇", "Lüfter 风扇"),
    case("Z10", "at most 256 characters", "x" * 306, "x" * 256),
    case("Z11", "cut between characters, not within", "ü" * 300, "ü" * 256),
    case("Z3 Z10", "trimmed again after the cut", "x" * 255 + "  y", "x" * 255),
    case("Z8", "marks that turn the direction of text are dropped", "a\u202eb\u2066c", "abc"),
]


@pytest.mark.parametrize(("text", "cleaned"), CLEANED)
def test_a_text_is_cleaned(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def sick(kind: str, reason: str, message: str, status: str = "True") -> Condition:
    return Condition(kind, status, reason, message)


def node(*conditions: Condition, reason: str | None = None) -> KubeNode:
    return kube("n0", cordoned=True, conditions=conditions, notes={} if reason is None else {REASON: reason})


GPU, NET = sick("GpuLost", "Xid79", "gpu fell off"), sick("NetDown", "Carrier", "no link")
BOTH = ("GpuLost", "NetDown")

REASONS = [
    case("N1", "a cordoned machine", [Cause.NODE], node(), (), DEFAULT),
    case("N2 N11 X16", "the annotation comes before conditions", [Cause.NODE], node(GPU, reason="fan broken"), BOTH, "fan broken"),
    case("N2", "a blank annotation says nothing", [Cause.NODE], node(reason=" \t"), (), DEFAULT),
    case("N7", "a propagated condition", [Cause.NODE], node(GPU), BOTH, "(Xid79: gpu fell off)"),
    case("N8", "two conditions in configured order", [Cause.NODE], node(NET, GPU), BOTH, "(Xid79: gpu fell off); (Carrier: no link)"),
    case("N9", "a condition that is false", [Cause.NODE], node(sick("GpuLost", "Fine", "", "False")), BOTH, DEFAULT),
    case("N9", "a condition that is unknown", [Cause.NODE], node(sick("GpuLost", "Lost", "", "Unknown")), BOTH, DEFAULT),
    case("N10", "a condition that is not configured", [Cause.NODE], node(GPU), ("NetDown",), DEFAULT),
    case("Z6", "texts of conditions are cleaned too", [Cause.NODE], node(sick("GpuLost", "X", "a\nb\x1b[1m")), BOTH, "(X: a b[1m)"),
    case("N3", "a person's mark", [Cause.USER], node(), (), "Pod (slurm/gpu-0) was cordoned"),
    case("K1", "a pod that leaves", [Cause.SCALE_IN], None, (), LEAVES),
    case("K1", "whatever it leaves for", [Cause.UPDATE, Cause.HOSTNAME], None, (), LEAVES),
    case("N1 K1", "the machine comes before what is planned with the pod", [Cause.SCALE_IN, Cause.NODE], node(), (), DEFAULT),
    case("N1", "a machine that cannot be seen", [Cause.NODE], None, BOTH, DEFAULT),
]  # fmt: skip


@pytest.mark.parametrize(("causes", "on", "propagated", "text"), REASONS)
def test_a_drain_says_why(causes: list[Cause], on: KubeNode | None, propagated: tuple[str, ...], text: str) -> None:
    assert drain_reason(pod(0), causes, on, propagated) == f"slurm-operator: {text}"
