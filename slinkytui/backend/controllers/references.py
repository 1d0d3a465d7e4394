"""Secrets that resources refer to: each is watched by its name, and only hashes of its content are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import SECRETS
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import Key, Manifest, Source, Table
from slinkytui.backend.store import Store


class Referred(NamedTuple):
    """What is known of a Secret: the SHA-256 of each key's content, nothing while it is away. `why` says why it is not
    known; "" once it has been read."""

    hashes: Mapping[str, str]
    why: str = ""


@dataclass
class _Watched:
    store: Store
    tasks: tuple[asyncio.Task[None], ...]


class References:
    """`changed` is called with each Secret that is another than before."""

    name = "references"

    def __init__(self, kube: KubeClient, clock: Clock, changed: Callable[[Key], None]) -> None:
        self._kube, self._clock, self._changed = kube, clock, changed
        self._watched: dict[Key, _Watched] = {}

    def secret(self, ref: Key) -> Referred:
        """What was last seen of it; from the first question on it is watched."""
        if ref not in self._watched:
            self._watched[ref] = self._begin(ref)
        return _seen(ref, self._watched[ref].store)

    def _begin(self, ref: Key) -> _Watched:
        # A store of its own: a watcher replaces all rows of its namespace.
        store = Store()
        resource = replace(SECRETS, fields=f"metadata.name={ref.name}")
        watcher = Watcher(self._kube, resource, store, self._clock, namespace=ref.namespace)
        tasks = (
            asyncio.create_task(watcher.run(), name=f"watch secret {ref}"),
            asyncio.create_task(self._follow(ref, store), name=f"follow secret {ref}"),
        )
        return _Watched(store, tasks)

    async def _follow(self, ref: Key, store: Store) -> None:
        changes = store.watch((Table.SECRETS, Table.SOURCES))
        before = _seen(ref, store)
        while True:
            await changes.wake.wait()
            changes.wake.clear()
            changes.take()
            found = _seen(ref, store)
            if found != before:
                before = found
                self._changed(ref)

    # -- as a source of the manager; it holds up nobody: only who refers to a Secret waits for it

    async def start(self) -> None:
        """Watches begin with the first question."""

    async def synced(self) -> None:
        """Nothing to wait for."""

    def unsynced(self) -> str:
        return ""

    async def stop(self) -> None:
        tasks = [t for w in self._watched.values() for t in w.tasks]
        self._watched.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _seen(ref: Key, store: Store) -> Referred:
    source = store.get(Table.SOURCES, Key("", f"kubernetes/{SECRETS.plural}"))
    if not isinstance(source, Source) or source.last_success is None:
        error = source.error if isinstance(source, Source) else ""
        return Referred({}, f"the Secret {ref} has not been read: {error or 'no answer yet'}")
    row = store.get(Table.SECRETS, ref)
    return Referred(msgspec.json.decode(row.body) if isinstance(row, Manifest) else {})
