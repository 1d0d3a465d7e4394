"""aiohttp behind `Transport`, authenticated; a 401 gets new credentials and one more try."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import aiohttp
from yarl import URL

from slinkytui.backend.errors import Unreachable
from slinkytui.backend.http import Answer, Request
from slinkytui.backend.kube.access import Access

CONNECT_S: Final = 5.0
READ_S: Final = 30.0


class KubeTransport:
    def __init__(self, access: Access) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Watches hold a connection each, and a request that waits for one runs into its connect time-out.
            connector = aiohttp.TCPConnector(ssl=self.access.tls, limit=512)
            self._session = aiohttp.ClientSession(connector=connector, read_bufsize=2**21, trust_env=True)
        return self._session

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        return self._send(request, timeout_s)

    @asynccontextmanager
    async def _send(self, request: Request, timeout_s: float | None) -> AsyncIterator[Answer]:
        response = await self._start(request, timeout_s)
        if response.status == 401:
            await self.access.credentials.refused()
            response.release()
            response = await self._start(request, timeout_s)
        try:
            yield Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, self._chunks(response))
        finally:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

    async def _start(self, request: Request, timeout_s: float | None) -> aiohttp.ClientResponse:
        headers = dict(request.headers)
        authorization = await self.access.credentials.header()
        if authorization:
            headers["authorization"] = authorization
        url = URL(self.access.server + request.path, encoded=True)
        if request.query:
            url = url.with_query(list(request.query))
        timeout = aiohttp.ClientTimeout(
            total=None, connect=CONNECT_S, sock_connect=CONNECT_S, sock_read=timeout_s or READ_S
        )
        try:
            return await self._open().request(
                request.method, url, headers=headers, data=request.body or None, timeout=timeout,
                proxy=self.access.proxy or None, allow_redirects=False,
            )  # fmt: skip
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreachable(
                f"the API server at {self.access.server} does not answer", detail=str(error) or type(error).__name__
            ) from error

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreachable(
                f"the answer of {self.access.server} broke off", detail=str(error) or type(error).__name__
            ) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
