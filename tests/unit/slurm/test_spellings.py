"""Durations, job ids and figures: what is written can be read again, and nonsense is refused with an example."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.models import INFINITE, Diag, License, Share, SlurmName
from slinkytui.backend.slurm.figures import diag_row, license_row, share_row
from slinkytui.backend.slurm.jobids import JobSpelling, format_tasks, has_task, parse_job_id, parse_tasks
from slinkytui.backend.slurm.times import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5_400), ("30:00", 1_800), ("1:30:00", 5_400), ("1-12", 129_600), ("1-12:30", 131_400),
        ("1-12:30:15", 131_415), ("UNLIMITED", INFINITE), ("infinite", INFINITE), ("0", 0),
    ],
)  # fmt: skip
def test_durations_as_sbatch_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "-5", "1-", "1.5"])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no Slurm duration"):
        parse_duration(text)


@given(st.integers(0, 10_000_000) | st.just(INFINITE))
def test_a_duration_is_read_as_it_was_written(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("13", JobSpelling(13)), ("13_4", JobSpelling(13, (4,))), ("13_[2-5]", JobSpelling(13, (2, 3, 4, 5))),
        ("13_[1,3-9:3%2]", JobSpelling(13, (1, 3, 6, 9), 2)), ("10+1", JobSpelling(10, het=1)),
        ("13_4.batch", JobSpelling(13, (4,), step="batch")), ("7.0", JobSpelling(7, step="0")),
    ],
)  # fmt: skip
def test_job_ids(text: str, found: JobSpelling) -> None:
    assert parse_job_id(text) == found


@pytest.mark.parametrize(
    "text", ["", "x", "13_", "13_[", "13_[5-2]", "13_[a]", "13_[1%0]", "4294967296", "13 14", "13_[1-9999999]"]
)
def test_no_job_id(text: str) -> None:
    with pytest.raises(ValueError, match="no "):
        parse_job_id(text)


@given(st.sets(st.integers(0, 5_000), min_size=1, max_size=60), st.none() | st.integers(1, 99))
def test_tasks_are_read_as_they_were_written(tasks: set[int], limit: int | None) -> None:
    ordered = tuple(sorted(tasks))
    assert parse_tasks(format_tasks(ordered, limit)) == (ordered, limit)


@given(
    st.builds(
        JobSpelling,
        st.integers(1, 2**32 - 1),
        st.lists(st.integers(0, 500), max_size=9).map(lambda t: tuple(sorted(set(t)))),
    )
)
def test_a_job_id_is_read_as_it_was_written(job: JobSpelling) -> None:
    assert parse_job_id(str(job)) == job


@pytest.mark.parametrize(
    ("text", "task", "has"),
    [
        ("0-4", 3, True),
        ("0-4", 5, False),
        ("1-9:3%2", 4, True),
        ("1-9:3", 5, False),
        ("1,3,...%2", 3, True),
        ("1,3,...%2", 9, None),
    ],
)
def test_a_task_of_an_array(text: str, task: int, has: bool | None) -> None:
    assert has_task(text, task) is has


def test_licences_and_shares() -> None:
    found = {"LicenseName": "matlab", "Total": 10, "Used": 4, "Free": 6, "Reserved": 0, "Remote": False}
    assert license_row(found, "c") == License(SlurmName("c", "matlab"), 10, 4, 6, 0, False)
    share: dict[str, Any] = {
        "cluster": "c", "name": "alice", "parent": "ml", "type": ["USER", "ASSOCIATION"], "shares": {"set": True, "number": 1},
        "shares_normalized": {"set": True, "number": 0.5}, "usage": 7, "effective_usage": {"set": False, "number": 0.0},
        "fairshare": {"factor": {"set": True, "number": 0.25}, "level": {"set": True, "number": 1.0}},
    }  # fmt: skip
    assert share_row(share, "c") == Share("c", "ml", "alice", "ml", 1, 0.5, 7, None, 0.25)
    assert share_row({"name": "ml", "parent": "root", "type": ["ASSOCIATION"]}, "c") == Share("c", "ml", "", "root")


def test_figures_that_are_not_there_are_unknown() -> None:
    assert diag_row({}) == Diag()
    some = diag_row({"jobs_pending": 3, "req_time": {"set": True, "number": 5}, "bf_active": True})
    assert (some.jobs_pending, some.taken, some.bf_active, some.jobs_running) == (3, 5, True, None)
