"""The objects that a decision is made from and that no screen shows: read whole, for an operator or for one look."""

from __future__ import annotations

import asyncio
from typing import Final

from slinkytui.backend.clock import Clock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.errors import Unreachable
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import OPERATED
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import Key, Source, Table
from slinkytui.backend.store import Store

_LOOK_S: Final = 30.0


class Rows:
    """A source that an engine reads already: synced once its first list is there."""

    def __init__(self, facts: Store, plural: str) -> None:
        self.name = f"kubernetes/{plural}"
        self._facts = facts

    async def start(self) -> None:
        """The engine has started it."""

    async def synced(self) -> None:
        changes = self._facts.watch((Table.SOURCES,))
        try:
            while self.unsynced():
                await changes.wake.wait()
                changes.wake.clear()
        finally:
            self._facts.unwatch(changes)

    async def answered(self) -> None:
        """Wait until it has answered or failed once."""
        changes = self._facts.watch((Table.SOURCES,))
        try:
            while not isinstance(found := self._facts.get(Table.SOURCES, Key("", self.name)), Source) or (
                found.state == "starting"
            ):
                await changes.wake.wait()
                changes.wake.clear()
        finally:
            self._facts.unwatch(changes)

    def unsynced(self) -> str:
        found = self._facts.get(Table.SOURCES, Key("", self.name))
        if not isinstance(found, Source):
            return "not asked yet"
        return "" if found.last_success is not None else found.error or "no answer yet"

    async def stop(self) -> None:
        """The engine stops it."""


class Whole(Rows):
    """Objects that only an operator reads whole."""

    def __init__(self, watcher: Watcher, held: Store, plural: str) -> None:
        super().__init__(held, plural)
        self._watcher = watcher
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._watcher.run(), name=f"watch whole {self.name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Onlooker:
    """What an operator would decide, without lease and queue. The first look reads the objects, later ones follow them."""

    def __init__(self, kube: KubeClient, facts: Store, clusters: Clusters, clock: Clock, namespace: str) -> None:
        self._held = Store()
        self._sources = [
            Whole(Watcher(kube, r, self._held, clock, namespace=namespace), self._held, r.plural) for r in OPERATED
        ]
        self._facts = facts
        self._observer = Observer(facts, self._held, clusters, clock)
        self._started = False

    async def observer(self) -> Observer:
        """Raises Unreachable when the objects cannot be read in time."""
        if not self._started:
            self._started = True
            for source in self._sources:
                await source.start()
        try:
            await asyncio.wait_for(asyncio.gather(*(s.answered() for s in self._sources)), _LOOK_S)
        except TimeoutError:
            waits = ", ".join(s.name for s in self._sources if s.unsynced())
            raise Unreachable(f"no answer in time from {waits}") from None
        return self._observer

    async def close(self) -> None:
        for source in self._sources:
            await source.stop()
