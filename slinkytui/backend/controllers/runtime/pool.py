"""Writes side by side, as many as the server bears: no fixed rate that leaves an idle server idle.

The limit starts wide. Each answer in good time widens it a little; a "too many requests" halves it; answers that take
much longer than they used to narrow it. One failure never keeps the other items from their turn.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from slinkytui.backend.clock import Clock

T = TypeVar("T")
R = TypeVar("R")

TRIES: Final = 8
"""How often an item is sent that the server put off each time."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`start`, `least` and `most` count calls under way; times in seconds."""

    start: int = 64
    least: int = 4
    most: int = 256
    slow_factor: float = 4.0
    slow_s: float = 0.25
    """An answer is slow if it took longer than this and than `slow_factor` times the best of late."""
    window_s: float = 30.0
    """How long the best is remembered (twice this at most): a server that became slower for good is not slow for ever."""


class Limiter:
    """One for each server, shared by all that write to it. Who came first is served first."""

    def __init__(self, clock: Clock, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self.limit = float(self.bounds.start)
        self.under_way = 0
        self.pushed_back = 0
        """How often the server said that it is too much."""
        self._clock = clock
        self._best, self._best_before, self._window_end = math.inf, math.inf, 0.0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._narrowed_at = -1.0
        self._full = False

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the places."""
        await self._enter()
        try:
            yield
        finally:
            self.under_way -= 1
            self._admit()

    def answered(self, seconds: float, sent: float) -> None:
        """An answer came after so many seconds; `sent` is the monotonic time of the request."""
        now = self._clock.monotonic()
        if now >= self._window_end:
            self._best_before, self._best, self._window_end = self._best, math.inf, now + self.bounds.window_s
        self._best = min(self._best, seconds)
        best = min(self._best, self._best_before)
        if seconds > self.bounds.slow_s and seconds > self.bounds.slow_factor * best:
            self._narrow(0.8, sent)
        elif self._full:
            # Only a limit that was reached has been tried out.
            self.limit = min(self.bounds.most, self.limit + 1 / self.limit)

    def refused(self, sent: float) -> None:
        """The server said that it is too much."""
        self.pushed_back += 1
        self._narrow(0.5, sent)

    def _narrow(self, factor: float, sent: float) -> None:
        """Once for all requests that were under way together: they tell of the same moment."""
        if sent > self._narrowed_at:
            self._narrowed_at = self._clock.monotonic()
            self.limit = max(self.bounds.least, min(self.limit, self.under_way) * factor)

    async def _enter(self) -> None:
        if self._waiters or self.under_way >= int(self.limit):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.cancelled():
                    self._waiters.remove(waiter)
                else:
                    self.under_way -= 1
                    self._admit()
                raise
        else:
            self._take()

    def _take(self) -> None:
        self.under_way += 1
        self._full = self.under_way >= int(self.limit)

    def _admit(self) -> None:
        while self._waiters and self.under_way < int(self.limit):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._take()
                waiter.set_result(None)


@dataclass(frozen=True, slots=True)
class Result(Generic[T, R]):
    """What became of one item: a value, an error, or neither if it was not begun."""

    item: T
    value: R | None = None
    error: Exception | None = None
    begun: bool = True

    @property
    def ok(self) -> bool:
        return self.begun and self.error is None


PutOff = Callable[[Exception], float | None]
"""The seconds after which the server wants to be asked again, if an error says just that and nothing was carried out."""


class Pool:
    """`put_off` tells the server's "too much" from other errors; only such requests are sent again."""

    def __init__(self, limiter: Limiter, clock: Clock, put_off: PutOff = lambda _: None) -> None:
        self.limiter, self._clock, self._put_off = limiter, clock, put_off

    async def run_all(
        self, items: Iterable[T], act: Callable[[T], Coroutine[Any, Any, R]], *, slow_start: bool = False
    ) -> list[Result[T, R]]:
        """Act on every item and go on past failures; results in the order of the items.

        `slow_start` is for creates, of which the first refusal foretells the others': 1, 2, 4 … at a time, and nothing
        more is begun after a batch with a failure. Cancelled, it cancels what is under way.
        """
        todo = list(items)
        results: list[Result[T, R]] = []
        batches = _doubling(todo) if slow_start else iter([todo])
        for batch in batches:
            results += await self._batch(batch, act)
            if slow_start and not all(result.ok for result in results):
                break
        return results + [Result(item, begun=False) for item in todo[len(results) :]]

    async def _batch(self, items: Sequence[T], act: Callable[[T], Coroutine[Any, Any, R]]) -> list[Result[T, R]]:
        results: list[Result[T, R]] = [Result(item, begun=False) for item in items]
        places = iter(range(len(items)))

        async def runner() -> None:
            for at in places:
                results[at] = await self._one(items[at], act)

        runners = [asyncio.create_task(runner()) for _ in range(min(len(items), self.limiter.bounds.most))]
        try:
            if runners:
                await asyncio.wait(runners)
        finally:
            for task in runners:
                task.cancel()
        for task in runners:
            task.result()
        return results

    async def _one(self, item: T, act: Callable[[T], Coroutine[Any, Any, R]]) -> Result[T, R]:
        result: Result[T, R]
        for left in reversed(range(TRIES)):
            async with self.limiter.slot():
                sent = self._clock.monotonic()
                try:
                    value = await act(item)
                except Exception as error:  # noqa: BLE001  # a result like any other: the caller judges it
                    result, wait = Result(item, error=error), self._put_off(error)
                else:
                    result, wait = Result(item, value), None
                if wait is None:
                    self.limiter.answered(self._clock.monotonic() - sent, sent)
                else:
                    self.limiter.refused(sent)
            if wait is None or not left:
                break
            await self._clock.sleep(wait)
        return result


def _doubling(items: Sequence[T]) -> Iterator[Sequence[T]]:
    at, size = 0, 1
    while at < len(items):
        yield items[at : at + size]
        at, size = at + size, size * 2
