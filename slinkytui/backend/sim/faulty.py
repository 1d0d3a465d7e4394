"""A server's core behind its faults: late, silent, failing or contradicting, as the settings say."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, Literal

from slinkytui.backend.http import Handler, Request, Response
from slinkytui.backend.sim.failures import Failed
from slinkytui.backend.sim.faults import Settings

Sleep = Callable[[float], Awaitable[None]]
_GONE: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "too old resource version",
                "reason": "Expired", "code": 410}  # fmt: skip


class Gate:
    """Shut while a switch is on; who comes then waits until it is off."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._open = asyncio.Event()
        self._move(settings[name])
        settings.listen(name, self._move)

    def _move(self, shut: float) -> None:
        if shut:
            self._open.clear()
        else:
            self._open.set()

    async def passed(self) -> None:
        await self._open.wait()


class Faulty:
    """`handle` of a server with faults. `side` is the prefix of its settings, `sleep` waits in the caller's time."""

    def __init__(
        self, side: Literal["slurm", "kube"], handle: Handler, settings: Settings, rng: random.Random, sleep: Sleep
    ) -> None:
        self._side, self._inner, self._settings, self._rng, self._sleep = side, handle, settings, rng, sleep
        self._gate = Gate(settings, f"{side}.silence")
        self._gone = asyncio.Event()
        settings.listen("kube.gone", self._end_watches)

    async def handle(self, request: Request) -> Response:
        if (late := self._of("latency")) > 0:
            await self._sleep(late)
        await self._gate.passed()
        fault = self._slurm_fault() if self._side == "slurm" else self._kube_fault(request)
        if fault is not None:
            return fault
        response = await self._inner(request)
        if self._side == "kube" and request.first("watch") in ("true", "1") and not isinstance(response.body, bytes):
            response.body = self._watch(response.body)
        return response

    def _of(self, name: str) -> float:
        return self._settings[f"{self._side}.{name}"]

    def _strikes(self, name: str) -> bool:
        share = self._of(name)
        return share > 0 and self._rng.random() < share

    def _slurm_fault(self) -> Response | None:
        if self._strikes("errors"):
            return _slurm_error(502, 1800, "Unable to contact slurm controller (connect failure)")
        if self._strikes("refusals"):
            return _slurm_error(200, -1, "Unspecified error")
        return None

    def _kube_fault(self, request: Request) -> Response | None:
        if self._strikes("errors"):
            return Failed(503, "ServiceUnavailable", "the server is currently unable to handle the request").response()
        if request.method in ("PUT", "PATCH") and self._strikes("conflicts"):
            name = request.path.rstrip("/").rsplit("/", 1)[-1]
            text = f'Operation cannot be fulfilled on "{name}": the object has been modified; please apply your changes to the latest version and try again'
            return Failed(409, "Conflict", text).response()
        return None

    async def _watch(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Events while the API talks; the end at once when the watch is gone."""
        gone = asyncio.ensure_future(self._gone.wait())
        coming: asyncio.Future[bytes | None] | None = None
        try:
            while not self._gone.is_set():
                coming = asyncio.ensure_future(_next(body))
                await asyncio.wait({coming, gone}, return_when=asyncio.FIRST_COMPLETED)
                if self._gone.is_set():
                    break
                chunk = coming.result()
                if chunk is None:
                    return
                await self._gate.passed()
                if not self._gone.is_set():
                    yield chunk
            yield json.dumps({"type": "ERROR", "object": _GONE}).encode() + b"\n"
        finally:
            left: list[asyncio.Future[Any]] = [gone] if coming is None else [gone, coming]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            if isinstance(body, AsyncGenerator):
                await body.aclose()

    def _end_watches(self, on: float) -> None:
        if on:
            self._gone.set()
        else:
            self._gone.clear()


async def _next(body: AsyncIterator[bytes]) -> bytes | None:
    """The next chunk, None after the last."""
    return await anext(body, None)


def _slurm_error(status: int, code: int, text: str) -> Response:
    error = {"description": text, "error_number": code, "error": text, "source": "slurmrestd"}
    return Response(status, json.dumps({"errors": [error], "warnings": [], "meta": {}}).encode())
