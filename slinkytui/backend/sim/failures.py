"""Answers that say no: a Status with the server's words."""

from __future__ import annotations

from typing import Any

import msgspec

from slinkytui.backend.http import Response
from slinkytui.backend.sim.objects import Served


class Failed(Exception):
    """A Status answer."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def response(self) -> Response:
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                  "reason": self.reason, "code": self.code}  # fmt: skip
        if self.details is not None:
            status["details"] = self.details
        return Response(self.code, msgspec.json.encode(status))


def qualified(served: Served) -> str:
    """The resource as the server's texts name it."""
    return f"{served.plural}.{served.group}" if served.group else served.plural


def qualified_kind(served: Served) -> str:
    return f"{served.kind}.{served.group}" if served.group else served.kind


def about(served: Served, name: str) -> dict[str, Any]:
    """A Status's details: which object."""
    found = {"name": name, "group": served.group, "kind": served.plural}
    return {k: v for k, v in found.items() if v}


def conflict(served: Served, name: str, why: str) -> Failed:
    """409. `why` follows the name."""
    return Failed(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(served)} "{name}": {why}',
        about(served, name),
    )


def invalid(served: Served, name: str, causes: list[tuple[str, str, str]]) -> Failed:
    """422. A cause is a reason ("FieldValueRequired"), a message and a field."""
    told = [{"reason": r, "message": m, "field": f} for r, m, f in causes]
    texts = [f"{f}: {m}" for _, m, f in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"name": name, "group": served.group, "kind": served.kind, "causes": told}
    return Failed(422, "Invalid", f'{qualified_kind(served)} "{name}" is invalid: {text}',
                  {k: v for k, v in details.items() if v})  # fmt: skip
