"""A clock on the virtual loop of the test."""

from __future__ import annotations

import pytest

from tests.unit.controllers.virtual import LoopClock


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock()
