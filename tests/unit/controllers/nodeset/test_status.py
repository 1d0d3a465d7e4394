"""A NodeSet's status: upstream's counters and our conditions."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Finalizers, PatchPod, PatchStatus, PodConditions, Tell
from slinkytui.backend.controllers.nodeset.doubts import our_field, say_bad
from slinkytui.backend.controllers.nodeset.outcome import with_refusals
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.models import Condition
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, job, kube, pod, record, slurm, world

SELECTOR = "app.kubernetes.io/instance=gpu,app.kubernetes.io/name=slurmd"


def status_of(found: World, now: float = NOW) -> dict[str, Any]:
    wrote = [e.status for e in decide(found, now).effects if isinstance(e, PatchStatus)]
    return dict(wrote[0]) if wrote else dict(found.status)


def told(found: World, kind: str) -> dict[str, Any]:
    return next(dict(c) for c in status_of(found)["conditions"] if c["type"] == kind)


def counters(**more: Any) -> dict[str, Any]:
    return {
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "updatedReplicas": 2,
        "unavailableReplicas": 0,
        **more,
    }


INVALID = record(1, "IDLE", "DRAIN", "INVALID_REG", reason="gres/gpu count too low")
COUNTERS = [
    case("T3 T5", "two healthy pods", world(pod(0), pod(1)),
        counters(desired=2, slurmIdle=2, slurmAllocated=0, slurmDown=0, slurmDrain=0, nodeSetHash="new", collisionCount=0, selector=SELECTOR),
    ),
    case("T1 T4 T5", "two that are made, of another revision",
        world(pod(0, phase="Pending", ready=False, hash="old"), pod(1, phase="Pending", ready=False, hash="old"), slurm_side=slurm()),
        counters(readyReplicas=0, availableReplicas=0, updatedReplicas=0, unavailableReplicas=2, slurmIdle=0),
    ),
    case("T5", "no pod at all", world(replicas=0),
        counters(replicas=0, readyReplicas=0, availableReplicas=0, updatedReplicas=0, slurmIdle=0, slurmDown=0)),
    case("T5", "ready for too short", world(pod(0, ready_since=NOW - 5), pod(1), spec={"min_ready_s": 30}),
        counters(availableReplicas=1, unavailableReplicas=1)),
    case("T5", "one that terminates is not up to date", world(pod(0), pod(1, deleted=True)), counters(updatedReplicas=1)),
    case("W48", "a drained idle node counts in both as upstream does",
        world(pod(0), pod(1), slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason="bad"))), counters(slurmIdle=2, slurmDrain=1)),
    case("W3", "counters of Slurm stay while it is unknown",
        world(pod(0), pod(1), slurm_side=slurm(why="no answer"), status={"slurmIdle": 1, "slurmAllocated": 1, "slurmDown": 0}),
        counters(slurmIdle=1, slurmAllocated=1, slurmDown=0)),
    case("W48", "a generation that could not be carried out is not observed",
        world(pod(0), pod(1), refused="no Controller", status={"observedGeneration": 2}), counters(observedGeneration=2)),
    case("W48", "one that was is", world(pod(0), pod(1), status={"observedGeneration": 2}), counters(observedGeneration=3)),
]  # fmt: skip


@pytest.mark.parametrize(("found", "wanted"), COUNTERS)
def test_counters(found: World, wanted: dict[str, Any]) -> None:
    status = status_of(found)
    assert {k: status[k] for k in wanted} == wanted


CONDITIONS = [
    case("W48", "all is well", world(pod(0), pod(1)), "Available", "True", "2 of 2 workers are ready"),
    case("W48", "one is missing", world(pod(0), replicas=2), "Available", "False", "1 of 2 workers are ready"),
    case("W48", "settled", world(pod(0)), "Progressing", "False", ""),
    case("W48", "grows", world(pod(0), replicas=2), "Progressing", "True", "1 pods, 2 wanted"),
    case("W64", "ready for Kubernetes and invalid for Slurm", world(pod(0), pod(1), slurm_side=slurm(record(0), INVALID)),
        "Available", "False", "2 of 2 workers are ready, 1 of them in Slurm"),
    case("W64", "the other half says what Slurm says", world(pod(0), pod(1), slurm_side=slurm(record(0), INVALID)),
        "Degraded", "True", "gpu-1 is ready, Slurm says idle+drain+invalid_reg gres/gpu count too low"),
    case("W64", "ready and not registered", world(pod(0), slurm_side=slurm()), "Available", "False", "1 of 1 workers are ready, 0 of them in Slurm"),
    case("W64", "ready and down", world(pod(0), slurm_side=slurm(record(0, "DOWN", reason="x"))), "Available", "False", "0 of them in Slurm"),
    case("W1 W3", "Slurm is unknown", world(pod(0), slurm_side=slurm(why="no client of the Slurm cluster")),
        "SlurmAvailable", "False", "no client of the Slurm cluster"),
    case("W60", "the spec is not followed to the letter", world(pod(0), kept=("spec.minReadySeconds: is negative; 0 is taken",)),
        "Degraded", "True", "spec.minReadySeconds: is negative; 0 is taken"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "kind", "status", "text"), CONDITIONS)
def test_conditions_say_what_is(found: World, kind: str, status: str, text: str) -> None:
    one = told(found, kind)
    assert one["status"] == status
    assert text in one["message"]


@holds("W41")
def test_a_time_moves_only_with_its_status() -> None:
    first = status_of(world(pod(0), replicas=2))
    later = status_of(world(pod(0), pod(1), pod(2, ready=False), replicas=4, status=first), NOW + 60)
    held = {c["type"]: c for c in first["conditions"]}
    for one in later["conditions"]:
        assert (one["lastTransitionTime"] == held[one["type"]]["lastTransitionTime"]) == (
            one["status"] == held[one["type"]]["status"]
        )


@holds("T6")
def test_conditions_of_others_stay() -> None:
    foreign = {
        "type": "SlurmReservation",
        "status": "True",
        "reason": "x",
        "message": "y",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert foreign in status_of(world(pod(0), status={"conditions": [foreign]}))["conditions"]


@holds("W3")
def test_what_slurm_said_stays_on_the_pods_while_it_is_unknown() -> None:
    marks = {"nodeset.slinky.slurm.net/pod-protect": "true"}
    notes = {"nodeset.slinky.slurm.net/pod-deadline": "2027-01-15T08:00:00Z"}
    busy = pod(0, labels=marks, notes=notes, conditions=[Condition("SlurmNodeStateAllocated", "True")])
    found = world(busy, slurm_side=slurm(why="slurmrestd does not answer"))
    assert [e for e in decide(found, NOW).effects if isinstance(e, PatchPod | PodConditions)] == []
    known = world(busy, slurm_side=slurm(record(0)))
    assert [e for e in decide(known, NOW).effects if isinstance(e, PatchPod | PodConditions)] != []


@holds("W50")
def test_who_drains_is_on_a_condition() -> None:
    busy = slurm(record(0), record(1, "MIXED", "DRAIN", reason="slurm-operator: x"), jobs={1: (job(7),)})
    one = told(world(pod(0), pod(1), replicas=1, slurm_side=busy), "Draining")
    assert (one["status"], "gpu-1" in one["message"]) == ("True", True)


@holds("W60")
def test_a_nodeset_that_cannot_be_read_says_so_once_and_stays() -> None:
    found = world(
        pod(0),
        bad="the NodeSet cannot be used: spec.replicas: must be a number",
        status={"replicas": 1, "observedGeneration": 2},
    )
    assert decide(found, NOW).effects == ()
    event, status = say_bad(found, NOW)
    assert isinstance(event, Tell) and isinstance(status, PatchStatus)
    assert (event.reason, event.warning) == ("BadSpec", True)
    assert status.status["replicas"] == 1
    assert status.status["observedGeneration"] == 2
    (one,) = status.status["conditions"]
    assert (one["type"], one["status"], one["reason"]) == ("Degraded", "True", "BadSpec")
    assert "spec.replicas: must be a number" in one["message"]
    again = world(pod(0), bad=found.bad, status=status.status)
    assert say_bad(again, NOW + 60) == ()


def test_a_nodeset_that_cannot_be_read_goes_when_it_is_empty() -> None:
    assert decide(world(bad="x", deleting=True), NOW).effects == (Finalizers(()),)
    assert decide(world(pod(0), bad="x", deleting=True), NOW).effects == ()


FIELDS = [
    case("W60", "the first container", "pod", 'Pod "gpu-0" is invalid: spec.containers[0].image: Required value', "spec.slurmd.image"),
    case("W60", "the rest of the template", "pod", 'Pod "gpu-0" is invalid: spec.tolerations[0].key: Invalid', "spec.template.spec.tolerations[0].key"),
    case("W60", "a claim", "claim", "invalid: spec.accessModes: Required value", "spec.volumeClaimTemplates[data].spec.accessModes"),
    case("W60", "no field", "pod", "admission webhook denied the request", ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "field"), FIELDS)
def test_a_refusal_names_the_field_of_the_nodeset(kind: str, words: str, field: str) -> None:
    assert our_field(kind, words, "data") == field


@holds("W60", "W62")
def test_a_refusal_that_goes_on_is_written_once() -> None:
    wanted = [{"type": "Degraded", "status": "False", "reason": "AsExpected", "message": "", "observedGeneration": 1}]
    first = with_refusals(wanted, [], ["create pod 0: no image"], NOW)
    assert (first[0]["status"], first[0]["reason"], first[0]["message"]) == (
        "True",
        "Refused",
        "create pod 0: no image",
    )
    assert with_refusals(wanted, first, ["create pod 0: no image"], NOW + 30) == first


CHOSEN = '{"causes":{"scale-in":{"since":1799999950}},"cordon":true,"drain":true}'
CORDONED = CHOSEN.replace("scale-in", "node-cordon")


@holds("W39")
def test_what_goes_on_is_no_event_again() -> None:
    """A worker that waits to leave, and one that is cordoned with its machine, were told of when it began."""
    waits = slurm(record(0), record(1, "MIXED", "DRAIN", reason="slurm-operator: x"), jobs={1: (job(7),)})
    for found in (
        world(pod(0), pod(1, cordon=True, causes=CHOSEN), replicas=1, slurm_side=waits),
        world(pod(0, cordon=True, causes=CORDONED), nodes=[kube("n0", cordoned=True)]),
    ):
        assert [e for e in decide(found, NOW).effects if isinstance(e, Tell)] == []
