"""One list+watch: pages, then events with bookmarks; a relist is a diff and never a clear.

It never ends of itself: an error is a stale source and a later try, 403 and a missing resource are tried slowly.
A watch that breaks goes on from the last version it saw; only a version that is too old, or a watch that fails again
and again, costs a new list.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import NotAllowed, NotFound, SlinkyError, Unreachable
from slinkytui.backend.http import Query, Request
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.errors import Gone, classify
from slinkytui.backend.kube.resources import DECODERS, Resource
from slinkytui.backend.models import Key, Row, RowId, Source
from slinkytui.backend.sink import Sink

PAGE: Final = 500
WATCH_S: Final = 300
SLOW_S: Final = 30.0
MOST_S: Final = 10.0
RESUMES: Final = 3
"""Broken watches in a row that go on from the last version before all is listed anew."""
_BUDGET_S: Final = 0.004

log = logging.getLogger(__name__)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    class Meta(msgspec.Struct, rename="camel"):
        resource_version: str = ""

    metadata: Meta


class _Identity(msgspec.Struct):
    class Meta(msgspec.Struct):
        name: str
        namespace: str = ""

    metadata: Meta


_page = msgspec.json.Decoder(_Page)
_event = msgspec.json.Decoder(_Event)
_bookmark = msgspec.json.Decoder(_Bookmark)
_identity = msgspec.json.Decoder(_Identity)


class Watcher:
    """Feeds `resource.table` of the sink from one namespace ("" is all)."""

    def __init__(
        self, client: KubeClient, resource: Resource, sink: Sink, clock: Clock, *, namespace: str = "", note: str = ""
    ) -> None:
        if resource.table is None or resource.row is None:
            raise ValueError(f"{resource.plural} feed no table")
        self._client, self._resource, self._sink, self._clock = client, resource, sink, clock
        self._table, self._row, self._namespace = resource.table, resource.row, namespace
        wanted = (("fieldSelector", resource.fields), ("labelSelector", resource.labels))
        self._only: Query = tuple((name, text) for name, text in wanted if text)
        self._decode = DECODERS[resource.table]
        self._source = Source(f"kubernetes/{resource.plural}", "starting", note=note)
        self._failures = 0
        """In a row, until a watch has answered: a list that works does not mend a watch that fails."""
        self._version = ""
        """What the next watch starts from; "" asks for a list."""
        self._unread: set[Key] = set()
        self._nameless = 0
        self._rows = 0

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            pause = await self._pass()
            await self._clock.sleep(pause)

    async def _pass(self) -> float:
        """A list where one is due, and the watches that follow it; how long to wait before the next."""
        try:
            if not self._version or self._failures % (RESUMES + 1) == RESUMES:
                self._version = await self._list()
            while True:
                began = self._clock.monotonic()
                await self._watch()
                if self._clock.monotonic() - began < 1.0:
                    # A server or proxy that ends watches at once must not be asked in a circle.
                    await self._clock.sleep(random.uniform(0.5, 1.0))
        except Gone:
            self._version, self._failures = "", self._failures + 1
            return random.uniform(0.0, 1.0) if self._failures == 1 else self._backoff()
        except NotAllowed as error:
            self._version = ""
            self._fail("absent" if self._resource.optional else "refused", error)
            return SLOW_S
        except NotFound as error:
            self._version = ""
            # The resource itself is not served: no CRD (yet).
            if (
                error.detail.startswith("the server could not find the requested resource")
                or "404 page not found" in error.detail
            ):
                await self._sink.replace(self._table, self._namespace, [])
            self._fail("absent", error)
            return SLOW_S
        except (msgspec.DecodeError, ValueError) as error:
            # To go on from here would meet the same answer again.
            self._version = ""
            self._fail("stale", SlinkyError(f"{self._resource.plural}: an answer cannot be read", detail=str(error)))
            return random.uniform(1.0, MOST_S)
        except SlinkyError as error:
            self._fail("stale", error)
            return self._backoff()

    def _backoff(self) -> float:
        return random.uniform(0.2, min(MOST_S, 0.5 * 2 ** min(self._failures, 8)))

    async def _list(self) -> str:
        began = self._clock.monotonic()
        rows: list[Row] = []
        version, more = "", ""
        unread: set[Key] = set()
        nameless = 0
        while True:
            query: Query = (("limit", str(PAGE)), *((("continue", more),) if more else ()), *self._only)
            body = await self._client.call(
                "GET", self._resource.path(self._namespace), self._resource.plural, query=query
            )
            try:
                page = _page.decode(body)
            except msgspec.DecodeError as error:
                raise Unreachable(f"{self._resource.plural}: the list cannot be read", detail=str(error)) from error
            until = self._clock.monotonic() + _BUDGET_S
            for raw in page.items or ():
                row = self._read(raw)
                if row is not None:
                    rows.append(row)
                elif (who := _who(raw)) is not None:
                    unread.add(who)
                else:
                    nameless += 1
                if self._clock.monotonic() > until:
                    await self._clock.sleep(0)
                    until = self._clock.monotonic() + _BUDGET_S
            version, more = page.metadata.resource_version or version, page.metadata.continue_
            if not more:
                break
        if nameless:
            # Any row that is missing may be the one that cannot be read.
            self._sink.upsert(self._table, self._namespace, rows)
        else:
            await self._sink.replace(self._table, self._namespace, rows, unread)
        self._unread, self._nameless, self._rows = unread, nameless, len(rows)
        self._live(round(self._clock.monotonic() - began, 3))
        return version

    async def _watch(self) -> None:
        """Follow events until the server ends the watch. Raises Gone when the version to start from is too old."""
        query = (
            ("watch", "true"), ("allowWatchBookmarks", "true"), ("resourceVersion", self._version),
            ("timeoutSeconds", str(int(WATCH_S * random.uniform(0.8, 1.0)))), *self._only,
        )  # fmt: skip
        request = Request("GET", self._resource.path(self._namespace), query, {"accept": "application/json"})
        # The server sends a bookmark about once a minute: silence beyond two of them is a dead connection.
        async with self._client.transport.send(request, timeout_s=150.0) as answer:
            if answer.status != 200:
                raise classify(f"watch of {self._resource.plural}", answer.status, await answer.read())
            self._live(self._source.took_s)
            async for batch in _lines(answer.chunks):
                await self._apply(batch)
                self._failures = 0
                self._live(self._source.took_s)
            self._failures = 0

    async def _apply(self, batch: list[bytes]) -> None:
        """Events in order; a part of a batch is put down, and the loop given its turn, every few milliseconds."""
        at = 0
        while at < len(batch):
            if at:
                await self._clock.sleep(0)
            at = self._apply_some(batch, at)

    def _apply_some(self, batch: list[bytes], at: int) -> int:
        changed: dict[RowId, Row] = {}
        gone: dict[RowId, None] = {}
        version, until = self._version, self._clock.monotonic() + _BUDGET_S
        while at < len(batch) and self._clock.monotonic() <= until:
            event = _event.decode(batch[at])
            at += 1
            if event.type == "ERROR":
                status = msgspec.json.decode(event.object)
                raise classify(f"watch of {self._resource.plural}", int(status.get("code") or 500), bytes(event.object))
            version = _bookmark.decode(event.object).metadata.resource_version or version
            if event.type == "BOOKMARK":
                continue
            row = self._read(event.object)
            # Who goes is known by name alone; an unreadable change leaves the old row and is told.
            row_id: RowId | None = row.id if row is not None else _who(event.object)  # type: ignore[attr-defined]
            if row_id is None:
                self._nameless += 1
            elif event.type == "DELETED":
                changed.pop(row_id, None)
                gone[row_id] = None
            elif row is not None:
                gone.pop(row_id, None)
                changed[row_id] = row
            if isinstance(row_id, Key):
                self._unread.discard(row_id)
                if row is None and event.type != "DELETED":
                    self._unread.add(row_id)
        self._sink.remove(self._table, self._namespace, gone)
        self._sink.upsert(self._table, self._namespace, changed.values())
        self._version = version
        return at

    def _read(self, raw: Any) -> Row | None:
        try:
            return self._row(self._decode.decode(raw))
        except (msgspec.DecodeError, ValueError) as error:
            log.warning("%s: %s", self._resource.plural, error)
            return None

    def _live(self, took_s: float | None) -> None:
        lost = len(self._unread) + self._nameless
        error = f"{lost} objects could not be read" if lost else ""
        now = self._clock.now()
        last = self._source.last_success
        if self._source.state == "live" and error == self._source.error and last is not None and now - last < 1.0:
            return
        self._tell(msgspec.structs.replace(
            self._source, state="live", last_success=now, error=error, rows=self._rows, took_s=took_s
        ))  # fmt: skip

    def _fail(self, state: str, error: SlinkyError) -> None:
        self._failures += 1
        log.info("%s: %s", self._resource.plural, error.line())
        self._tell(msgspec.structs.replace(self._source, state=state, error=error.line(), last_error=self._clock.now()))

    def _tell(self, source: Source) -> None:
        self._source = source
        self._sink.source(source)


def _who(raw: Any) -> Key | None:
    """Whose object this is, where not even its row can be made."""
    try:
        found = _identity.decode(raw).metadata
    except msgspec.DecodeError:
        return None
    return Key(found.namespace, found.name)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Whole lines as they arrive, those of one chunk together."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        whole = [line for line in lines if line]
        if whole:
            yield whole
