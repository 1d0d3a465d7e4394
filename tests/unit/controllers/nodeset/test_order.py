"""Who leaves first."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.causes import Cause, Record, Why
from slinkytui.backend.controllers.nodeset.choice import Choice
from slinkytui.backend.controllers.nodeset.choose import choose, scale_in_order
from slinkytui.backend.controllers.nodeset.order import deadline, deletion_cost, rank
from slinkytui.backend.controllers.nodeset.world import CORDON, DEADLINE
from slinkytui.backend.models import Pod
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import NOW, pod, world

OLD, AN_HOUR_AGO = NOW - 90_000, NOW - 3_600
PAST, PRESENT, LATER = "2027-01-15T07:00:00Z", "2027-01-15T08:00:00Z", "2027-01-15T09:00:00Z"


def one(name: str, *, ordinal: int = 0, ends: str = "", **more: Any) -> Pod:
    """A pod of this name and ordinal, idle unless `ends` says until when it is busy."""
    more.setdefault("ready_since", AN_HOUR_AGO)
    more.setdefault("created", OLD)
    return pod(f"{name}-{ordinal}", notes={DEADLINE: ends} if ends else None, **more)


CHAINS = [
    case("O1", "every key in its turn", [
        one("unscheduled", node=""),
        one("pending", phase="Pending", ready=False),
        one("unknown", phase="Unknown", ready=False),
        one("unready", ready=False),
        one("cordoned", cordon=True),
        one("second", ordinal=1),
        one("ready-at-some-time", ready_since=0),
        one("ready-now", ready_since=NOW),
        one("ready-long", created=OLD + 60),
        one("oldest"),
        one("busy", ends=LATER),
        one("dear", cost="1"),
    ]),
    case("O2", "highest ordinal first", [one("a", ordinal=at) for at in (11, 10, 2, 1, 0)]),
    case("O2", "a name without a number is last", [one("a", ordinal=0), pod("x", created=OLD, ready_since=AN_HOUR_AGO)]),
    case("O3", "cordoned before plain", [one("a", cordon=True), one("a", ordinal=1)]),
    case("O4 X27", "equally cordoned, the higher ordinal", [one("a", ordinal=1, cordon=True), one("a", cordon=True)]),
    case("O5 X2", "idle, then as their jobs end", [one("a"), one("b", ends=PAST), one("c", ends=PRESENT), one("d", ends=LATER)]),
    case("O6", "cheap first", [one("a", cost="-10"), one("a"), one("a", cost="10")]),
    case("O7", "keys mixed", [
        one("cheap", cost="-10"),
        one("cordoned", cordon=True),
        one("second", ordinal=1),
        one("first"),
        one("cordoned-busy", cordon=True, ends=PRESENT),
        one("busy", ends=PRESENT),
        one("cordoned-longer", cordon=True, ends=LATER),
        one("longer", ends=LATER),
        one("dear", cost="1"),
        one("dearest", cost="100", cordon=True, ends=PAST),
    ]),
    case("O8", "ready for an unknown time counts as just now", [one("a", ready_since=0), one("b", ready_since=NOW)]),
    case("O8", "later ready first", [one("a", ready_since=NOW - 5), one("b", ready_since=NOW - 6)]),
    case("O8", "created at an unknown time counts as just now", [one("a", created=0), one("b", created=NOW)]),
    case("W38", "every spelling of true ranks alike", [
        *(pod(f"a-{9 - at}", notes={CORDON: text}, created=OLD, ready_since=AN_HOUR_AGO) for at, text in enumerate(["True", "1", "t", "true"])),
        one("a", ordinal=99),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
def test_the_order_is_strict_however_the_pods_come(chain: list[Pod]) -> None:
    names = [p.id.name for p in chain]
    for seed in range(20):
        mixed = random.Random(seed).sample(chain, len(chain))
        assert [p.id.name for p in sorted(mixed, key=rank)] == names
    for at, first in enumerate(chain):
        for second in chain[at + 1 :]:
            assert rank(first) < rank(second), f"{first.id.name} and {second.id.name}"


ALIKE = [
    case("O8", "both times unknown", one("a", ready_since=0), one("b", ready_since=0)),
    case("O8", "the same time", one("a"), one("b")),
    case("O5", "a deadline that cannot be read is none", one("a"), one("b", ends="tomorrow")),
    case("O6", "a cost that cannot be read is none", one("a"), one("b", cost="+5")),
    case("O1", "nothing is known of either", one("a", node="", phase="Pending", ready=False), one("b", node="", phase="Failed", ready=False)),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_nothing_tells_these_apart(first: Pod, second: Pod) -> None:
    assert rank(first) == rank(second)


@pytest.mark.parametrize(
    ("text", "cost"),
    [("", 0), ("0", 0), ("-0", 0), ("7", 7), ("-10", -10), ("+5", 0), ("007", 0), ("1_2", 0), ("2147483647", 2147483647),
     ("2147483648", 0), ("-2147483648", -2147483648), ("a", 0), (" 1", 0)],
)  # fmt: skip
def test_costs_are_read_strictly(text: str, cost: int) -> None:
    assert deletion_cost(text) == cost


@pytest.mark.parametrize(
    ("text", "at"),
    [("", None), ("2027-01-15T08:00:00Z", NOW), ("2027-01-15T09:00:00+01:00", NOW), ("2027-01-15", None), ("2027-13-15T08:00:00Z", None)],
)  # fmt: skip
def test_deadlines_are_read_strictly(text: str, at: float | None) -> None:
    assert deadline(text) == (float("-inf") if at is None else at)


def chosen(choice: Choice, pods: Sequence[Pod]) -> list[str]:
    return [p.id.name for p in pods if choice.leaves(p)]


TWO = (pod(0), pod(1))
SPLIT = [
    case("O9", "none of none", (), 0, []),
    case("O9", "none of two", TWO, 2, []),
    case("O9", "one of two", TWO, 1, ["gpu-1"]),
    case("O9", "two of two", TWO, 0, ["gpu-0", "gpu-1"]),
    case("O9", "more wanted than there are", TWO, 5, []),
]


@pytest.mark.parametrize(("pods", "replicas", "names"), SPLIT)
def test_the_surplus_leaves_and_the_rest_stays(pods: tuple[Pod, ...], replicas: int, names: list[str]) -> None:
    found = world(*pods, replicas=replicas)
    choice = choose(found, {p.meta.uid: Record() for p in pods}, NOW)
    assert chosen(choice, pods) == names


STAY = [
    case("O10", "nobody was chosen", {}, ["gpu-2", "gpu-1", "gpu-0"]),
    case("O10 W15", "who was chosen before comes first", {"uid-gpu-0": Cause.SCALE_IN}, ["gpu-0", "gpu-2", "gpu-1"]),
    case("O10", "all were chosen", {f"uid-gpu-{at}": Cause.SCALE_IN for at in range(3)}, ["gpu-2", "gpu-1", "gpu-0"]),
    case("O10", "a pod that is not here was chosen", {"uid-other": Cause.SCALE_IN}, ["gpu-2", "gpu-1", "gpu-0"]),
    case("W15", "who leaves for an update counts first", {"uid-gpu-1": Cause.UPDATE}, ["gpu-1", "gpu-2", "gpu-0"]),
    case("W15", "a cordon chooses nobody", {"uid-gpu-0": Cause.NODE, "uid-gpu-1": Cause.USER}, ["gpu-2", "gpu-1", "gpu-0"]),
]  # fmt: skip


@pytest.mark.parametrize(("causes", "names"), STAY)
def test_who_was_chosen_stays_chosen(causes: dict[str, Cause], names: list[str]) -> None:
    pods = [pod(at) for at in range(3)]
    records = {p.meta.uid: Record() for p in pods} | {uid: Record({c: Why(NOW - 5)}) for uid, c in causes.items()}
    assert [p.id.name for p in scale_in_order(pods, records)] == names
