"""One of several processes leads: it holds a lease that it renews, and the others wait until it no longer does.

The rules are those of every Kubernetes operator, so that ours and others exclude each other. A candidate never reads
another machine's clock: it takes a lease that it has seen unchanged for its whole duration, on its own monotonic clock.
The holder counts from the moment at which it *sent* its last successful renewal, and believes in its lease for less time
than the others wait. Every write names the version that was read: of two takers one is refused.

Not excluded: a person deletes the lease, and a process that never saw it creates it anew. The old holder finds out at its
next renewal, or, if it cannot reach the server, stops at its deadline.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.waiting import within
from slinkytui.backend.errors import Conflict, NotFound, SlinkyError

log = logging.getLogger(__name__)

OPERATOR_LEASE: Final = "slurm-operator"
"""The name of the lease in the operator's namespace: upstream's operator and ours are after the same one."""
WEBHOOK_LEASE: Final = "slurm-operator-webhook"
RELEASED_S: Final = 1
"""The duration that stands in a lease that was given up."""
EARLY_S: Final = 1e-3
"""A clock may wake a hair early: a lease that ends within this is over."""
TOLERANCE_S: Final = 1.0
"""How far Unix time may run behind the monotonic clock between two renewals; more is a clock that was set back."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds. The holder stops writing `deadline_s` after its last renewal, others take over after `duration_s`."""

    duration_s: float = 15.0
    deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s < self.deadline_s < self.duration_s:
            raise ValueError("a lease needs 0 < retry < deadline < duration")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What stands in the lease. `holder` "" is nobody; times in Unix seconds; `version` is the server's, "" if new."""

    holder: str
    duration_s: float
    acquired: float
    renewed: float
    transitions: int = 0
    version: str = ""


class LeaseIO(Protocol):
    """The lease on the server. Errors are those of `backend.errors`."""

    async def read(self) -> LeaseRecord:
        """Raises NotFound."""
        ...

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        """As the server stored it. Raises Conflict if it is there already."""
        ...

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        """As the server stored it. Raises Conflict unless the lease still has this version, NotFound if it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class _Seen:
    """A record and the monotonic time at which it was first seen like this."""

    record: LeaseRecord
    at: float


@dataclass(frozen=True, slots=True)
class _Held:
    """Our lease, and both clocks when its last successful renewal was sent."""

    record: LeaseRecord
    sent: float
    sent_wall: float


def expires(seen: _Seen, timings: Timings) -> float:
    """The monotonic time from which the lease may be taken by others; -inf: it is free."""
    if not seen.record.holder:
        return -math.inf
    return seen.at + max(seen.record.duration_s, timings.duration_s)


def left(held: _Held, now: float, wall: float, timings: Timings) -> float:
    """Seconds for which the holder may still write, by the clock that is further ahead.

    The monotonic clock stands still while a machine is suspended, and Unix time may be set back: neither is asked alone.
    """
    passed, by_wall = now - held.sent, wall - held.sent_wall
    if by_wall < passed - TOLERANCE_S:
        return 0.0
    return timings.deadline_s - max(passed, by_wall)


@dataclass(frozen=True, slots=True)
class LeaseView:
    """For people. `renewed` is the moment that the holder wrote, in Unix seconds (0: unknown)."""

    holder: str
    ours: bool
    renewed: float
    transitions: int
    error: str


class Elector:
    """A candidate. `identity` is unique to this process. `jitter` gives numbers from 0 up to 1."""

    def __init__(
        self, io: LeaseIO, identity: str, clock: Clock, *, timings: Timings | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        if not identity:
            raise ValueError("a candidate needs an identity")
        self.identity, self.timings = identity, timings or Timings()
        self.slow_path = 0
        """Renewals that had to read the lease first."""
        self._io, self._clock, self._jitter = io, clock, jitter
        self._seen: _Seen | None = None
        self._held: _Held | None = None
        self._absent_since: float | None = None
        """Monotonic time at which a lease that we knew was first found to be gone."""
        self._unsure = False
        """A write of ours may have been carried out without an answer."""
        self._error = ""

    # -- what others ask

    @property
    def slack_s(self) -> float:
        return (self.timings.duration_s - self.timings.deadline_s) / 2

    def left(self) -> float:
        if self._held is None:
            return 0.0
        return left(self._held, self._clock.monotonic(), self._clock.now(), self.timings)

    def view(self) -> LeaseView:
        record = self._seen.record if self._seen else LeaseRecord("", 0.0, 0.0, 0.0)
        return LeaseView(record.holder, self.left() > 0, record.renewed, record.transitions, self._error)

    # -- the life of a candidate

    async def acquire(self) -> None:
        """Wait until the lease is held."""
        while True:
            if await self._attempt(self._take()) and self.left() > 0:
                log.info("the lease is held by %s", self.identity)
                return
            # Candidates that started together do not ask together.
            await self._clock.sleep(self.timings.retry_s * (1.0 + 0.2 * self._jitter()))

    async def hold(self) -> None:
        """Renew the lease; return when it is lost. Nothing is written any more from the end of `left` on."""
        while self._held is not None:
            await self._clock.sleep(min(self.timings.retry_s, max(0.0, self.left())))
            # Suspended for too long, or the clock was set: if nobody took it meanwhile, it was never lost.
            last = self.left() <= EARLY_S
            if not await self._attempt(self._renew()) and last:
                self._held = None
        log.warning("the lease is lost: %s", self._error or "another holds it")

    async def release(self) -> None:
        """Give the lease up, if it is ours or may be; to be called when nothing is written any more."""
        held, self._held = self._held, None
        if held is None and not self._unsure:
            return
        await self._attempt(self._give_up(held))

    # -- steps; each is true if the lease is ours now

    async def _attempt(self, step: Coroutine[Any, Any, bool]) -> bool:
        """A step with a deadline; its failure is kept for people."""
        try:
            done = await within(self._clock, self.timings.deadline_s / 2, step)
        except (SlinkyError, TimeoutError) as error:
            text = error.line() if isinstance(error, SlinkyError) else f"the lease: {error}"
            if text != self._error:
                log.warning("%s", text)
            self._error = text
            return False
        self._error = ""
        return done

    async def _take(self) -> bool:
        try:
            self._see(await self._io.read())
        except NotFound:
            if self._seen is not None:
                # Deleted, and whoever held it last, perhaps unseen by us, may still believe in it.
                now = self._clock.monotonic()
                self._absent_since = now if self._absent_since is None else self._absent_since
                if now <= self._absent_since + max(self._seen.record.duration_s, self.timings.duration_s):
                    return False
            return await self._write(self._mine(None), self._io.create)
        assert self._seen is not None
        record = self._seen.record
        if record.holder != self.identity and not self._expired(self._seen):
            return False
        return await self._write(self._mine(record), self._io.replace)

    async def _renew(self) -> bool:
        assert self._held is not None
        try:
            return await self._write(self._mine(self._held.record), self._io.replace)
        except (Conflict, NotFound):
            self.slow_path += 1
        # Somebody wrote: ourselves, without hearing the answer; a person, a label; or another holder.
        try:
            self._see(await self._io.read())
        except NotFound:
            # Others may have held it since, unless our own time never ran out.
            return self.left() > 0 and await self._write(self._mine(None), self._io.create)
        assert self._seen is not None
        if self._seen.record.holder != self.identity:
            self._held = None
            return False
        return await self._write(self._mine(self._seen.record), self._io.replace)

    async def _give_up(self, held: _Held | None) -> bool:
        try:
            record = held.record if held is not None and not self._unsure else await self._io.read()
            if record.holder == self.identity:
                now = self._clock.now()
                free = replace(record, holder="", duration_s=RELEASED_S, acquired=now, renewed=now)
                await self._io.replace(free)
        except (Conflict, NotFound):
            return False
        self._unsure = False
        return False

    async def _write(self, record: LeaseRecord, act: Callable[[LeaseRecord], Coroutine[Any, Any, LeaseRecord]]) -> bool:
        sent, sent_wall = self._clock.monotonic(), self._clock.now()
        self._unsure = True
        try:
            stored = await act(record)
        except (Conflict, NotFound):
            self._unsure = False
            raise
        self._unsure = False
        self._held = _Held(stored, sent, sent_wall)
        self._see(stored)
        return True

    def _mine(self, old: LeaseRecord | None) -> LeaseRecord:
        now = self._clock.now()
        ours = old is not None and old.holder == self.identity
        return LeaseRecord(
            self.identity, self.timings.duration_s, old.acquired if ours and old else now, now,
            0 if old is None else old.transitions + (not ours), "" if old is None else old.version,
        )  # fmt: skip

    def _see(self, record: LeaseRecord) -> None:
        self._absent_since = None
        if self._seen is None or self._seen.record != record:
            self._seen = _Seen(record, self._clock.monotonic())

    def _expired(self, seen: _Seen) -> bool:
        return self._clock.monotonic() > expires(seen, self.timings)
