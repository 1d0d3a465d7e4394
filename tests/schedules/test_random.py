"""Random schedules of faults, crashes and persons' acts over the simulator: the invariants hold and all comes to its end.

`SLINKYTUI_NIGHTLY=1` runs 2,000 instead of 200. A schedule that fails is shrunk and written to the file that the message
names; `python -m tests.schedules.replay FILE` runs it again and tells what happened. Once mended it moves to `found/`.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.schedules.acts import Schedule, Step, read, schedules, write
from tests.schedules.lived import live
from tests.unit.controllers.virtual import run

NIGHTLY = bool(os.environ.get("SLINKYTUI_NIGHTLY"))
FOUND = Path(__file__).parent / "found"
LAST = Path(tempfile.gettempdir()) / "slinkytui-schedule.json"
SEEN: Counter[str] = Counter()


def held(schedule: Schedule) -> None:
    story = run(live(schedule))
    SEEN.update(schedules=1, requests=story.requests, deleted=story.deleted, jobs=story.jobs)
    if story.broken:
        write(LAST, schedule)
        raise AssertionError("\n".join([*story.broken, f"python -m tests.schedules.replay {LAST}"]))


@settings(
    max_examples=2_000 if NIGHTLY else 200, deadline=None, derandomize=not NIGHTLY, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(schedules)
def test_whatever_happens_no_job_is_killed_and_all_is_settled(schedule: list[Step]) -> None:
    held(schedule)


def test_there_was_something_to_see() -> None:
    """The schedules before were no empty ones."""
    if not SEEN["schedules"]:
        pytest.fail("runs after the schedules")
    print(dict(SEEN))
    assert SEEN["deleted"] > SEEN["schedules"] / 2
    assert SEEN["requests"] > 10 * SEEN["schedules"]


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.json")), ids=lambda p: p.stem)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    held(read(path))
