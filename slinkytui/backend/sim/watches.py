"""Watches: changes since a version in the form that was asked for, selectors, bookmarks, 410."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from slinkytui.backend.http import Request
from slinkytui.backend.sim.objects import Change, Objects
from slinkytui.backend.sim.selectors import selected
from slinkytui.backend.sim.views import View

_BOOKMARK_S: Final = 30.0
_MOMENT_S: Final = 1e-6
"""A timer may fire so much too early: what is left then is no time to wait for."""
_EXPIRED: Final = (
    b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}\n'
)


def chosen(request: Request, view: View, found: dict[str, Any]) -> bool:
    """Whether the request's selectors choose the object."""
    return selected(request.first("labelSelector"), request.first("fieldSelector"), view.served.plural, found)


class Watch:
    """One reader's watch. Without a version it begins with what is there."""

    def __init__(self, objects: Objects, view: View, request: Request, namespace: str) -> None:
        self.objects, self.view, self.request, self.namespace = objects, view, request, namespace
        self._headed = False
        asked = request.first("resourceVersion")
        self.initial = request.first("sendInitialEvents") in ("true", "1")
        self.fresh = self.initial or asked in ("", "0")
        self.start = objects.version if self.fresh else int(asked)

    async def run(self, seconds: float) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        until, sent = loop.time() + seconds, self.start
        bookmarks = self.request.first("allowWatchBookmarks") in ("true", "1")
        if self.fresh:
            yield b"".join(self._first())
        while (left := until - loop.time()) > _MOMENT_S:
            waiter = self.objects.changed
            if sent < self.objects.oldest:
                yield _EXPIRED
                return
            lines = [line for c in since(self.objects.log, sent) for line in [self._told(c)] if line]
            sent = self.objects.version
            if lines:
                yield b"".join(lines)
                continue
            try:
                await asyncio.wait_for(waiter.wait(), min(_BOOKMARK_S, left))
            except TimeoutError:
                if bookmarks:
                    yield self._bookmark(sent)

    def _first(self) -> list[bytes]:
        held = self.objects.all(self.view.served, self.namespace)
        lines = [self._line("ADDED", o) for _, o in held if chosen(self.request, self.view, o)]
        if self.initial:
            lines.append(self._bookmark(self.start, {"k8s.io/initial-events-end": "true"}))
        return lines

    def _bookmark(self, version: int, marks: dict[str, str] | None = None) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(version), **({"annotations": marks} if marks else {})}
        if self.view.form == "Table":
            found = self.view.table([], meta, headed=not self._headed)
            self._headed = True
        else:
            found = {"kind": self.view.served.kind, "apiVersion": self.view.served.api, "metadata": meta}
            found = self.view.one(found) if self.view.form else found
        return json.dumps({"type": "BOOKMARK", "object": found}).encode() + b"\n"

    def _line(self, kind: str, found: dict[str, Any]) -> bytes:
        if self.view.form == "Table":
            shown = self.view.table(
                [found], {"resourceVersion": found["metadata"]["resourceVersion"]}, headed=not self._headed
            )
            self._headed = True
        else:
            shown = self.view.one(found)
        return b'{"type":"' + kind.encode() + b'","object":' + msgspec.json.encode(shown) + b"}\n"

    def _told(self, change: Change) -> bytes:
        """What this watch says of a change: an object that leaves its selectors is deleted, one that comes is new."""
        if change.served.stored != self.view.served.stored or (self.namespace and change.name[0] != self.namespace):
            return b""
        if not self.request.first("labelSelector") and not self.request.first("fieldSelector"):
            return change.line if self.view.plain else self._line(change.type, change.found)
        now = change.type != "DELETED" and chosen(self.request, self.view, change.found)
        before = change.found if change.type == "DELETED" else change.old
        had = before is not None and chosen(self.request, self.view, before)
        if not now and not had:
            return b""
        return self._line("MODIFIED" if now and had else "ADDED" if now else "DELETED", change.found)


def since(log: list[Change], version: int) -> list[Change]:
    """The changes after a version."""
    low, high = 0, len(log)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if log[middle].version <= version else (low, middle)
    return log[low:]
