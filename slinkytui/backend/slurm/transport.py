"""httpx behind `Transport`: http, https with a CA file, unix sockets; bodies streamed, every wait bounded."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import SplitResult, urlsplit

import httpx

from slinkytui.backend.errors import ConfigError, Unreachable
from slinkytui.backend.http import Answer, Request

CONNECT_S = 5.0
READ_S = 60.0
"""slurmrestd computes for a while before its first byte (0.25 ms a node, 0.7 ms a job): generous, never endless."""


class HttpxTransport:
    """`url` is http(s)://host:port[/prefix] or unix:/path. httpx parses with h11: aiohttp's
    parser takes the second status line that slurmrestd appends to its refusals for a broken answer."""

    def __init__(self, url: str, *, ca_file: str = "", verify: bool = True) -> None:
        self.url = url
        parts = _address(url)
        self._base = "http://localhost" if parts.scheme == "unix" else url.rstrip("/")
        context: ssl.SSLContext | bool = False
        if parts.scheme == "https" and verify:
            try:
                context = ssl.create_default_context(cafile=ca_file or None)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(f"the CA file {ca_file} cannot be read", detail=str(error)) from error
        transport = httpx.AsyncHTTPTransport(
            verify=context,
            limits=httpx.Limits(max_connections=8, max_keepalive_connections=8),
            uds=parts.path if parts.scheme == "unix" else None,
        )
        self._client = httpx.AsyncClient(transport=transport)

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        return self._send(request, timeout_s)

    @asynccontextmanager
    async def _send(self, request: Request, timeout_s: float | None) -> AsyncIterator[Answer]:
        timeout = httpx.Timeout(timeout_s or READ_S, connect=CONNECT_S, pool=READ_S)
        query = httpx.QueryParams(list(request.query)) if request.query else None
        try:
            built = self._client.build_request(
                request.method, self._base + request.path, params=query, headers=dict(request.headers),
                content=request.body or None, timeout=timeout,
            )  # fmt: skip
            response = await self._client.send(built, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unreachable(f"slurmrestd at {self.url} does not answer", detail=_words(error)) from error
        try:
            yield Answer(
                response.status_code, {k.lower(): v for k, v in response.headers.items()}, self._chunks(response)
            )
        finally:
            await response.aclose()

    async def _chunks(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_raw(65_536):
                yield chunk
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise Unreachable(f"the answer of slurmrestd at {self.url} broke off", detail=_words(error)) from error

    async def close(self) -> None:
        await self._client.aclose()


def _address(url: str) -> SplitResult:
    """The parts of an address that can be one."""
    try:
        parts = urlsplit(url)
        good = parts.path.startswith("/") if parts.scheme == "unix" else bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.scheme not in ("http", "https", "unix") or not url.isprintable() or " " in url:
        raise ConfigError(
            f"{url!r} is no address of slurmrestd", hint="like http://host:6820 or unix:/run/slurmrestd.sock"
        )
    return parts


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
