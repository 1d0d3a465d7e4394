"""One NodeSet, one look at the world, one decision: the table of cases."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.causes import read_record
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import PatchStatus, Reason
from slinkytui.backend.controllers.nodeset.world import Strategy, World
from slinkytui.backend.models import Condition, Pod
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import NOW, did, job, kube, pod, record, slurm, world

SCALE_IN = "slurm-operator: Pod (slurm/gpu-{}) is pending termination for scale-in"


def causes(*names: str, drain: bool = True, plan: str = "", since: float = NOW - 50) -> str:
    held = {n: {"since": int(since), **({"plan": plan} if plan else {})} for n in names}
    return json.dumps({"causes": held, "cordon": True, **({"drain": True} if drain else {})}, separators=(",", ":"))


def chosen(at: int, *names: str, **more: Any) -> Pod:
    return pod(at, cordon=True, causes=causes(*names), **more)


CASES = [
    case("", "nothing to do", world(pod(0), pod(1)), []),
    case("", "creates on lowest free ordinals", world(pod(1), replicas=3), ["create 0", "create 2"]),
    case("", "a terminating pod keeps its name", world(pod(0), pod(1, deleted=True), replicas=2), []),
    case("", "a terminating pod is the surplus", world(pod(0), pod(1), pod(2), pod(3, deleted=True), replicas=3), []),
    case("", "scale in drains the highest ordinal first",
        world(pod(0), pod(1), pod(2), replicas=2),
        ["mark gpu-2 causes=…,pod-cordon=true", f"drain gpu-2: {SCALE_IN.format(2)}"],
    ),
    case("", "drained and chosen goes",
        world(pod(0), chosen(1, "scale-in"), replicas=1, slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason=SCALE_IN.format(1)))),
        ["delete gpu-1"],
    ),
    case("", "a busy one is waited for",
        world(pod(0), chosen(1, "scale-in"), replicas=1,
              slurm_side=slurm(record(0), record(1, "MIXED", "DRAIN", reason=SCALE_IN.format(1)), jobs={1: (job(7),)})),
        ["mark gpu-1 pod-deadline=2027-01-15T08:50:00Z,pod-protect=true"],
    ),
    case("W55", "suspended jobs hold their node",
        world(pod(0), chosen(1, "scale-in", labels={"nodeset.slinky.slurm.net/pod-protect": "true"},
                             notes={"nodeset.slinky.slurm.net/pod-deadline": "2027-01-15T08:50:00Z"}), replicas=1,
              slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason=SCALE_IN.format(1)), jobs={1: (job(7, "SUSPENDED"),)})),
        [],
    ),
    case("W1 X23", "no client deletes nothing",
        world(pod(0), chosen(1, "scale-in"), replicas=1,
              slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason=SCALE_IN.format(1)), why="no client")),
        [],
    ),
    case("W7", "an empty list proves nothing",
        world(pod(0), chosen(1, "scale-in"), replicas=1, slurm_side=slurm(absent={"gpu-1": NOW - 500})),
        [],
    ),
    case("W23", "absent once is not absent",
        world(pod(0), chosen(1, "scale-in"), replicas=1, slurm_side=slurm(record(0), absent={"gpu-1": NOW - 1})),
        [],
    ),
    case("W23", "absent twice goes",
        world(pod(0), chosen(1, "scale-in"), replicas=1, slurm_side=slurm(record(0), absent={"gpu-1": NOW - 6})),
        ["delete gpu-1"],
    ),
    case("W11", "a foreign drain is drained and not written over",
        world(pod(0), pod(1), replicas=1, slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason="bad gpu"))),
        ["mark gpu-1 causes=…,pod-cordon=true", "delete gpu-1"],
    ),
    case("W11 X1", "a foreign drain survives a cancelled scale in",
        world(pod(0), pod(1, cordon=True, causes='{"causes":{"scale-in":{"since":1}},"cordon":true,"foreign":true}'),
              slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason="bad gpu"))),
        ["mark gpu-1 causes=None,pod-cordon=None"],
    ),
    case("", "a withdrawn scale in is undrained",
        world(pod(0), chosen(1, "scale-in"), slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason=SCALE_IN.format(1)))),
        ["undrain gpu-1"],
    ),
    case("", "then the note goes", world(pod(0), chosen(1, "scale-in")), ["mark gpu-1 causes=None,pod-cordon=None"]),
    case("W53", "no undrain of an invalid registration",
        world(pod(0), chosen(1, "scale-in"),
              slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", "INVALID_REG", reason=SCALE_IN.format(1)))),
        [],
    ),
    case("", "unknown lifts nothing",
        world(pod(0), chosen(1, "scale-in"),
              slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason=SCALE_IN.format(1)), why="timeout")),
        [],
    ),
    case("W15", "a chosen pod stays chosen",
        world(pod(0), chosen(1, "scale-in"), pod(2, cost="-5"), replicas=2,
              slurm_side=slurm(record(0), record(1, "ALLOCATED", "DRAIN", reason=SCALE_IN.format(1)), record(2))),
        ["mark gpu-1 pod-protect=true"],
    ),
    case("", "a user cordon drains",
        world(pod(0, cordon=True)),
        ["mark gpu-0 causes=…", "drain gpu-0: slurm-operator: Pod (slurm/gpu-0) was cordoned"],
    ),
    case("W4", "a user cordon stays",
        world(pod(0, cordon=True, causes='{"causes":{"user":{"since":1799999950}},"drain":true}'),
              slurm_side=slurm(record(0, "IDLE", "DRAIN", reason="slurm-operator: Pod (slurm/gpu-0) was cordoned"))),
        [],
    ),
    case("", "a node cordon drains with its own reason",
        world(pod(0), nodes=[kube("n0", cordoned=True, notes={"nodeset.slinky.slurm.net/node-cordon-reason": "fan\tbroken"})]),
        ["mark gpu-0 causes=…,pod-cordon=true", "drain gpu-0: slurm-operator: fan broken"],
    ),
    case("W18", "a node that cannot be seen counts as before",
        replace(world(chosen(0, "node-cordon"), slurm_side=slurm(record(0, "IDLE", "DRAIN", reason="slurm-operator: x"))), nodes={}),
        [],
    ),
    case("", "a silent down node is left alone by a cordon",
        world(pod(0), nodes=[kube("n0", cordoned=True)], slurm_side=slurm(record(0, "DOWN", "NOT_RESPONDING", reason="Not responding"))),
        ["mark gpu-0 causes=…,pod-cordon=true"],
    ),
    case("", "rolling update within the budget",
        world(*(pod(i, hash="old") for i in range(8)), spec={"max_unavailable": 2}),
        [f"mark gpu-{i} causes=…,pod-cordon=true" for i in (6, 7)] + [f"drain gpu-{i}: {SCALE_IN.format(i)}" for i in (6, 7)],
    ),
    case("", "a broken new image stops the roll",
        world(*(pod(i, hash="old") for i in range(6)), pod(6, ready=False), pod(7, ready=False), spec={"max_unavailable": 2}),
        [],
    ),
    case("W64", "a ready pod with an invalid node is away",
        world(pod(0, hash="old"), pod(1), spec={"max_unavailable": 1},
              slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", "INVALID_REG", reason="gres"))),
        [],
    ),
    case("", "a draining old pod counts as away",
        world(pod(0, hash="old"), chosen(1, "update", hash="old"), spec={"max_unavailable": 1},
              slurm_side=slurm(record(0), record(1, "ALLOCATED", "DRAIN", reason=SCALE_IN.format(1)))),
        ["mark gpu-1 pod-protect=true"],
    ),
    case("", "on delete waits", world(pod(0, hash="old"), spec={"strategy": Strategy.ON_DELETE}), []),
    case("W27", "a missing mode label is no other mode", world(pod(0, drop_labels=["nodeset.slinky.slurm.net/scaling-mode"])),
        ["mark gpu-0 scaling-mode=StatefulSet"]),
    case("", "a failed pod goes at once", world(pod(0, phase="Failed", ready=False)), ["delete gpu-0"]),
    case("W30", "and comes back after its backoff", world(replicas=1, backoff={"0": NOW + 8}), []),
    case("W34", "no second pod of a name", world(replicas=1, taken={"gpu-0": "cpu-0"}), []),
    case("W43", "an own terminating text is over",
        world(pod(0, created=NOW - 10, ready_since=NOW - 2),
              slurm_side=slurm(record(0, "DOWN", reason="slurm-operator: Pod is terminating;", time=NOW - 40))),
        ["update gpu-0 ['state']"],
    ),
    case("W11", "a foreign drain outlives its machine",
        world(pod(0), slurm_side=slurm(record(0, "DOWN", "DRAIN", reason="bad gpu", comment='{"podName":"gpu-0","namespace":"slurm","node":"nX"}'))),
        ["update gpu-0 ['comment']"],
    ),
    case("W6", "deletion drains first",
        world(pod(0), deleting=True),
        ["mark gpu-0 causes=…,pod-cordon=true", f"drain gpu-0: {SCALE_IN.format(0)}"],
    ),
    case("W6", "and ends without workers", world(deleting=True, replicas=1), ["finalizers "]),
    case("", "a new nodeset gets its finalizer", world(replicas=0, finalizers=()), ["finalizers tui.slinky.slurm.net/drain"]),
    case("", "a plan's choice waits for its size",
        world(pod(0), pod(1, cordon=True, causes=causes("scale-in", plan="abc", drain=False, since=NOW - 5))),
        [],
    ),
    case("", "a plan's choice is honoured",
        world(pod(0, cordon=True, causes=causes("scale-in", plan="abc", drain=False, since=NOW - 5)), pod(1), replicas=1),
        ["mark gpu-0 causes=…", f"drain gpu-0: {SCALE_IN.format(0)}"],
    ),
    case("", "a plan's choice is forgotten",
        world(pod(0), pod(1, cordon=True, causes=causes("scale-in", plan="abc", drain=False, since=NOW - 61))),
        ["mark gpu-1 causes=None,pod-cordon=None"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("found", "effects"), CASES)
def test_a_world_and_its_decision(found: World, effects: list[str]) -> None:
    # A drain is noted on the pod before it is set: the order of lines is the order of requests.
    assert did(decide(found, NOW)) == effects


def test_a_note_says_why_and_since_when() -> None:
    decision = decide(world(pod(0), pod(1), replicas=1), NOW)
    marked = next(e for e in decision.effects if type(e).__name__ == "PatchPod")
    assert marked.annotations["tui.slinky.slurm.net/causes"] == (  # type: ignore[union-attr]
        '{"causes":{"scale-in":{"since":1800000000}},"cordon":true,"drain":true}'
    )


def test_what_is_waited_for_is_said() -> None:
    busy = slurm(record(0), record(1, "MIXED", "DRAIN", reason=SCALE_IN.format(1)), jobs={1: (job(7),)})
    decision = decide(world(pod(0), chosen(1, "scale-in"), replicas=1, slurm_side=busy), NOW)
    assert Reason("gpu-1", "leaves for scale-in, waits: 1 job on it: 7", NOW - 50, True) in decision.why
    assert decision.after is not None


def test_counters_of_slurm_keep_their_value_while_it_is_unknown() -> None:
    """W3."""
    status = {"slurmIdle": 2, "slurmAllocated": 1}
    found = world(pod(0), slurm_side=slurm(why="slurmrestd does not answer", since=NOW - 60), status=status)
    new = next(e.status for e in decide(found, NOW).effects if isinstance(e, PatchStatus))
    assert (new["slurmIdle"], new["slurmAllocated"]) == (2, 1)
    told = {c["type"]: c for c in new["conditions"]}
    assert told["SlurmAvailable"]["status"] == "False"
    assert "slurmrestd does not answer" in told["SlurmAvailable"]["message"]


def test_a_settled_world_decides_nothing() -> None:
    found = world(pod(0), pod(1))
    first = decide(found, NOW)
    status = next(e.status for e in first.effects if isinstance(e, PatchStatus))
    conditions = [type(e).__name__ for e in first.effects]
    assert conditions.count("PodConditions") == 2
    told = tuple(replace_conditions(p) for p in found.pods)
    again = decide(replace(found, pods=told, status=status), NOW)
    assert again.effects == ()
    assert again.after is None


def replace_conditions(one: Pod) -> Pod:
    return msgspec.structs.replace(one, conditions=(*one.conditions, Condition("SlurmNodeStateIdle", "True")))


def test_a_record_that_cannot_be_read_is_nobodys() -> None:
    assert read_record(pod(0, causes="{nonsense")) is None
