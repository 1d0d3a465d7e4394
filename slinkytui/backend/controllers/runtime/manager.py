"""Starts and stops everything in order: sources synced → lease held → workers; back in reverse within a grace time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.controller import Controller
from slinkytui.backend.controllers.runtime.waiting import first, within

log = logging.getLogger(__name__)

GRACE_S: Final = 10.0
KEPT_S: Final = 2.0
"""The part of the grace that is kept for what comes after the workers: last events, the lease, the sources."""


class Phase(StrEnum):
    NEW = "new"
    SYNCING = "syncing"
    FOLLOWING = "following"
    """Synced; another process holds the lease."""
    LEADING = "leading"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Source(Protocol):
    """Something that fills the caches without which no decision may be made.

    A source that concerns one resource of many, such as one Slurm cluster, is none: it would hold up all others.
    """

    name: str

    async def start(self) -> None: ...

    async def synced(self) -> None:
        """Wait until it is."""
        ...

    def unsynced(self) -> str:
        """ "" once it is synced, else what it waits for."""
        ...

    async def stop(self) -> None: ...


class Elector(Protocol):
    async def acquire(self) -> None:
        """Wait until the lease is held."""
        ...

    async def hold(self) -> None:
        """Renew it; return when it is lost."""
        ...

    async def release(self) -> None:
        """Give it up, if it is held. Does not raise."""
        ...


class Helper(Protocol):
    """Runs while the workers run, such as the events' recorder, and is stopped after them, before the lease goes."""

    def start(self) -> None: ...

    async def stop(self, grace_s: float) -> object: ...


class Manager:
    """`elector` None: leads without a lease."""

    def __init__(
        self, clock: Clock, *, sources: Sequence[Source] = (), elector: Elector | None = None,
        controllers: Sequence[Controller[Any]] = (), helpers: Sequence[Helper] = (), grace_s: float = GRACE_S,
    ) -> None:  # fmt: skip
        self.phase = Phase.NEW
        self.controllers = tuple(controllers)
        self.terms = 0
        """How often it began to lead."""
        self._clock, self._sources, self._elector = clock, tuple(sources), elector
        self._helpers, self._grace_s = tuple(helpers), grace_s
        self._stop = asyncio.Event()
        self._deadline: float | None = None

    def stop(self) -> None:
        """Ask `run` to end."""
        self._stop.set()

    def unready(self) -> dict[str, str]:
        """The sources that are not synced and what they wait for; empty: ready, leading or not."""
        return {source.name: why for source in self._sources if (why := source.unsynced())}

    def unhealthy(self) -> dict[str, str]:
        """The controllers of which a worker died, and how; empty: alive."""
        return {c.name: why for c in self.controllers if (why := c.unhealthy())}

    async def run(self) -> None:
        """Until `stop` is called, or it is cancelled, which ends it in the same order."""
        started: list[Source] = []
        try:
            self.phase = Phase.SYNCING
            for source in self._sources:
                started.append(source)
                await source.start()
            if await first(self._stop.wait(), self._all_synced()) == 0:
                return
            while not self._stop.is_set():
                await self._term()
        finally:
            self.phase = Phase.STOPPING
            for source in reversed(started):
                await self._bounded(f"source {source.name}", source.stop())
            self.phase = Phase.STOPPED

    async def _all_synced(self) -> None:
        for source in self._sources:
            await source.synced()

    async def _term(self) -> None:
        """From a lease that is waited for to its loss or to the end."""
        self.phase = Phase.FOLLOWING
        lost = False
        try:
            if self._elector is not None and await first(self._stop.wait(), self._elector.acquire()) == 0:
                return
            await self._lead()
            lost = not self._stop.is_set()
        finally:
            # A lease that was lost is another's: nothing is to be given up, and nothing to be finished.
            if self._elector is not None and not lost:
                await self._bounded("the lease", self._elector.release())

    async def _lead(self) -> None:
        self.phase, self.terms = Phase.LEADING, self.terms + 1
        log.info("leading")
        asking = False
        holding = asyncio.create_task(self._held())
        try:
            for helper in self._helpers:
                helper.start()
            for controller in self.controllers:
                controller.start()
            await first(self._stop.wait(), _until(holding))
            asking = self._stop.is_set()
        except asyncio.CancelledError:
            asking = True
            raise
        finally:
            # While the last work ends the lease is still renewed.
            await self._end_work(holding, asking)

    async def _end_work(self, holding: asyncio.Task[None], asking: bool) -> None:
        self.phase = Phase.STOPPING if asking else Phase.FOLLOWING
        if not asking:
            log.error("the lease is lost: all work is cancelled")
        for controller in self.controllers:
            controller.pause()
        for controller in reversed(self.controllers):
            left = max(0.0, self._left() - KEPT_S) if asking and not holding.done() else 0.0
            if not await controller.stop(left):
                log.warning("work of controller %s was cancelled", controller.name)
        for helper in reversed(self._helpers):
            await self._bounded("a helper", helper.stop(self._left() / 2 if asking else 0.0), asking)
        holding.cancel()
        await asyncio.wait([holding])
        if not holding.cancelled() and (error := holding.exception()) is not None:
            raise error

    async def _held(self) -> None:
        if self._elector is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._elector.hold()

    def _left(self) -> float:
        """Seconds of the grace that are left; it begins with the first question."""
        now = self._clock.monotonic()
        if self._deadline is None:
            self._deadline = now + self._grace_s
        return max(0.0, self._deadline - now)

    async def _bounded(self, what: str, work: Any, ending: bool = True) -> None:
        """A step of the end, which never keeps the next one from its turn."""
        try:
            await within(self._clock, max(0.5, self._left() if ending else KEPT_S), work)
        except Exception:  # the end goes on whatever one step raises
            log.exception("%s did not end cleanly", what)


async def _until(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])
