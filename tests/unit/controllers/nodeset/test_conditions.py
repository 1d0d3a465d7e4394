"""What Slurm says of a worker, on its pod."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from slinkytui.backend.controllers.nodeset.conditions import deadline_of, difference, is_occupied, wanted_conditions
from slinkytui.backend.models import Condition, Job, SlurmNode
from slinkytui.backend.slurm.states import is_busy, is_drained, is_draining
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, job, record

BASES = ("ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN")
FLAGS = ("COMPLETING", "DRAIN", "FAIL", "INVALID", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "UNDRAIN")

WANTED = [
    case("L11", "unknown to Slurm", None, []),
    *(case("L11 L18", f"base {b.lower()}", record(0, b, reason="why"), [b]) for b in BASES),
    *(case("L11 L18", f"flag {f.lower()}", record(0, "IDLE", f, reason="why"), ["IDLE", f]) for f in FLAGS),
    case("L11", "all flags at once", record(0, "DOWN", *FLAGS, reason="why"), ["DOWN", *FLAGS]),
    case("L11", "states without a condition", record(0, "IDLE", "DYNAMIC_NORM", "CLOUD", reason="why"), ["IDLE"]),
    case("L18", "idle alone", record(0, "IDLE", reason="why"), ["IDLE"]),
    case("L18", "drain", record(0, "IDLE", "DRAIN", reason="why"), ["IDLE", "DRAIN"]),
    case("L18", "an invalid registration", record(0, "IDLE", "INVALID_REG", reason="why"), ["IDLE", "INVALID_REG"]),
    case("L18", "maintenance", record(0, "IDLE", "MAINTENANCE", reason="why"), ["IDLE", "MAINTENANCE"]),
    case("T7", "allocated and drained", record(0, "ALLOCATED", "DRAIN", reason="why"), ["ALLOCATED", "DRAIN"]),
]  # fmt: skip


@pytest.mark.parametrize(("node", "states"), WANTED)
def test_each_state_is_a_condition_with_the_reason_as_its_message(node: SlurmNode | None, states: list[str]) -> None:
    names = ["SlurmNodeState" + "".join(w.capitalize() for w in s.split("_")) for s in states]
    assert list(wanted_conditions(node)) == [(n, "why") for n in names]


def held(*states: str, message: str = "") -> list[Condition]:
    return [Condition(f"SlurmNodeState{s}", "True", message=message) for s in states]


def on(*states: str, message: str = "") -> list[tuple[str, str]]:
    return [(f"SlurmNodeState{s}", message) for s in states]


READY = Condition("Ready", "True")
CHANGES = [
    case("T6 X8", "the first ones", [READY], on("Idle"), on("Idle"), []),
    case("T6 T7 X19", "equal ones stay", [READY, *held("Idle")], on("Idle"), [], []),
    case("T6 X8", "a stale one is replaced", held("Idle"), on("Allocated"), on("Allocated"), ["SlurmNodeStateIdle"]),
    case("T6", "fewer", held("Idle", "Drain"), on("Idle"), [], ["SlurmNodeStateDrain"]),
    case("T6 W21", "all go and Ready stays", [READY, *held("Idle", "Drain")], [], [], ["SlurmNodeStateDrain", "SlurmNodeStateIdle"]),
    case("T6", "a new message", held("Drain", message="a"), on("Drain", message="b"), on("Drain", message="b"), []),
    case("T7 X19", "a second look at three changes nothing", held("Down", "Drain", "NotResponding"), on("Down", "Drain", "NotResponding"), [], []),
]  # fmt: skip


@pytest.mark.parametrize(("there", "wanted", "put", "drop"), CHANGES)
def test_only_differences_are_written(
    there: list[Condition], wanted: list[tuple[str, str]], put: list[tuple[str, str]], drop: list[str]
) -> None:
    assert difference(there, wanted) == (tuple(put), tuple(drop))


def after(minutes: float) -> str:
    return datetime.fromtimestamp(NOW - 600 + minutes * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


DEADLINES = [
    case("L12", "no job", [], ""),
    case("L12", "the latest of three wins", [job(1, limit_min=30), job(2, limit_min=90), job(3, limit_min=60)], after(90)),
    case("L12", "finished ones do not count", [job(1, "COMPLETED", limit_min=900), job(2, limit_min=60)], after(60)),
    case("W42", "a suspended one does", [job(1, "SUSPENDED", limit_min=60)], after(60)),
    case("W42", "without a limit it never has to end", [job(1, limit_min=None), job(2, limit_min=5)], after(292 * 365 * 1440)),
]  # fmt: skip


@pytest.mark.parametrize(("jobs", "end"), DEADLINES)
def test_deadlines(jobs: list[Job], end: str) -> None:
    assert deadline_of(jobs) == end


BUSY = [
    case("H16", "allocated", ["ALLOCATED"], True), case("H16", "mixed", ["MIXED"], True),
    case("H16", "completing", ["IDLE", "COMPLETING"], True), case("H16", "idle", ["IDLE"], False), case("H16", "down", ["DOWN"], False),
]  # fmt: skip


@pytest.mark.parametrize(("states", "busy"), BUSY)
def test_busy(states: list[str], busy: bool) -> None:
    assert is_busy(states) is busy


@holds("H16")
def test_drained_and_draining() -> None:
    assert [is_drained(s) for s in (["IDLE", "DRAIN"], ["DOWN", "DRAIN"], ["ALLOCATED", "DRAIN"], ["IDLE"])] == [
        True,
        True,
        False,
        False,
    ]
    assert [is_draining(s) for s in (["ALLOCATED", "DRAIN"], ["MIXED", "DRAIN"], ["IDLE", "DRAIN"])] == [
        True,
        True,
        False,
    ]


@holds("W55")
def test_a_suspended_job_occupies_an_idle_node() -> None:
    assert is_occupied(record(0), [job(1, "SUSPENDED")])
    assert not is_occupied(record(0), [job(1, "COMPLETED")])
