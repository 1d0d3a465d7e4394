"""Which node an ordinal is pinned to: the one where it ran first, until that is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import PatchStatus
from slinkytui.backend.controllers.nodeset.pins import held_pins
from slinkytui.backend.controllers.nodeset.status import status_patch
from slinkytui.backend.controllers.nodeset.world import World
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import NOW, kube, pod, world

PIN: dict[str, Any] = {"pin": True}


def pinned(*pods: Any, at: dict[str, str] | None = None, **more: Any) -> World:
    """A NodeSet whose status pins ordinals."""
    spec = {**PIN, **more.pop("spec", {})}
    return world(*pods, spec=spec, status={"ordinalToNode": at} if at else {}, **more)


def pins(found: World) -> Any:
    return next(e.status for e in decide(found, NOW).effects if isinstance(e, PatchStatus)).get("ordinalToNode")


N1 = [kube("n1")]
ROWS = [
    case("W37 T10 X35", "where it runs", pinned(pod(0, node="n1"), pod(1, node="n2")), {"0": "n1", "1": "n2"}),
    case("W37 T10", "not before it runs", pinned(pod(0, node="n1", phase="Pending", ready=False)), {}),
    case("W37", "its node is cordoned", pinned(at={"0": "n1"}, nodes=[kube("n1", cordoned=True)], replicas=1), {"0": "n1"}),
    case("W37", "its node is not ready",
         pinned(at={"0": "n1"}, nodes=[kube("n1", taints=("node.kubernetes.io/not-ready:NoExecute",))], replicas=1), {"0": "n1"}),
    case("W37", "its node has a taint", pinned(at={"0": "n1"}, nodes=[kube("n1", taints=("x=y:NoSchedule",))], replicas=1), {"0": "n1"}),
    case("W37 T10", "its node no longer fits",
         pinned(at={"0": "n1"}, nodes=N1, replicas=1, spec={"node_selector": {"gpu": "yes"}}), {"0": "n1"}),
    case("W37 T10", "its node is gone", pinned(at={"0": "n0", "1": "n1"}, nodes=N1, replicas=2), {"1": "n1"}),
    case("W37", "no node can be seen", pinned(at={"0": "n0"}, replicas=1), {"0": "n0"}),
    case("W37 T10", "it runs elsewhere for now", pinned(pod(0, node="n2"), at={"0": "n1"}, nodes=N1), {"0": "n1"}),
    case("W37", "beyond the replicas", pinned(at={"7": "n1"}, nodes=N1, replicas=1), {"7": "n1"}),
    case("T10", "nobody pins", world(pod(0), status={"ordinalToNode": {"0": "n0"}}), None),
    case("T10", "daemons", pinned(pod("a", mode="DaemonSet", node="n1", host="n1"), spec={"mode": "DaemonSet"}), None),
]  # fmt: skip


@pytest.mark.parametrize(("found", "expected"), ROWS)
def test_the_pins_of_a_status(found: World, expected: dict[str, str] | None) -> None:
    assert pins(found) == expected


def test_pins_that_make_no_sense_are_dropped() -> None:
    found = replace(world(nodes=N1), status={"ordinalToNode": {"x": "n1", "1": "n1"}})
    assert held_pins(found) == {"1": "n1"}
    assert held_pins(replace(found, status={"ordinalToNode": "n1"})) == {}


def test_what_a_status_no_longer_says_is_taken_away_by_name() -> None:
    old = {"replicas": 1, "ordinalToNode": {"0": "n0", "1": "n1"}, "gone": 1}
    new = {"replicas": 2, "ordinalToNode": {"1": "n1"}}
    assert status_patch(old, new) == {"replicas": 2, "ordinalToNode": {"0": None, "1": "n1"}, "gone": None}
    assert status_patch(old, {**old}) == old
