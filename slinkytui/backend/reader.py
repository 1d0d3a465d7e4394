"""The reading side of the feed: a mirror of the subscribed tables, and the calls an engine answers.

A face in another process than the engine sees the cluster through this alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from slinkytui.backend.errors import SlinkyError, Unreachable
from slinkytui.backend.feed import (
    ID_DECODERS,
    ROW_DECODERS,
    TYPES,
    Call,
    Hello,
    Pipe,
    Progress,
    Reply,
    Rows,
    Subscribe,
    Unsubscribe,
    from_fault,
)
from slinkytui.backend.models import (
    Ask,
    Explained,
    JobId,
    OperatorView,
    Plan,
    Row,
    RowId,
    RunResult,
    StepResult,
    Table,
)

T = TypeVar("T")

Changed = Callable[[dict[Table, set[RowId]]], None]
"""Told which ids changed, at most once a frame from the engine."""


class _Mirror(Mapping[RowId, Row]):
    """The rows of a table as the engine sent them last."""

    def take(self, rows: bytes) -> list[RowId]:
        """Rows that are new or changed; their ids."""
        raise NotImplementedError

    def drop(self, row_id: RowId) -> bool:
        raise NotImplementedError


class _Plain(_Mirror):
    def __init__(self, table: Table) -> None:
        self._rows: dict[RowId, Row] = {}
        self._decoder = ROW_DECODERS[table]

    def take(self, rows: bytes) -> list[RowId]:
        found = {row.id: row for row in self._decoder.decode(rows)}  # type: ignore[attr-defined]
        self._rows.update(found)
        return list(found)

    def drop(self, row_id: RowId) -> bool:
        return self._rows.pop(row_id, None) is not None

    def __getitem__(self, row_id: RowId) -> Row:
        return self._rows[row_id]

    def __iter__(self) -> Iterator[RowId]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._rows


class _Packed(_Mirror):
    """Rows stay as they travelled, and are read when somebody looks: a fifth of the memory of 100,000 jobs."""

    def __init__(self, table: Table) -> None:
        self._rows: dict[RowId, bytes] = {}
        row, key = TYPES[table]
        self._split = msgspec.msgpack.Decoder(list[msgspec.Raw])
        self._head = msgspec.msgpack.Decoder(_HEADS[key])
        self._decoder = msgspec.msgpack.Decoder(row)

    def take(self, rows: bytes) -> list[RowId]:
        ids: list[RowId] = []
        for raw in self._split.decode(rows):
            data = bytes(raw)
            row_id = self._head.decode(data).id
            self._rows[row_id] = data
            ids.append(row_id)
        return ids

    def drop(self, row_id: RowId) -> bool:
        return self._rows.pop(row_id, None) is not None

    def __getitem__(self, row_id: RowId) -> Row:
        return self._decoder.decode(self._rows[row_id])

    def __iter__(self) -> Iterator[RowId]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._rows


class _JobHead(Row, frozen=True):
    """The part of a row that tells which it is: the first field of its array."""

    id: JobId


_HEADS: Final[dict[Any, Any]] = {JobId: _JobHead}
_PACKED: Final = (Table.JOBS,)


class Reader:
    """`rows(table)` is the live mirror. Callbacks run in the reader's loop; `lost` says why the engine is gone."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._tables: dict[Table, _Mirror] = {}
        self._fresh: dict[Table, set[RowId]] = {}
        self.ready: set[Table] = set()
        self.hello: Hello | None = None
        self.lost = ""
        self._greeted = asyncio.Event()
        self._listeners: list[Changed] = []
        self._calls: dict[int, tuple[asyncio.Future[bytes], Callable[[bytes], None] | None]] = {}
        self._next = 0
        self._task: asyncio.Task[None] | None = None
        self._ready_waiters: list[tuple[Table, asyncio.Future[None]]] = []

    async def start(self, timeout_s: float = 20.0) -> Hello:
        """Read frames from now on; returns when the engine has greeted."""
        self._task = asyncio.create_task(self._receive(), name="feed reader")
        try:
            await asyncio.wait_for(self._greeted.wait(), timeout_s)
        except TimeoutError:
            raise Unreachable("the engine does not answer", hint="see its log: slinkytui doctor") from None
        if self.hello is None:
            raise Unreachable(self.lost or "the engine has ended")
        if self.hello.failed is not None:
            raise from_fault(self.hello.failed)
        return self.hello

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._pipe.close()

    def rows(self, table: Table) -> Mapping[RowId, Row]:
        return self._held(table)

    def _held(self, table: Table) -> _Mirror:
        found = self._tables.get(table)
        if found is None:
            found = self._tables[table] = _Packed(table) if table in _PACKED else _Plain(table)
        return found

    def listen(self, changed: Changed) -> Callable[[], None]:
        """Call `changed` on every change; the returned function ends that."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    async def subscribe(self, *tables: Table) -> None:
        for table in tables:
            if table not in self._tables or table not in self._fresh:
                self._held(table)
                self._fresh[table] = set()
                await self._pipe.send(Subscribe(table))

    async def unsubscribe(self, table: Table) -> None:
        """Forget a table that no screen shows any more."""
        self._fresh.pop(table, None)
        self._tables.pop(table, None)
        self.ready.discard(table)
        await self._pipe.send(Unsubscribe(table))

    async def loaded(self, *tables: Table) -> None:
        """Wait until the first snapshot of these tables is complete."""
        for table in tables:
            if table not in self.ready:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._ready_waiters.append((table, waiter))
                await waiter

    async def call(
        self, method: str, params: Any, answer: type[T], *, progress: Callable[[bytes], None] | None = None
    ) -> T:
        """Ask the engine. Raises the SlinkyError that it answers with."""
        if self.lost:
            raise Unreachable(self.lost)
        self._next += 1
        number = self._next
        waiter: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[number] = (waiter, progress)
        try:
            await self._pipe.send(Call(number, method, msgspec.msgpack.encode(params)))
            return msgspec.msgpack.decode(await waiter, type=answer)
        finally:
            self._calls.pop(number, None)

    async def plan(self, ask: Ask) -> Plan:
        return await self.call("plan", ask, Plan)

    async def run(self, plan: Plan, progress: Callable[[StepResult], None] | None = None) -> RunResult:
        """Run a plan; raises PlanStale when its inputs have changed."""
        told = None if progress is None else lambda data: progress(msgspec.msgpack.decode(data, type=StepResult))
        return await self.call("run", plan, RunResult, progress=told)

    async def raw(self, table: Table, row_id: RowId) -> str:
        """The raw object of a row as YAML."""
        return await self.call("raw", [table, msgspec.msgpack.encode(row_id)], str)

    async def explain(self, table: Table, row_id: RowId) -> Explained:
        """What an operator makes of a NodeSet, a worker or a Slurm node now."""
        return await self.call("explain", [table, msgspec.msgpack.encode(row_id)], Explained)

    async def operator(self) -> OperatorView | None:
        """What the operator of this engine does now; None where none runs in it."""
        return await self.call("operator", None, OperatorView | None)  # type: ignore[arg-type]  # a union is decoded too

    async def refresh(self) -> None:
        """Ask the servers now."""
        await self.call("refresh", None, type(None))

    async def rights(self, cluster: str, namespace: str) -> dict[str, str]:
        """Verb id → why it is refused there; a verb that may be done has "". Unknown is a reason, not a yes."""
        return await self.call("rights", [cluster, namespace], dict[str, str])

    async def switch(self, *, context: str | None = None, namespace: str | None = None) -> Hello:
        """Another kubeconfig context or namespace ("" is all namespaces)."""
        self.hello = await self.call("switch", {"context": context, "namespace": namespace}, Hello)
        return self.hello

    async def _receive(self) -> None:
        try:
            while True:
                self._handle(await self._pipe.receive())
                # Frames that have arrived together are read without a pause: the loop that paints gets its turn.
                await asyncio.sleep(0)
        except EOFError:
            self.lost = "the engine has ended"
        finally:
            self._greeted.set()
            for waiter, _ in self._calls.values():
                if not waiter.done():
                    waiter.set_exception(Unreachable(self.lost or "the feed was closed"))
            for _, ready in self._ready_waiters:
                if not ready.done():
                    ready.set_exception(Unreachable(self.lost or "the feed was closed"))

    def _handle(self, frame: Any) -> None:
        match frame:
            case Rows():
                self._apply(frame)
            case Reply(id=number, result=result, fault=fault):
                waiter, _ = self._calls.get(number, (None, None))
                if waiter is not None and not waiter.done():
                    if fault is None:
                        waiter.set_result(result)
                    else:
                        waiter.set_exception(from_fault(fault))
            case Progress(id=number, payload=payload):
                _, progress = self._calls.get(number, (None, None))
                if progress is not None:
                    progress(payload)
            case Hello():
                self.hello = frame
                self._greeted.set()
            case _:
                raise SlinkyError(f"an engine does not send {type(frame).__name__}")

    def _apply(self, frame: Rows) -> None:
        if frame.table not in self._fresh:
            return
        held = self._held(frame.table)
        changed: set[RowId] = set()
        if frame.reset:
            self._fresh[frame.table] = set(held)
        stale = self._fresh[frame.table]
        for row_id in held.take(frame.rows):
            changed.add(row_id)
            stale.discard(row_id)
        for row_id in ID_DECODERS[frame.table].decode(frame.gone):
            if held.drop(row_id):
                changed.add(row_id)
        if frame.done:
            for row_id in stale:
                held.drop(row_id)
            changed |= stale
            self._fresh[frame.table] = set()
            self.ready.add(frame.table)
            for table, waiter in self._ready_waiters:
                if table == frame.table and not waiter.done():
                    waiter.set_result(None)
            self._ready_waiters = [(t, w) for t, w in self._ready_waiters if not w.done()]
        if changed or frame.done:
            for listener in list(self._listeners):
                listener({frame.table: changed})
