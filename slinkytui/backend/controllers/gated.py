"""Transports behind the gate: whatever a controller sends, no write leaves this process without the lease."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.http import Answer, Request, Transport
from slinkytui.backend.kube.errors import TooMany

READS: Final = ("GET", "HEAD", "OPTIONS")
QUESTIONS: Final = ("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")
"""Posted, and yet nothing changes: reviews of rights and tokens."""
READ_S: Final = 30.0


class GatedTransport:
    """Wraps the transport of an API server or of a slurmrestd; reads pass. A write raises NotLeading."""

    def __init__(self, inner: Transport, gate: Gate) -> None:
        self._inner, self._gate = inner, gate

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        if request.method in READS or request.path.startswith(QUESTIONS):
            return self._inner.send(request, timeout_s=timeout_s)
        seconds = self._gate.check(f"{request.method} {request.path}")
        return self._inner.send(request, timeout_s=min(seconds, timeout_s or READ_S))

    async def close(self) -> None:
        await self._inner.close()


def put_off(error: Exception) -> float | None:
    """The seconds to wait if the server only said that it has too much to do; a budget's refusal is an answer."""
    return error.retry_after if isinstance(error, TooMany) and not error.by_budget else None
