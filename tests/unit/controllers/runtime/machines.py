"""Machines with clocks of their own that stop, sleep and jump, and a lease on a server behind a bad network."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from slinkytui.backend.controllers.runtime.lease import LeaseRecord
from slinkytui.backend.errors import Conflict, NotFound, Unreachable
from tests.unit.controllers.virtual import START

STOPPED, ASLEEP = "stopped", "asleep"
"""A stopped process misses time that its clocks count; on a machine asleep the monotonic clock stands still."""


def true_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Machine:
    """A clock as one machine sees it. Pauses are (from, until, kind), jumps of Unix time (at, by), both in true time."""

    rate: float = 1.0
    pauses: list[tuple[float, float, str]] = field(default_factory=list)
    jumps: list[tuple[float, float]] = field(default_factory=list)

    def monotonic(self) -> float:
        now = true_time()
        slept = sum(max(0.0, min(now, end) - start) for start, end, kind in self.pauses if kind == ASLEEP)
        return (now - slept) * self.rate

    def now(self) -> float:
        return START + true_time() + sum(by for at, by in self.jumps if at <= true_time())

    def paused_until(self) -> float:
        """The true time at which it goes on; now, if it runs."""
        now = true_time()
        ends = [end for start, end, _ in self.pauses if start <= now < end]
        return max(ends, default=now)

    async def goes_on(self) -> None:
        while (until := self.paused_until()) > true_time():
            await asyncio.sleep(until - true_time())

    async def sleep(self, seconds: float) -> None:
        target = self.monotonic() + max(0.0, seconds)
        await asyncio.sleep(0)
        await self.goes_on()
        while (left := target - self.monotonic()) > 0:
            await asyncio.sleep(max(1e-9, left / self.rate))
            await self.goes_on()


@dataclass
class Call:
    """The fate of one request: seconds there and back, and whether it or its answer is lost."""

    there: float = 0.01
    back: float = 0.01
    lost: bool = False
    unheard: bool = False


class Server:
    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.versions = itertools.count(1)
        self.writes = 0

    def read(self) -> LeaseRecord:
        if self.record is None:
            raise NotFound("lease: not found")
        return self.record

    def create(self, record: LeaseRecord) -> LeaseRecord:
        if self.record is not None:
            raise Conflict("lease: exists")
        return self._store(record)

    def replace(self, record: LeaseRecord) -> LeaseRecord:
        if self.read().version != record.version:
            raise Conflict("lease: another version")
        return self._store(record)

    def _store(self, record: LeaseRecord) -> LeaseRecord:
        self.writes += 1
        self.record = replace(record, version=str(next(self.versions)))
        return self.record


class Wire:
    """The server as one machine reaches it. What was sent arrives even if the sender no longer waits."""

    def __init__(self, server: Server, machine: Machine, fate: Callable[[], Call] = Call) -> None:
        self.server, self.machine, self.fate = server, machine, fate
        self.under_way: set[asyncio.Task[LeaseRecord]] = set()

    async def read(self) -> LeaseRecord:
        return await self._call(self.server.read)

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        return await self._call(lambda: self.server.create(record))

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        return await self._call(lambda: self.server.replace(record))

    async def _call(self, act: Callable[[], LeaseRecord]) -> LeaseRecord:
        fate = self.fate()
        if fate.lost:
            await self.machine.sleep(fate.there)
            raise Unreachable("lost")
        task = asyncio.create_task(self._carry(act, fate.there))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        task.add_done_callback(lambda t: None if t.cancelled() else t.exception())
        await asyncio.wait([task])
        await self.machine.sleep(fate.back)
        if fate.unheard:
            raise Unreachable("no answer")
        return task.result()

    async def _carry(self, act: Callable[[], LeaseRecord], seconds: float) -> LeaseRecord:
        await asyncio.sleep(seconds)
        return act()
