"""The simulated cluster's time: real time, faster or slower, switchable while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable


class SimClock:
    """`now` never jumps: a new speed counts from the moment of the switch. `real` gives monotonic seconds."""

    def __init__(self, speed: float, *, start: float | None = None, real: Callable[[], float] = time.monotonic) -> None:
        self.speed, self._real = speed, real
        self._since, self._at = real(), time.time() if start is None else start

    def now(self) -> float:
        """Unix seconds."""
        return self._at + (self._real() - self._since) * self.speed

    def set_speed(self, speed: float) -> None:
        self._at, self._since = self.now(), self._real()
        self.speed = speed
