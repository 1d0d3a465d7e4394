"""Updates: how many may be away, and who goes first."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.world import Strategy, World
from tests.rules import case
from tests.unit.controllers.nodeset.test_decide import SCALE_IN, chosen
from tests.unit.controllers.nodeset.worlds import NOW, did, pod, record, slurm, world


def goes(*ats: int) -> list[str]:
    """These are chosen and drained."""
    return [f"mark gpu-{at} causes=…,pod-cordon=true" for at in ats] + [
        f"drain gpu-{at}: {SCALE_IN.format(at)}" for at in ats
    ]


OLD: dict[str, Any] = {"hash": "old"}
SICK: dict[str, Any] = {"hash": "old", "ready": False}
DRAINS = record(1, "ALLOCATED", "DRAIN", reason=SCALE_IN.format(1))
SCHEDULED = {"strategy": Strategy.SCHEDULED}

CASES = [
    case("U1 U11", "on delete nobody goes", world(pod(0, **OLD), pod(1, **SICK), spec={"strategy": Strategy.ON_DELETE}), []),
    case("U2 U4", "one of two", world(pod(0), pod(1, **OLD), spec={"max_unavailable": "10%"}), goes(1)),
    case("U5", "all are new", world(pod(0), pod(1)), []),
    case("U6 O11 X5", "the unhealthy one first", world(pod(0, **OLD), pod(1, **SICK)), goes(1)),
    case("U6 X5", "whatever the budget", world(pod(0, ready=False), pod(1, **SICK), spec={"max_unavailable": 1}), goes(1)),
    case("U7 X29", "a new one that is not ready uses the budget", world(pod(0, **OLD), pod(1, ready=False), spec={"max_unavailable": 1}), []),
    case("U8 O11 X28", "the unhealthy one is replaced, the healthy one stays",
        world(pod(0, **OLD), pod(1, started=False, **SICK), pod(2, ready=False), spec={"max_unavailable": 1}, slurm_side=slurm(record(0), record(2))),
        ["mark gpu-1 causes=…,pod-cordon=true", "delete gpu-1"]),
    case("U9 W31", "who is away counts, however sick it was", world(pod(0, **OLD), pod(1, **SICK), pod(2, ready=False), spec={"max_unavailable": 2}), goes(1)),
    case("U9", "with room for one more the healthy one goes, too",
        world(pod(0, **OLD), pod(1, **SICK), pod(2, ready=False), spec={"max_unavailable": 3}), goes(0, 1)),
    case("U3 U10 X6", "no maintenance, nobody goes", world(pod(0, **OLD), spec=SCHEDULED), []),
    case("U10", "maintenance of somebody else", world(pod(0, **OLD), spec=SCHEDULED, slurm_side=slurm(record(0, "IDLE", "MAINTENANCE", reservation="x"))), []),
    case("U3 U10", "maintenance under our reservation",
        world(pod(0, **OLD), spec=SCHEDULED, slurm_side=slurm(record(0, "IDLE", "MAINTENANCE", reservation="SlurmOperatorMaint-gpu"))), goes(0)),
    case("U10", "all are new already", world(pod(0), spec=SCHEDULED), []),
    case("U10", "an unhealthy old one does not wait", world(pod(0, **SICK), spec=SCHEDULED), goes(0)),
    case("U12", "no replicas: they go for the size", world(pod(0, **OLD), pod(1, **OLD), replicas=0, spec={"max_unavailable": "100%"}), goes(0, 1)),
    case("U13", "a terminating one uses the budget", world(pod(0, **OLD), pod(1, deleted=True, **OLD), spec={"max_unavailable": 1}), []),
    case("U14", "a remnant of a scale in does not", world(pod(0, **OLD), pod(1, deleted=True, **OLD), replicas=1, spec={"max_unavailable": 1}), goes(0)),
    case("U15", "half of four, one is away", world(pod(0, **OLD), pod(1, **OLD), pod(2, **OLD), pod(3, ready=False), spec={"max_unavailable": "50%"}), goes(2)),
    case("U16", "only live old ones are old", world(pod(0), pod(1, **OLD), pod(2, deleted=True, **OLD), replicas=2, spec={"max_unavailable": 2}), goes(1)),
    case("U2", "no room at all", world(pod(0, **OLD), spec={"max_unavailable": 0}), []),
    case("W15 W31", "who drains for an update goes on and counts",
        world(pod(0, **OLD), chosen(1, "update", **OLD), pod(2, **OLD), replicas=4, spec={"max_unavailable": 2}, slurm_side=slurm(record(0), DRAINS, record(2))),
        ["create 3", "mark gpu-1 pod-protect=true"]),
    case("W15", "a smaller budget withdraws nobody",
        world(pod(0, **OLD), chosen(1, "update", **OLD), spec={"max_unavailable": 0}, slurm_side=slurm(record(0), DRAINS)), ["mark gpu-1 pod-protect=true"]),
    case("W31", "a worker that is only registering is away", world(pod(0, **OLD), pod(1), spec={"max_unavailable": 1}, slurm_side=slurm(record(0))), []),
    case("W31", "who drains for somebody else is away",
        world(pod(0, **OLD), pod(1), spec={"max_unavailable": 1}, slurm_side=slurm(record(0), record(1, "IDLE", "DRAIN", reason="bad gpu"))), []),
    case("W31", "ready for too short a time is away", world(pod(0, **OLD), pod(1, ready_since=NOW - 5), spec={"max_unavailable": 1, "min_ready_s": 10}), []),
    case("W1", "while Slurm is unknown nobody new goes", world(pod(0, **SICK), slurm_side=slurm(record(0), why="timeout")), []),
    case("W43", "said in the second of its successor's birth",
        world(pod(0, created=NOW - 40, ready_since=NOW - 2), slurm_side=slurm(record(0, "DOWN", reason="slurm-operator: Pod is terminating;", time=NOW - 40))),
        ["update gpu-0 ['state']"]),
    case("W43", "said just now by itself", world(pod(0), slurm_side=slurm(record(0, "DOWN", reason="slurm-operator: Pod is terminating;", time=NOW - 10))), []),
    case("W43", "said long ago by a clock that differs",
        world(pod(0, created=NOW - 300, ready_since=NOW - 240), slurm_side=slurm(record(0, "DOWN", reason="slurm-operator: Pod is terminating;", time=NOW - 290))),
        ["update gpu-0 ['state']"]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "effects"), CASES)
def test_an_update(found: World, effects: list[str]) -> None:
    assert did(decide(found, NOW)) == effects
