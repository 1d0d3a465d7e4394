"""Outcomes of parts become the outcome of the pass."""

from __future__ import annotations

import pytest

from slinkytui.backend.controllers.runtime.outcome import After, Done, Outcome, Refused, Retry, merge
from tests.rules import holds


@holds("W19", "H7")
@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ((), Done()),
        ((Done(), Done()), Done()),
        ((After(30.0), After(10.0), Done()), After(10.0)),
        ((After(900.0), Retry("no answer")), Retry("no answer", 900.0)),
        ((Retry("a", 4.0), Retry("b"), After(2.0)), Retry("a; b", 2.0)),
        ((Retry("a"), Retry("a")), Retry("a")),
        ((Refused("bad field"), Done()), Refused("bad field")),
        ((Refused("bad field"), After(30.0)), After(30.0, "bad field")),
        ((Refused("bad field"), Retry("no answer")), Retry("no answer; bad field")),
        ((After(5.0, "x"), After(7.0, "y")), After(5.0, "x; y")),
    ],
)
def test_w19_the_smallest_delay_wins_and_no_error_is_lost(parts: tuple[Outcome, ...], whole: Outcome) -> None:
    assert merge(parts) == whole
