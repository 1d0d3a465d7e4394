"""What a user, a Slurm record or another tool may write to stop the operator: it costs one pod at the most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import PatchStatus, Tell
from slinkytui.backend.controllers.nodeset.world import Spec, World
from slinkytui.backend.models import Job, Pod
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, did, job, pod, record, slurm, world

DEEP = '{"a":' * 50_000
LONG = "9" * 5_000


def with_job(**fields: Any) -> World:
    found: Job = msgspec.structs.replace(job(7), **fields)
    return world(pod(0), pod(1), replicas=3, slurm_side=slurm(record(0, "MIXED"), record(1), jobs={0: (found,)}))


def noted(**notes: str) -> World:
    return world(pod(0, **notes), pod(1), replicas=3)  # type: ignore[arg-type]


def commented(text: str) -> World:
    return world(pod(0), pod(1), replicas=3, slurm_side=slurm(record(0, comment=text), record(1)))


def bare() -> Pod:
    one = pod(0)
    return msgspec.structs.replace(one, meta=msgspec.structs.replace(one.meta, labels=(), annotations=(), created=None))


POISON = [
    case("W24", "neither labels nor annotations", world(bare(), pod(1), replicas=3)),
    case("W24", "a cost of many digits", noted(cost=LONG)),
    case("W24", "a deep note", noted(causes=DEEP)),
    case("W24", "a note without end", noted(causes='{"causes":{"user":{"since":1e999}}}')),
    case("W24", "a note of another shape", noted(causes='{"causes":[1]}')),
    case("W24", "a deep comment", commented(DEEP)),
    case("W24", "a comment of other types", commented('{"podName":5,"namespace":[],"node":{}}')),
    case("W24", "a job that ends in the year 30000", with_job(start_time=10**12)),
    case("W24", "a limit beyond all years", with_job(time_limit_min=1e15)),
    case("W24", "a job that has not begun", with_job(start_time=None)),
    case("W24", "a status that somebody wrote",
         replace(world(pod(0), pod(1)), spec=Spec(replicas=3, pin=True),
                 status={"conditions": [{"type": "Available", "status": "False"}], "ordinalToNode": {"²": 1}})),
]  # fmt: skip


@pytest.mark.parametrize("found", POISON)
def test_nobody_is_kept_from_being_made_by_a_strange_neighbour(found: World) -> None:
    assert "create 2" in did(decide(found, NOW))


@pytest.mark.parametrize("found", POISON)
def test_nobody_is_kept_from_going_by_a_strange_neighbour(found: World) -> None:
    smaller = replace(found, spec=replace(found.spec, replicas=0))
    assert [e for e in did(decide(smaller, NOW)) if e.startswith("drain gpu-1")]


@holds("W24")
def test_a_pod_that_cannot_be_dealt_with_is_set_apart_and_told_of() -> None:
    """A record that breaks what everybody takes for granted: its pod is left alone, with an event and on a condition."""
    broken = msgspec.structs.replace(record(0), features=None)
    found = world(pod(0), pod(1), replicas=0, slurm_side=slurm(broken, record(1)))
    decision = decide(replace(found, spec=replace(found.spec, replicas=1)), NOW)
    assert [e for e in did(decision) if "gpu-0" in e] == []
    assert [e for e in did(decision) if e.startswith("drain gpu-1")]
    (told,) = [e for e in decision.effects if isinstance(e, Tell) and e.warning]
    assert (told.reason, told.warning, told.about) == ("Quarantined", True, found.pods[0])
    (status,) = [e.status for e in decision.effects if isinstance(e, PatchStatus)]
    degraded = next(c for c in status["conditions"] if c["type"] == "Degraded")
    assert degraded["status"] == "True"
    assert degraded["message"].startswith("gpu-0 cannot be dealt with")
