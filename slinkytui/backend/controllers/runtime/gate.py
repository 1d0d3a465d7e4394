"""The gate before every write: it asks at that very moment whether the lease is held.

A process that was suspended wakes with an old belief. Hence no flag that somebody else must lower in time: the answer is
computed from two clocks at each question, and a write under way ends before anybody else may start.
"""

from __future__ import annotations

import math
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeVar

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.waiting import within
from slinkytui.backend.errors import SlinkyError

T = TypeVar("T")


class NotLeading(SlinkyError):
    """The write was not sent, or was cut off: the lease is not ours (any more)."""

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(f"{what}: not written, the lease is not held", detail=detail, retryable=True)


class Leading(Protocol):
    @property
    def slack_s(self) -> float:
        """Seconds after the end of `left` in which what was sent may still arrive; then others may hold the lease."""
        ...

    def left(self) -> float:
        """Seconds for which writes may be sent from now on; 0 or less: none."""
        ...


class Alone:
    """Leads always: for an engine that runs without a lease."""

    slack_s: Final = math.inf

    def left(self) -> float:
        return math.inf


class Gate:
    def __init__(self, leading: Leading, clock: Clock) -> None:
        self._leading, self._clock = leading, clock

    def check(self, what: str) -> float:
        """The seconds within which the write has to be through (may be inf). Raises NotLeading."""
        left = self._leading.left()
        if left <= 0:
            raise NotLeading(what)
        return left + self._leading.slack_s

    async def write(self, what: str, act: Coroutine[Any, Any, T]) -> T:
        """The result of `act`, which is never begun without the lease and is cut off when the lease ends."""
        try:
            seconds = self.check(what)
        except NotLeading:
            act.close()
            raise
        if seconds == math.inf:
            return await act
        try:
            return await within(self._clock, seconds, act)
        except TimeoutError as error:
            raise NotLeading(what, "cut off; whether it was carried out is not known") from error
