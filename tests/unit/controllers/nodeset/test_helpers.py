"""Predicates and small readers that every decision leans on."""

from __future__ import annotations

import pytest

from slinkytui.backend.controllers.nodeset.budget import has_ended, is_available, is_healthy, most_away
from slinkytui.backend.controllers.nodeset.causes import is_true
from slinkytui.backend.controllers.nodeset.order import deadline, deletion_cost
from slinkytui.backend.models import Pod
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import NOW, pod, record, slurm

PHASES = [
    case("H13", "running and ready", pod(0), True, False), case("H13", "running, not ready", pod(0, ready=False), False, False),
    case("H13", "pending", pod(0, phase="Pending", ready=False), False, False),
    case("H13", "failed", pod(0, phase="Failed", ready=False), False, True),
    case("H13", "succeeded", pod(0, phase="Succeeded", ready=False), False, True),
    case("H13", "terminating", pod(0, deleted=True), False, False),
]  # fmt: skip


@pytest.mark.parametrize(("one", "healthy", "ended"), PHASES)
def test_phases(one: Pod, healthy: bool, ended: bool) -> None:
    assert (is_healthy(one), has_ended(one)) == (healthy, ended)


AVAILABLE = [
    case("H13", "at once", 0, 0.0, "IDLE", True), case("H13", "after a second", 1, 1.0, "IDLE", True),
    case("H13", "too early", 50, 49.0, "IDLE", False), case("H13", "after fifty", 50, 50.0, "IDLE", True),
    case("W64", "down in Slurm", 0, 60.0, "DOWN", False), case("W64", "invalid in Slurm", 0, 60.0, "IDLE INVALID_REG", False),
    case("W64", "unknown to Slurm", 0, 60.0, "", False),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "ready_s", "states", "available"), AVAILABLE)
def test_availability(wanted: int, ready_s: float, states: str, available: bool) -> None:
    side = slurm(*([record(0, *states.split())] if states else []))
    assert is_available(pod(0, ready_since=NOW - ready_s), "gpu", side, wanted, NOW) is available


LIMITS = [
    case("H15", "half", "50%", 10, 5), case("H15", "a number", 5, 10, 5), case("H15", "unreadable", "many", 10, 1),
    case("H14", "more than all", 50, 10, 10), case("H14", "below nothing", -5, 10, 0), case("H14", "of nothing", "100%", 0, 0),
    case("H14", "exactly all", 10, 10, 10),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "total", "away"), LIMITS)
def test_limits(limit: int | str, total: int, away: int) -> None:
    assert most_away(limit, total) == away


COSTS = [
    case("H18", "one", "1", 1),
    case("H18", "missing", "", 0),
    case("H18", "underscores", "1_2", 0),
    case("H18", "negative", "-10", -10),
]


@pytest.mark.parametrize(("text", "cost"), COSTS)
def test_costs(text: str, cost: int) -> None:
    assert deletion_cost(text) == cost


TRUTHS = [
    case("H18 W38", "true", "true", True), case("H18", "True", "True", True), case("H18", "one", "1", True), case("H18", "zero", "0", False),
    case("H18", "missing", "", False), case("H18", "blank", " ", False), case("H18", "a word", "yes", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "true"), TRUTHS)
def test_truths(text: str, true: bool) -> None:
    assert is_true(text) is true


TIMES = [case("H18", "a time", "2027-01-15T08:00:00Z"), case("H18", "another zone", "2027-01-15T09:00:00+01:00")]


@pytest.mark.parametrize("text", TIMES)
def test_times(text: str) -> None:
    assert deadline(text) == NOW


def test_a_blank_is_no_time() -> None:
    assert deadline("") == deadline(" ")
