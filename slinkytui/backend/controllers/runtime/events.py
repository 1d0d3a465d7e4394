"""Events for people, told once and counted when they repeat. Recording never waits and never fails.

The same reason and text about the same object is one event with a count. Many like it with ever new texts become one
combined event, and an object that has too much to say is cut short. Writing is a task of its own, with retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, Protocol

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.waiting import cancelled, within
from slinkytui.backend.errors import Conflict, NotFound, SlinkyError

log = logging.getLogger(__name__)

NOTE_BYTES: Final = 1024
WORD: Final = 128
NORMAL, WARNING = "Normal", "Warning"
COMBINED: Final = "(combined from similar events): "


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds."""

    similar: int = 10
    """As many events with one reason about one object stand alone within `window_s`; what comes then is combined."""
    window_s: float = 600.0
    burst: int = 25
    """As many new events about one object at once; then one in `refill_s`. Counting on costs nothing."""
    refill_s: float = 300.0
    series_s: float = 60.0
    """A count is written this often at most."""
    idle_s: float = 360.0
    """After so long without repetition its next occurrence is an event of its own."""
    waiting: int = 1000
    """Events that wait for the server; more are dropped."""
    tries: int = 12
    retry_s: float = 10.0
    call_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Ref:
    """The object that an event is about; `namespace` "" for objects of the whole cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """As the server gets it. Times in Unix seconds; `count` 1 is a single occurrence."""

    name: str
    regarding: Ref
    type: str
    reason: str
    action: str
    note: str
    at: float
    last: float
    count: int = 1
    related: Ref | None = None


class EventSink(Protocol):
    """Errors are those of `backend.errors`."""

    async def create(self, event: Event) -> None: ...

    async def count(self, event: Event) -> None:
        """Set how often it occurred and when last. Raises NotFound if the server has forgotten it."""
        ...


@dataclass(frozen=True, slots=True)
class _Key:
    regarding: Ref
    type: str
    reason: str
    action: str
    related: Ref | None
    note: str


@dataclass(slots=True)
class _Told:
    event: Event
    touched: float
    written: float = 0.0
    """Monotonic times of the last occurrence and of the last write."""
    created: bool = False
    written_count: int = 0
    tries: int = 0
    again_at: float = 0.0

    @property
    def dirty(self) -> bool:
        return self.written_count < self.event.count


@dataclass(slots=True)
class _Window:
    begun: float
    notes: set[str]


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class EventStats:
    written: int = 0
    combined: int = 0
    spam: int = 0
    dropped: int = 0
    """Not written: too many waited, or the server refused them."""


def cut(text: str, limit: int = NOTE_BYTES) -> str:
    """At most `limit` bytes of UTF-8, the cut marked with an ellipsis; control characters are spaces."""
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[: limit - 3].decode("utf-8", "ignore") + "…"


class Recorder:
    """A helper of the manager. `record` may be called at any time; what was recorded before `start` is written then."""

    def __init__(self, sink: EventSink, clock: Clock, *, limits: Limits | None = None) -> None:
        self.stats = EventStats()
        self._sink, self._clock, self._limits = sink, clock, limits or Limits()
        self._told: OrderedDict[_Key, _Told] = OrderedDict()
        self._windows: dict[_Key, _Window] = {}
        self._buckets: dict[Ref, _Bucket] = {}
        self._serial = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._refused: set[str] = set()

    def record(
        self, regarding: Ref, reason: str, note: str, *, action: str, type: str = NORMAL, related: Ref | None = None
    ) -> None:
        """Something happened. `note` is text as it is, never a format."""
        now = self._clock.monotonic()
        # An event without an action is refused by the server.
        key = _Key(regarding, type, cut(reason, WORD), cut(action or reason, WORD), related, cut(note))
        told = self._live(key, now)
        if told is None:
            key = self._combined(key, now)
            told = self._live(key, now)
        if told is not None:
            told.touched = now
            told.event = replace(told.event, count=told.event.count + 1, last=self._clock.now())
        elif not self._new(key, now):
            return
        self._told.move_to_end(key)
        self._wake.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="events")

    async def stop(self, grace_s: float) -> bool:
        """Whether everything was written within the grace; then nothing is written any more."""
        if self._task is not None:
            await cancelled(self._task)
            self._task = None
        try:
            if grace_s > 0:
                await within(self._clock, grace_s, self._flush(last=True))
        except TimeoutError:
            pass
        return not any(told.dirty for told in self._told.values())

    # -- what becomes of an occurrence

    def _combined(self, key: _Key, now: float) -> _Key:
        """The key itself, or that of the combined event if there are many like it."""
        group = replace(key, note="")
        window = self._windows.get(group)
        if window is None or now - window.begun > self._limits.window_s:
            window = self._windows[group] = _Window(now, set())
        if key.note in window.notes or len(window.notes) < self._limits.similar:
            window.notes.add(key.note)
            return key
        self.stats.combined += 1
        found = next((k for k in reversed(self._told) if _is_combined(k) and replace(k, note="") == group), None)
        return found or replace(key, note=cut(COMBINED + key.note))

    def _live(self, key: _Key, now: float) -> _Told | None:
        """The event that this occurrence is another one of."""
        told = self._told.get(key)
        if told is None or (not told.dirty and now - told.touched > self._limits.idle_s):
            return None
        return told

    def _new(self, key: _Key, now: float) -> bool:
        limits = self._limits
        bucket = self._buckets.setdefault(key.regarding, _Bucket(limits.burst, now))
        bucket.tokens = min(limits.burst, bucket.tokens + (now - bucket.at) / limits.refill_s)
        bucket.at = now
        if bucket.tokens < 1:
            self.stats.spam += 1
            return False
        if len(self._told) >= limits.waiting and sum(t.dirty for t in self._told.values()) >= limits.waiting:
            self.stats.dropped += 1
            return False
        bucket.tokens -= 1
        self._serial += 1
        wall = self._clock.now()
        # Names of events are unique by time; the serial keeps two of one moment apart.
        name = f"{key.regarding.name[:200]}.{int(wall * 1e6):x}{self._serial % 4096:03x}"
        event = Event(name, key.regarding, key.type, key.reason, key.action, key.note, wall, wall, related=key.related)
        self._told[key] = _Told(event, now)
        return True

    # -- writing

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            soonest = await self._flush()
            waits: list[asyncio.Task[object]] = [asyncio.create_task(self._wake.wait())]
            if soonest is not None:
                waits.append(asyncio.create_task(self._clock.sleep(soonest)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await cancelled(*waits)

    async def _flush(self, *, last: bool = False) -> float | None:
        """Write what is due; the seconds until more will be, None if nothing waits. `last`: everything is due."""
        soonest: float | None = None
        self._forget()
        for key, told in list(self._told.items()):
            if not told.dirty:
                continue
            due = max(told.again_at, told.written + self._limits.series_s if told.written_count else 0.0)
            wait = due - self._clock.monotonic()
            if wait <= 0 or last:
                await self._write(key, told)
                wait = told.again_at - self._clock.monotonic() if told.dirty else self._limits.series_s
            if told.dirty:
                soonest = wait if soonest is None else min(soonest, wait)
        return None if soonest is None else max(0.001, soonest)

    async def _write(self, key: _Key, told: _Told) -> None:
        event, now = told.event, self._clock.monotonic()
        try:
            await within(self._clock, self._limits.call_s, self._send(told, event))
        except (SlinkyError, TimeoutError) as error:
            told.tries += 1
            told.again_at = now + self._limits.retry_s
            lasting = isinstance(error, SlinkyError) and not error.retryable
            if lasting or told.tries >= self._limits.tries:
                self._give_up(key, error)
            return
        told.written, told.written_count, told.tries, told.created = now, event.count, 0, True
        self.stats.written += 1

    async def _send(self, told: _Told, event: Event) -> None:
        if told.created:
            try:
                await self._sink.count(event)
                return
            except NotFound:
                # The server keeps events for an hour; it is told anew, under its name and with its count.
                pass
        try:
            await self._sink.create(event)
        except Conflict:
            # An earlier try arrived, its answer did not.
            if event.count > 1:
                await self._sink.count(event)

    def _give_up(self, key: _Key, error: Exception) -> None:
        self._told.pop(key, None)
        self.stats.dropped += 1
        text = error.line() if isinstance(error, SlinkyError) else str(error)
        if text not in self._refused:
            if len(self._refused) < 100:
                self._refused.add(text)
            log.warning("an event (%s, %s) could not be written: %s", key.reason, key.regarding.name, text)

    def _forget(self) -> None:
        """What no longer repeats is not kept."""
        now = self._clock.monotonic()
        idle = self._limits.idle_s
        for key in [k for k, t in self._told.items() if not t.dirty and now - t.touched > idle]:
            del self._told[key]
        for group in [g for g, w in self._windows.items() if now - w.begun > self._limits.window_s]:
            del self._windows[group]
        full = self._limits.burst * self._limits.refill_s
        for ref in [r for r, b in self._buckets.items() if now - b.at > full]:
            del self._buckets[ref]


def _is_combined(key: _Key) -> bool:
    return key.note.startswith(COMBINED)
