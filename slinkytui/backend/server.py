"""The engine's end of the feed: one `FeedServer` a reader. Snapshots go out in chunks, changes at most ten times a
second, and a slow reader holds up nobody but itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from slinkytui.backend.errors import SlinkyError, UsageError
from slinkytui.backend.feed import (
    Call,
    Hello,
    Pipe,
    Progress,
    Reply,
    Rows,
    Subscribe,
    Unsubscribe,
    encode_ids,
    encode_rows,
    to_fault,
)
from slinkytui.backend.models import Table
from slinkytui.backend.store import Changes, Store

_CHUNK = 250
_PAUSE_S = 0.1

log = logging.getLogger(__name__)


class Answers(Protocol):
    """What an engine answers to calls. `progress` sends a payload before the reply."""

    def hello(self) -> Hello: ...

    async def answer(self, method: str, params: bytes, progress: Callable[[Any], Awaitable[None]]) -> Any:
        """The result of a call, msgpack-able. Raises SlinkyError."""
        ...

    def wanted(self, table: Table, readers: int) -> None:
        """How many readers look at a table now: costly tables are made only for somebody."""
        ...


class FeedServer:
    def __init__(self, store: Store, pipe: Pipe, answers: Answers) -> None:
        self._store, self._pipe, self._answers = store, pipe, answers
        self._changes: dict[Table, Changes] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Serve one reader until it leaves."""
        await self._pipe.send(self._answers.hello())
        deltas = asyncio.create_task(self._send_deltas(), name="feed deltas")
        try:
            while True:
                await self._take(await self._pipe.receive())
        except EOFError:
            log.debug("a reader left")
        finally:
            deltas.cancel()
            for call in self._calls:
                call.cancel()
            await asyncio.gather(deltas, *self._calls, return_exceptions=True)
            for table in list(self._changes):
                self._drop(table)

    async def greet(self) -> None:
        """Tell the reader who we are now: it may look at another cluster than before."""
        await self._pipe.send(self._answers.hello())

    async def _take(self, frame: Any) -> None:
        match frame:
            case Subscribe(table=table):
                await self._subscribe(table)
            case Unsubscribe(table=table):
                self._drop(table)
            case Call():
                task = asyncio.create_task(self._call(frame), name=f"call {frame.method}")
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            case _:
                log.warning("a reader sent %s", type(frame).__name__)

    async def _subscribe(self, table: Table) -> None:
        if table in self._changes:
            return
        self._answers.wanted(table, 1)
        changes = self._store.watch([table])
        changes.wake = self._woken
        self._changes[table] = changes
        held = self._store.rows(table)
        ids = list(held)
        for start in range(0, max(len(ids), 1), _CHUNK):
            # Read at the moment of sending: a delta may have overtaken this chunk.
            part = [held[i] for i in ids[start : start + _CHUNK] if i in held]
            last = start + _CHUNK >= len(ids)
            await self._pipe.send(Rows(table, encode_rows(part), encode_ids([]), start == 0, last))

    def _drop(self, table: Table) -> None:
        changes = self._changes.pop(table, None)
        if changes is not None:
            self._store.unwatch(changes)
            self._answers.wanted(table, -1)

    async def _send_deltas(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            for table, changes in list(self._changes.items()):
                ids = [row_id for found in changes.take().values() for row_id in found]
                held = self._store.rows(table)
                for start in range(0, len(ids), _CHUNK):
                    part = ids[start : start + _CHUNK]
                    rows = [held[i] for i in part if i in held]
                    gone = [i for i in part if i not in held]
                    await self._pipe.send(Rows(table, encode_rows(rows), encode_ids(gone)))
            await asyncio.sleep(_PAUSE_S)

    async def _call(self, call: Call) -> None:
        async def progress(payload: Any) -> None:
            await self._pipe.send(Progress(call.id, msgspec.msgpack.encode(payload)))

        try:
            result = await self._answers.answer(call.method, call.params, progress)
            reply = Reply(call.id, msgspec.msgpack.encode(result))
        except SlinkyError as error:
            reply = Reply(call.id, fault=to_fault(error))
        except (msgspec.ValidationError, KeyError, ValueError) as error:
            log.exception("call %s failed", call.method)
            reply = Reply(call.id, fault=to_fault(UsageError(f"{call.method}: {error}")))
        try:
            await self._pipe.send(reply)
        except (EOFError, ConnectionError):
            log.debug("nobody waits for %s any more", call.method)
