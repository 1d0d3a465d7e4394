"""Array texts, dependency texts and reservations: the pure decisions of the simulated slurmctld."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.sim.arrays import parse_array, parse_ids, ranges, task_string
from slinkytui.backend.sim.dependencies import Fate, Met, Term, judge, parse_dependency, weigh
from slinkytui.backend.sim.reservations import SimReservation

WAITING, RUNNING = Fate(None, ""), Fate(100.0, "")
WELL, BADLY = Fate(100.0, "ok"), Fate(100.0, "bad")


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(0, 9))
def test_what_a_record_shows_is_a_specification_of_the_same_tasks(tasks: set[int], limit: int) -> None:
    assert parse_array(task_string(sorted(tasks), limit)) == (sorted(tasks), limit)


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-", "1,,2", "1%", "1%x", "0-9:0", "0-100001", "-1", "1%2%3"])
def test_wrong_specifications(text: str) -> None:
    with pytest.raises(ValueError):
        parse_array(text)


def test_ranges_of_nothing_and_of_gaps() -> None:
    assert (ranges([]), ranges([0, 1, 2, 5, 7, 8])) == ("", "0-2,5,7-8")


@pytest.mark.parametrize(
    ("text", "found"),
    [("13", (13, None)), ("13_4", (13, [4])), ("13_[1-3]", (13, [1, 2, 3])), ("x", None), ("13_x", None), ("", None)],
)
def test_ids(text: str, found: object) -> None:
    assert parse_ids(text) == found


@pytest.mark.parametrize(
    ("term", "fate", "met"),
    [
        ("afterok:5", WAITING, "open"), ("afterok:5", RUNNING, "open"), ("afterok:5", WELL, "met"), ("afterok:5", BADLY, "never"),
        ("afternotok:5", WELL, "never"), ("afternotok:5", BADLY, "met"), ("afterany:5", RUNNING, "open"), ("afterany:5", BADLY, "met"),
        ("after:5", WAITING, "open"), ("after:5", RUNNING, "met"), ("after:5+1", RUNNING, "open"), ("after:5+1", Fate(50.0, ""), "met"),
        ("afterok:5", None, "met"), ("afterok:5(failed)", WELL, "never"),
    ],
)  # fmt: skip
def test_one_condition(term: str, fate: Fate | None, met: str) -> None:
    assert judge(parse_dependency(term).terms[0], fate, 110.0) == met


@pytest.mark.parametrize(
    ("text", "fates", "whole", "shown"),
    [
        ("afterok:1:2", {"1": WELL, "2": WAITING}, "open", "afterok:2(unfulfilled)"),
        ("afterok:1,afterany:2", {"1": BADLY, "2": WAITING}, "never", "afterok:1(failed),afterany:2(unfulfilled)"),
        ("afterok:1?afterok:2", {"1": BADLY, "2": WAITING}, "open", "afterok:1(failed)?afterok:2(unfulfilled)"),
        ("afterok:1?afterok:2", {"1": BADLY, "2": WELL}, "met", ""),
        ("after:1+5", {"1": WAITING}, "open", "after:1+5(unfulfilled)"),
    ],
)
def test_whole_dependencies(text: str, fates: dict[str, Fate], whole: str, shown: str) -> None:
    def ask(term: Term) -> Met:
        return judge(term, fates[term.job], 110.0)

    assert weigh(parse_dependency(text), ask) == (whole, shown)


@pytest.mark.parametrize("text", ["", "sometime:1", "afterok", "afterok:x", "afterok:1+5", "afterok:1,after:2?after:3", "singleton:1"])  # fmt: skip
def test_wrong_dependencies(text: str) -> None:
    with pytest.raises(ValueError):
        parse_dependency(text)


def test_a_reservation_lets_in_its_own_jobs_and_those_that_end_before_it() -> None:
    found = SimReservation("m", ("a",), start=100.0, end=200.0)
    assert found.admits("a", 0.0, 99.0, "") and not found.admits("a", 0.0, 101.0, "")
    assert found.admits("b", 150.0, 999.0, "") and not found.admits("b", 150.0, 1.0, "m")
    assert found.admits("a", 150.0, 999.0, "m") and not found.admits("a", 50.0, 1.0, "m")
    assert found.node_flags("a", 150.0) == ["RESERVED", "MAINTENANCE"]
    assert found.node_flags("a", 200.0) == found.node_flags("b", 150.0) == []
