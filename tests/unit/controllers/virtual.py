"""A loop whose time jumps to the next timer as soon as nothing else is left to do: hours pass in milliseconds.

With `LoopClock` everything that sleeps, on the clock or in asyncio itself, stands on the same virtual time.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

START = 1_800_000_000.0


class Stuck(Exception):
    """Every task waits for something that no timer will bring."""


class _Jump(selectors.SelectSelector):
    """Never waits: what the loop would have waited is added to its time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            if timeout is None:
                raise Stuck("every task waits and no timer runs")
            self.time += max(0.0, timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.time


class LoopClock:
    """The running loop's time as a `Clock`; `wall` shifts Unix time alone."""

    def __init__(self, start: float = START) -> None:
        self.start = start
        self.wall = 0.0

    def now(self) -> float:
        return self.start + asyncio.get_running_loop().time() + self.wall

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work` on a virtual loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """An async test on a virtual loop of its own; `given` goes above it."""

    @functools.wraps(test)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(test(*args, **kwargs))

    return inner
