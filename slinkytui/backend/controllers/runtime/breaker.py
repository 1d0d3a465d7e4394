"""A breaker for a server that many keys depend on: while it is away nobody waits for it.

After some failures in a row it is asked no more for a while, which doubles up to a ceiling; then one caller tries, and
only if that one gets an answer all may. An answer that refuses is an answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.waiting import within
from slinkytui.backend.errors import SlinkyError, Unreachable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """`failures` in a row open the breaker; times in seconds. `call_s` is the deadline of each call."""

    failures: int = 3
    first_s: float = 1.0
    ceiling_s: float = 30.0
    call_s: float = 30.0


class Breaker:
    """One for each server. `what` names it in errors. `jitter` gives numbers from 0 up to 1."""

    def __init__(
        self, what: str, clock: Clock, *, patience: Patience | None = None, jitter: Callable[[], float] = random.random
    ) -> None:
        self.what, self.patience = what, patience or Patience()
        self.away_since = 0.0
        """Unix seconds of the first failure in a row; 0 while it answers."""
        self.error = ""
        self._clock, self._jitter = clock, jitter
        self._failures = 0
        self._closed_at = 0.0
        """Monotonic time from which one may try; only of meaning after enough failures."""
        self._failed_at = 0.0
        self._trying = False

    @property
    def open(self) -> bool:
        """Whether callers are turned away (but for the one who tries)."""
        return self._failures >= self.patience.failures

    def wait_s(self) -> float:
        """Seconds until somebody may try again; 0: now."""
        return max(0.0, self._closed_at - self._clock.monotonic()) if self.open else 0.0

    async def call(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of `act` within its deadline. Raises Unreachable at once while the server is known to be away."""
        trying = self.open
        if trying and (self._trying or self.wait_s() > 0):
            hint = f"it is asked again in {self.wait_s():.0f} s"
            raise Unreachable(f"{self.what} is away", detail=self.error, hint=hint)
        self._trying = self._trying or trying
        started = self._clock.monotonic()
        try:
            found = await within(self._clock, self.patience.call_s, act())
        except TimeoutError as error:
            self._failed(f"no answer within {self.patience.call_s:g} s", started)
            raise Unreachable(f"{self.what} does not answer", detail=self.error) from error
        except Unreachable as error:
            self._failed(error.line(), started)
            raise
        except SlinkyError:
            self._answered()
            raise
        finally:
            if trying:
                self._trying = False
        self._answered()
        return found

    def _failed(self, text: str, started: float) -> None:
        self.error = text
        self.away_since = self.away_since or self._clock.now()
        if self.open and started < self._failed_at:
            # Calls that were under way together tell of one and the same failure.
            return
        self._failed_at = self._clock.monotonic()
        self._failures += 1
        beyond = self._failures - self.patience.failures
        if beyond >= 0:
            pause = min(self.patience.ceiling_s, self.patience.first_s * 2.0 ** min(beyond, 60))
            self._closed_at = self._clock.monotonic() + pause * (1.0 - 0.1 * self._jitter())

    def _answered(self) -> None:
        self._failures, self.away_since, self.error = 0, 0.0, ""
