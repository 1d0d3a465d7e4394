"""The feed: length-prefixed msgpack frames between an engine and its readers, over any pipe.

A reader subscribes to tables and gets their rows in chunks, then deltas; it asks for plans, runs, raw objects and the
like by `Call`. The same messages travel over a socket between processes and over a memory pipe in tests.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, Final, Protocol

import msgspec

from slinkytui.backend.errors import (
    BadRequest,
    ConfigError,
    Conflict,
    NotAllowed,
    NotFound,
    PlanStale,
    SlinkyError,
    Unreachable,
    Unsupported,
    UsageError,
)
from slinkytui.backend.models import (
    Accounting,
    Cluster,
    Controller,
    Decided,
    Event,
    FleetNode,
    FleetNodeSet,
    Gpu,
    GpuId,
    Job,
    JobId,
    JournalEntry,
    Key,
    KubeNode,
    LoginSet,
    Namespace,
    NodeId,
    Operator,
    Partition,
    Pod,
    Problem,
    Reservation,
    RestApi,
    Row,
    RowId,
    SlurmName,
    Source,
    Table,
    Token,
)

VERSION: Final = 1

TYPES: Final[dict[Table, tuple[type[Row], Any]]] = {
    Table.CLUSTERS: (Cluster, Key),
    Table.SOURCES: (Source, Key),
    Table.NODES: (FleetNode, NodeId),
    Table.GPUS: (Gpu, GpuId),
    Table.JOBS: (Job, JobId),
    Table.PARTITIONS: (Partition, SlurmName),
    Table.RESERVATIONS: (Reservation, SlurmName),
    Table.NODESETS: (FleetNodeSet, Key),
    Table.PODS: (Pod, Key),
    Table.KUBENODES: (KubeNode, Key),
    Table.EVENTS: (Event, Key),
    Table.CONTROLLERS: (Controller, Key),
    Table.LOGINSETS: (LoginSet, Key),
    Table.RESTAPIS: (RestApi, Key),
    Table.PROBLEMS: (Problem, Key),
    Table.NAMESPACES: (Namespace, Key),
    Table.ACCOUNTINGS: (Accounting, Key),
    Table.TOKENS: (Token, Key),
    Table.OPERATORS: (Operator, Key),
    Table.JOURNAL: (JournalEntry, Key),
    Table.DECISIONS: (Decided, Key),
}
"""Row and id type of each table that can be subscribed to."""

ROW_DECODERS: Final = {table: msgspec.msgpack.Decoder(list[row]) for table, (row, _) in TYPES.items()}  # type: ignore[valid-type]
ID_DECODERS: Final = {table: msgspec.msgpack.Decoder(list[key]) for table, (_, key) in TYPES.items()}  # type: ignore[valid-type]


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A frame."""


class Fault(msgspec.Struct, frozen=True):
    """A SlinkyError on the wire."""

    kind: str
    title: str
    detail: str = ""
    hint: str = ""
    retryable: bool = False


class Hello(Message, frozen=True):
    """First frame of an engine. `sim` is the scenario's name when the cluster is simulated."""

    version: int
    context: str = ""
    namespace: str = ""
    operator: str = ""
    sim: str = ""
    sim_speed: float = 1.0
    read_only: bool = False
    contexts: tuple[str, ...] = ()
    note: str = ""
    failed: Fault | None = None
    """Why the engine could not start; it says nothing more."""


class Subscribe(Message, frozen=True):
    table: Table


class Unsubscribe(Message, frozen=True):
    table: Table


class Rows(Message, frozen=True):
    """Rows that are new or changed, ids that are gone. `reset` starts a snapshot, `done` ends it."""

    table: Table
    rows: bytes
    gone: bytes
    reset: bool = False
    done: bool = False


class Call(Message, frozen=True):
    id: int
    method: str
    params: bytes


class Reply(Message, frozen=True):
    id: int
    result: bytes = b""
    fault: Fault | None = None


class Progress(Message, frozen=True):
    """A step of a running call, before its reply."""

    id: int
    payload: bytes


Frame = Hello | Subscribe | Unsubscribe | Rows | Call | Reply | Progress
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)

_ERRORS: Final[dict[str, type[SlinkyError]]] = {
    c.__name__: c
    for c in (
        BadRequest,
        ConfigError,
        Conflict,
        NotAllowed,
        NotFound,
        PlanStale,
        SlinkyError,
        Unreachable,
        Unsupported,
        UsageError,
    )
}


def to_fault(error: SlinkyError) -> Fault:
    """An error as it travels; the two that carry numbers keep their words and lose the numbers."""
    kind = next((c.__name__ for c in type(error).__mro__ if c.__name__ in _ERRORS), "SlinkyError")
    return Fault(kind, error.title, error.detail, error.hint, error.retryable)


def from_fault(fault: Fault) -> SlinkyError:
    made = _ERRORS.get(fault.kind, SlinkyError)
    return made(fault.title, detail=fault.detail, hint=fault.hint, retryable=fault.retryable)


class Pipe(Protocol):
    """Frames in order, both ways. `receive` raises EOFError when the other end is gone."""

    async def send(self, frame: Frame) -> None: ...

    async def receive(self) -> Frame: ...

    async def close(self) -> None: ...


class StreamPipe:
    """Frames over a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, frame: Frame) -> None:
        data = _encoder.encode(frame)
        self._writer.write(struct.pack(">I", len(data)) + data)
        await self._writer.drain()

    async def receive(self) -> Frame:
        try:
            (size,) = struct.unpack(">I", await self._reader.readexactly(4))
            return _decoder.decode(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError("the feed has ended") from error

    async def close(self) -> None:
        self._writer.close()


class MemoryPipe:
    """Both ends in one loop; the frames are encoded all the same, so that tests see what travels."""

    def __init__(self, inbox: asyncio.Queue[bytes], outbox: asyncio.Queue[bytes]) -> None:
        self._inbox, self._outbox = inbox, outbox

    @classmethod
    def pair(cls) -> tuple[MemoryPipe, MemoryPipe]:
        a: asyncio.Queue[bytes] = asyncio.Queue(64)
        b: asyncio.Queue[bytes] = asyncio.Queue(64)
        return cls(a, b), cls(b, a)

    async def send(self, frame: Frame) -> None:
        await self._outbox.put(_encoder.encode(frame))

    async def receive(self) -> Frame:
        data = await self._inbox.get()
        if not data:
            raise EOFError("the feed has ended")
        return _decoder.decode(data)

    async def close(self) -> None:
        if not self._outbox.full():
            self._outbox.put_nowait(b"")


def encode_rows(rows: list[Row]) -> bytes:
    return _encoder.encode(rows)


def encode_ids(ids: list[RowId]) -> bytes:
    return _encoder.encode(ids)
