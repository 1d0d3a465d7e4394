"""Scaling: workers that are made, that leave, and that are not what they were asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import PatchStatus, Tell
from slinkytui.backend.controllers.nodeset.world import DEADLINE, World
from slinkytui.backend.models import NodeId
from tests.rules import case, holds
from tests.unit.controllers.nodeset.test_decide import SCALE_IN, chosen
from tests.unit.controllers.nodeset.worlds import NOW, did, job, pod, record, slurm, world


def leaves(*ats: int) -> list[str]:
    return [f"mark gpu-{at} causes=…,pod-cordon=true" for at in ats] + [
        f"drain gpu-{at}: {SCALE_IN.format(at)}" for at in ats
    ]


DRAINED = tuple(record(at, "IDLE", "DRAIN", reason=SCALE_IN.format(at)) for at in range(3))
ON_N0 = msgspec.structs.replace(record("x", "IDLE", "DRAIN", reason="bad gpu", comment=""), id=NodeId("c", "n0"))
DAEMON: dict[str, Any] = {"mode": "DaemonSet", "pinned": "n0", "host": "n0"}
GOING = {"nodeset.slinky.slurm.net/pod-protect": "true"}

CASES = [
    case("P1 S10", "none to two", world(replicas=2), ["create 0", "create 1"]),
    case("P2 P6 P9", "as many as wanted", world(pod(0), pod(1)), []),
    case("P3 K1 X22", "three to one, idle: they drain first", world(pod(0), pod(1), pod(2), replicas=1), leaves(1, 2)),
    case("P3 K3 X22", "then they go", world(pod(0), chosen(1, "scale-in"), chosen(2, "scale-in"), replicas=1, slurm_side=slurm(record(0), *DRAINED[1:])),
        ["delete gpu-1", "delete gpu-2"]),
    case("P4", "without its Controller none is made", world(replicas=2, refused="the Controller slurm/c is not there"), []),
    case("P5", "nothing wanted, nothing there", world(replicas=0), []),
    case("P7", "one of the other mode goes", world(pod("x", **DAEMON), replicas=1, slurm_side=slurm(ON_N0)),
        ["create 0", "mark gpu-x causes=…,pod-cordon=true", "delete gpu-x"]),
    case("P8", "Slurm cannot be asked: nobody goes", world(pod(0), chosen(1, "scale-in"), replicas=1, slurm_side=slurm(record(0), DRAINED[1], why="timeout")), []),
    case("P10 P11", "what has ended goes", world(pod(0, phase="Failed", ready=False), pod(1, phase="Succeeded", ready=False)), ["delete gpu-0", "delete gpu-1"]),
    case("P12", "what has failed and terminates is left", world(pod(0, phase="Failed", ready=False, deleted=True), replicas=1), []),
    case("P13", "a pending one is waited for", world(pod(0, phase="Pending", ready=False, node="", started=False), slurm_side=slurm()), []),
    case("P1 W30", "the place of one in its back-off is kept", world(replicas=2, backoff={"0": NOW + 8}), ["create 1"]),
    case("P1 W34", "the place of one whose name is held is kept", world(replicas=2, taken={"gpu-0": "cpu-0"}), ["create 1"]),
    case("W30", "its time has come", world(replicas=1, backoff={"0": NOW - 1}), ["create 0"]),
    case("K2 W23 X24", "unknown to Slurm once", world(chosen(0, "scale-in"), replicas=0, slurm_side=slurm(record(9), absent={"gpu-0": NOW - 1})), []),
    case("K2 W23 X24", "unknown to Slurm for certain", world(chosen(0, "scale-in"), replicas=0, slurm_side=slurm(record(9), absent={"gpu-0": NOW - 9})), ["delete gpu-0"]),
    case("K4 W25", "a terminating one is left alone", world(chosen(0, "scale-in", deleted=True), replicas=0, slurm_side=slurm(DRAINED[0])), []),
    case("K5", "a busy one drains and stays", world(pod(0, labels=GOING), replicas=0, slurm_side=slurm(record(0, "ALLOCATED"))), leaves(0)),
    case("W10 X3", "a terminating one is the surplus", world(*(pod(at) for at in range(3)), pod(3, deleted=True), replicas=3), []),
    case("W10", "and so is one of the middle", world(pod(0), pod(1, deleted=True), pod(2), pod(3), replicas=3), []),
    case("W10", "one more has to go", world(pod(0), pod(1, deleted=True), pod(2), pod(3), replicas=2), leaves(3)),
    case("W2", "creation does not wait for a drain that cannot be lifted",
        world(chosen(0, "scale-in"), replicas=3, slurm_side=slurm(record(0, "IDLE", "DRAIN", "INVALID_REG", reason=SCALE_IN.format(0)))), ["create 1", "create 2"]),
    case("W15", "one that drains is chosen again although its jobs rank it last",
        world(pod(0), chosen(1, "scale-in", cost="9", labels=GOING), pod(2), replicas=2, slurm_side=slurm(record(0), record(1, "MIXED", "DRAIN", reason=SCALE_IN.format(1)), record(2))), []),
    case("S8", "no client, no pods", world(replicas=0, slurm_side=slurm(why="no client")), []),
    case("S9 X23", "the list of nodes fails", world(pod(0), replicas=0, slurm_side=slurm(why="the list of nodes failed")), ["mark gpu-0 causes=…,pod-cordon=true"]),
    case("E2", "nothing ever ran: all go at once", world(*(pod(at, ready=False, phase="Pending", node="", started=False) for at in range(2)), replicas=0, slurm_side=slurm()),
        [f"mark gpu-{at} causes=…,pod-cordon=true" for at in range(2)] + ["delete gpu-0", "delete gpu-1"]),
    case("W2 K1", "one without a machine drains no namesake",
        world(pod(0, ready=False, phase="Pending", node="", started=False), replicas=0, slurm_side=slurm(record(0))), ["mark gpu-0 causes=…,pod-cordon=true", "delete gpu-0"]),
    *(case("W55", "a job that Slurm does not show on its node", world(chosen(0, "scale-in", labels=GOING, notes={DEADLINE: "2027-01-15T08:50:00Z"}), replicas=0,
           slurm_side=slurm(DRAINED[0], jobs={0: (job(7, state),)})), []) for state in ("SUSPENDED", "STOPPED")),
    *(case("W55", "a job that shows on its node", world(chosen(0, "scale-in", labels=GOING), replicas=0,
           slurm_side=slurm(record(0, *states, "DRAIN", reason=SCALE_IN.format(0)))), []) for states in (("ALLOCATED",), ("MIXED",), ("IDLE", "COMPLETING"))),
    case("W6", "a drained one goes with its NodeSet", world(chosen(0, "nodeset-deletion"), deleting=True, slurm_side=slurm(DRAINED[0])), ["delete gpu-0"]),
    case("W6", "its record goes before the NodeSet", world(deleting=True, replicas=0, slurm_side=slurm(record(0, "DOWN", reason="slurm-operator: Pod is terminating"))), ["forget gpu-0"]),
    case("W6", "a machine that somebody drained keeps its record", world(deleting=True, replicas=0, slurm_side=slurm(record(0, "DOWN", "DRAIN", reason="bad gpu"))), ["finalizers "]),
    case("W6", "a record that Slurm keeps holds nobody for ever",
        world(deleting=True, replicas=0, slurm_side=slurm(record(0, "DOWN", reason="slurm-operator: x", time=NOW - 700))), ["finalizers ", "forget gpu-0"]),
    case("W6", "nor does one that Slurm calls alive though nobody is there", world(deleting=True, replicas=0, deleted_at=NOW - 60,
        slurm_side=slurm(record(0))), []),
    case("W6", "for longer than ten minutes", world(deleting=True, replicas=0, deleted_at=NOW - 700, slurm_side=slurm(record(0))), ["finalizers "]),
    case("W6", "a person may ask for no drain", world(pod(0), deleting=True, spec={"annotations": {"tui.slinky.slurm.net/delete-without-drain": "true"}}),
        ["mark gpu-0 causes=…,pod-cordon=true", f"drain gpu-0: {SCALE_IN.format(0)}", "delete gpu-0"]),
    case("W1 W6", "without its Controller a NodeSet goes undrained",
        world(pod(0), deleting=True, slurm_side=slurm(why="the Controller is not there", expected=False)), ["mark gpu-0 causes=…,pod-cordon=true", "delete gpu-0"]),
    case("W1", "without its Controller nobody else goes", world(pod(0), replicas=0, slurm_side=slurm(why="the Controller is not there", expected=False)),
        ["mark gpu-0 causes=…,pod-cordon=true"]),
    case("W6", "what cannot be read can be deleted", replace(world(deleting=True, replicas=0), bad="spec: unreadable"), ["finalizers "]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "effects"), CASES)
def test_scaling(found: World, effects: list[str]) -> None:
    assert did(decide(found, NOW)) == effects


@holds("W50")
def test_what_drains_is_said_with_its_begin_and_its_end() -> None:
    busy = slurm(record(0, "MIXED", "DRAIN", reason=SCALE_IN.format(0)), jobs={0: (job(7),)})
    decision = decide(world(chosen(0, "scale-in"), replicas=0, slurm_side=busy), NOW)
    (status,) = [e.status for e in decision.effects if isinstance(e, PatchStatus)]
    told = next(c for c in status["conditions"] if c["type"] == "Draining")
    assert told["status"] == "True"
    assert told["message"] == "since 2027-01-15T07:59:10Z until 2027-01-15T08:50:00Z; gpu-0 (scale-in): 1 job on it: 7"


@holds("W30")
def test_a_failure_is_told_of_once_as_what_it_is() -> None:
    decision = decide(world(pod(0, phase="Failed", ready=False)), NOW)
    told = [e for e in decision.effects if isinstance(e, Tell)]
    assert [(t.reason, t.warning) for t in told] == [("FailedNodeSetPod", True)]
    assert "daemon" not in told[0].text
