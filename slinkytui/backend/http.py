"""The seam between the clients and a server: one request, one answer whose body streams.

`kube` and `slurm` put a real HTTP client behind `Transport`; tests put the simulator's `handle` there
(`CoreTransport`), on the same loop and the same clock, without a socket. The simulator's servers speak
the same two types.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

Query = tuple[tuple[str, str], ...]
"""Decoded query parameters in order; a key may stand more than once."""


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is percent-encoded, without query. Header names are lower case."""

    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def first(self, key: str, default: str = "") -> str:
        """The first value of a query key."""
        return next((v for k, v in self.query if k == key), default)

    def all(self, key: str) -> list[str]:
        return [v for k, v in self.query if k == key]


@dataclass(slots=True)
class Answer:
    """`chunks` yields the body once. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def read(self, limit: int = 1 << 26) -> bytes:
        """The whole body, for small answers; more than `limit` bytes raise ValueError."""
        out = bytearray()
        async for chunk in self.chunks:
            out += chunk
            if len(out) > limit:
                raise ValueError(f"an answer of more than {limit} bytes")
        return bytes(out)


class Transport(Protocol):
    """Sends a request with the credentials of its server. Raises `Unreachable` when there is no answer, also when
    the body breaks off while it is read."""

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        """`timeout_s` bounds the wait for the head and for each chunk, never the whole of a watch."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Response:
    """What a simulated server answers. `body` is bytes, or a stream for a watch."""

    status: int = 200
    body: bytes | AsyncIterator[bytes] = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]
"""The core of a simulated server."""


class CoreTransport:
    """A client's transport straight into a simulated server's core."""

    def __init__(self, handle: Handler, headers: Mapping[str, str] | None = None) -> None:
        self._handle = handle
        self._headers = dict(headers or {})

    @asynccontextmanager
    async def _send(self, request: Request) -> AsyncIterator[Answer]:
        merged = {**self._headers, **request.headers}
        response = await self._handle(Request(request.method, request.path, request.query, merged, request.body))
        body = response.body

        async def chunks() -> AsyncIterator[bytes]:
            if isinstance(body, bytes):
                if body:
                    yield body
            else:
                async for chunk in body:
                    yield chunk

        stream = chunks()
        try:
            yield Answer(response.status, {**response.headers, "content-type": response.content_type}, stream)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        return self._send(request)

    async def close(self) -> None:
        return None
