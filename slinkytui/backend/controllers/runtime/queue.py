"""The work queue: keys, never events. A key stands in it once and is worked on by one worker at a time.

Added again it keeps the higher priority and the earlier moment. Added while it is worked on it comes again afterwards.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.stats import QueueStats

K = TypeVar("K", bound=Hashable)

BASE_S: Final = 0.005
CEILING_S: Final = 60.0
"""The longest back-off. The usual 1000 s makes a person who has mended the cause wait a quarter of an hour, or restart
the operator; a key that fails once a minute costs nothing that matters."""
EARLY_S: Final = 1e-6
"""A clock may wake a hair early; what is due by this much is due."""
JITTER: Final = 0.1
"""The share of a back-off that may be taken off, so that keys that failed together do not come back together."""
INITIAL: Final = -100
"""The priority of what is looked at only because everything is, at a start or at the first list of a source: what happens
meanwhile goes before it."""


class QueueClosed(Exception):
    """The queue was shut down and hands out nothing more."""


class State(StrEnum):
    RUNNING = "running"
    READY = "ready"
    WAITING = "waiting"
    REFUSED = "refused"
    """Not in the queue: its last reconcile was refused for good."""


@dataclass(frozen=True, slots=True)
class QueueRow(Generic[K]):
    """One key as the Operator screen shows it. `since` is in Unix seconds, `due_in` in seconds from now (0: now)."""

    key: K
    state: State
    since: float
    due_in: float
    priority: int
    retries: int
    error: str
    error_at: float
    again: bool
    """Running, and wanted again afterwards."""


@dataclass(slots=True)
class _Entry(Generic[K]):
    key: K
    due: float
    priority: int
    since: float
    stamp: int = 0
    ready: bool = False


@dataclass(slots=True)
class _Trouble:
    failures: int
    error: str
    at: float


class Queue(Generic[K]):
    """`jitter` gives numbers from 0 up to 1."""

    def __init__(
        self, clock: Clock, *, base_s: float = BASE_S, ceiling_s: float = CEILING_S,
        jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        self._clock, self._base, self._ceiling, self._jitter = clock, base_s, ceiling_s, jitter
        self.stats = QueueStats()
        self._order = itertools.count(1)
        self._pending: dict[K, _Entry[K]] = {}
        self._again: dict[K, _Entry[K]] = {}
        self._at_work: dict[K, tuple[float, float, int]] = {}
        """Monotonic and Unix seconds of its start, and its priority."""
        self._trouble: dict[K, _Trouble] = {}
        self._waiting: list[tuple[float, int, _Entry[K]]] = []
        self._ready: list[tuple[int, int, _Entry[K]]] = []
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: tuple[float, asyncio.Task[None]] | None = None
        self._closed = False
        self._idle: list[asyncio.Future[None]] = []

    # -- wanting a key

    def add(self, key: K, *, after: float = 0.0, priority: int = 0) -> None:
        """Want this key in `after` seconds at the latest. Nothing happens once the queue is shut down."""
        if self._closed:
            return
        place = self._again if key in self._at_work else self._pending
        due = self._clock.monotonic() + max(0.0, after)
        entry = place.get(key)
        if entry is None:
            entry = place[key] = _Entry(key, due, priority, self._clock.now())
            self.stats.adds += 1
        elif due >= entry.due and priority <= entry.priority:
            return
        else:
            entry.due, entry.priority = min(entry.due, due), max(entry.priority, priority)
        if place is self._pending:
            self._push(entry)
            self._wake()

    def retry(self, key: K, error: str, *, within: float | None = None) -> float:
        """Want a key again after a failure: the seconds of its back-off, `within` at most."""
        trouble = self._note(key, error)
        delay = min(self._ceiling, self._base * 2.0 ** min(trouble.failures, 60))
        delay *= 1.0 - JITTER * self._jitter()
        delay = delay if within is None else min(delay, max(0.0, within))
        trouble.failures += 1
        self.stats.retries += 1
        self.add(key, after=delay)
        return delay

    def refuse(self, key: K, error: str) -> None:
        """Keep the error for people to see, and its back-off at the start."""
        self._note(key, error).failures = 0

    def forget(self, key: K) -> None:
        """It succeeded: no back-off and no error any more."""
        self._trouble.pop(key, None)

    def _note(self, key: K, error: str) -> _Trouble:
        trouble = self._trouble.setdefault(key, _Trouble(0, "", 0.0))
        trouble.error, trouble.at = error, self._clock.now()
        return trouble

    # -- working on a key

    async def get(self) -> K:
        """The next key, which is the caller's until `done`. Raises QueueClosed."""
        while True:
            self._promote()
            entry = self._pop()
            if entry is not None:
                now = self._clock.monotonic()
                self._at_work[entry.key] = (now, self._clock.now(), entry.priority)
                self.stats.queue_duration.observe(max(0.0, now - entry.due))
                return entry.key
            if self._closed:
                raise QueueClosed
            await self._woken()

    def done(self, key: K) -> None:
        """The worker is through with the key, whatever came of it."""
        started, _, _ = self._at_work.pop(key)
        self.stats.work_duration.observe(max(0.0, self._clock.monotonic() - started))
        entry = self._again.pop(key, None)
        if entry is not None and not self._closed:
            self._pending[key] = entry
            self._push(entry)
            self._wake()
        self._tell_drained()

    # -- the end

    def shut_down(self, *, drain: bool = True) -> None:
        """Take nothing new. What is ready is still handed out if `drain`; what waits for its moment is dropped."""
        self._promote()
        self._closed = True
        self._again.clear()
        for entry in list(self._pending.values()):
            if not (drain and entry.ready):
                del self._pending[entry.key]
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        while self._getters:
            self._release_one()
        self._tell_drained()

    async def drained(self) -> None:
        """Wait until nothing is ready and nothing is worked on; only after `shut_down`."""
        while self._pending or self._at_work:
            future = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future

    def _tell_drained(self) -> None:
        if self._closed and not self._at_work and not self._pending:
            for future in self._idle:
                if not future.done():
                    future.set_result(None)
            self._idle.clear()

    # -- what people and metrics see

    @property
    def depth(self) -> int:
        """Keys that are ready and that no worker has taken."""
        self._promote()
        return sum(entry.ready for entry in self._pending.values())

    def unfinished(self) -> tuple[float, float]:
        """Seconds of all work under way together, and of the longest."""
        now = self._clock.monotonic()
        ages = [now - started for started, _, _ in self._at_work.values()]
        return sum(ages), max(ages, default=0.0)

    def table(self) -> tuple[QueueRow[K], ...]:
        """Every key that is known: running, ready, waiting and refused, each in the order of time."""
        self._promote()
        now = self._clock.monotonic()
        rows = [
            self._row(key, State.RUNNING, since, 0.0, priority) for key, (_, since, priority) in self._at_work.items()
        ]
        ready = sorted((e for e in self._pending.values() if e.ready), key=lambda e: (-e.priority, e.stamp))
        waiting = sorted((e for e in self._pending.values() if not e.ready), key=lambda e: (e.due, e.stamp))
        rows += [self._row(e.key, State.READY, e.since, 0.0, e.priority) for e in ready]
        rows += [self._row(e.key, State.WAITING, e.since, e.due - now, e.priority) for e in waiting]
        known = {row.key for row in rows}
        rows += [self._row(k, State.REFUSED, t.at, 0.0, 0) for k, t in self._trouble.items() if k not in known]
        return tuple(rows)

    def _row(self, key: K, state: State, since: float, due_in: float, priority: int) -> QueueRow[K]:
        trouble = self._trouble.get(key) or _Trouble(0, "", 0.0)
        return QueueRow(
            key, state, since, due_in, priority, trouble.failures, trouble.error, trouble.at, key in self._again
        )

    # -- inside

    def _push(self, entry: _Entry[K]) -> None:
        entry.stamp = next(self._order)
        if entry.ready:
            heapq.heappush(self._ready, (-entry.priority, entry.stamp, entry))
        else:
            heapq.heappush(self._waiting, (entry.due, entry.stamp, entry))
        self._tidy()

    def _tidy(self) -> None:
        """Places that an entry has left stay in the heaps until they come up; too many of them are thrown out."""
        most = 2 * len(self._pending) + 64
        if len(self._waiting) > most:
            self._waiting = [item for item in self._waiting if item[1] == item[2].stamp]
            heapq.heapify(self._waiting)
        if len(self._ready) > most:
            self._ready = [item for item in self._ready if item[1] == item[2].stamp]
            heapq.heapify(self._ready)

    def _promote(self) -> None:
        now = self._clock.monotonic()
        while self._waiting:
            due, stamp, entry = self._waiting[0]
            live = stamp == entry.stamp and self._pending.get(entry.key) is entry
            if live and due > now + EARLY_S:
                return
            heapq.heappop(self._waiting)
            if live:
                entry.ready = True
                self._push(entry)

    def _pop(self) -> _Entry[K] | None:
        while self._ready:
            _, stamp, entry = heapq.heappop(self._ready)
            if stamp == entry.stamp and self._pending.get(entry.key) is entry:
                del self._pending[entry.key]
                return entry
        return None

    async def _woken(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        self._arm()
        try:
            await getter
        except asyncio.CancelledError:
            if getter.cancelled():
                if getter in self._getters:  # whoever released the next may have passed it over already
                    self._getters.remove(getter)
            else:
                # Its turn came, and it is leaving: the turn is another's.
                self._release_one()
            raise

    def _release_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake(self) -> None:
        if not self._getters:
            return
        self._promote()
        for _ in range(min(len(self._ready), len(self._getters))):
            self._release_one()
        if self._getters:
            self._arm()

    def _arm(self) -> None:
        """One timer, for the earliest moment."""
        if not self._waiting:
            return
        due = self._waiting[0][0]
        if self._timer is not None:
            if self._timer[0] <= due:
                return
            self._timer[1].cancel()
        self._timer = (due, asyncio.get_running_loop().create_task(self._tick(due)))

    async def _tick(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._timer = None
        self._wake()
