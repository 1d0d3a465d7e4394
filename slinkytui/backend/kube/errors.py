"""An answer of the API server that is no success becomes one exception, with the server's own words."""

from __future__ import annotations

from typing import Any

import msgspec

from slinkytui.backend.errors import BadRequest, Conflict, KubeError, NotAllowed, NotFound, SlinkyError, Unreachable


class Gone(KubeError):
    """410: the resourceVersion is too old, list again."""


class TooMany(KubeError):
    """429: a budget or a rate limit; worth a later try."""

    by_budget: bool = False
    """A disruption budget refused an eviction; else the server has too much to do."""
    retry_after: float = 1.0
    """Seconds after which the server wants to be asked again."""


class Status(msgspec.Struct):
    message: str | None = ""
    reason: str | None = ""
    code: int | None = 0
    details: dict[str, Any] | None = None


def _causes(found: Status) -> list[dict[str, Any]]:
    causes = (found.details or {}).get("causes")
    return [c for c in causes if isinstance(c, dict)] if isinstance(causes, list) else []


def classify(what: str, status: int, body: bytes) -> SlinkyError:
    """The exception for a refused call; `what` names it in words."""
    try:
        found = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        text = "".join(c if c.isprintable() else " " for c in body[:400].decode("utf-8", "replace"))
        found = Status(message=text[:200].strip())
    message, reason = (found.message or "")[:1000], found.reason or ""
    if status in (401, 403):
        hint = "the credentials were refused" if status == 401 else ""
        return NotAllowed(f"{what}: not allowed", detail=message, hint=hint)
    if status == 404:
        return NotFound(f"{what}: not found", detail=message)
    if status == 409:
        return Conflict(f"{what}: conflict", detail=message, retryable=reason == "Conflict")
    if status == 410:
        return Gone(f"{what}: too old", status=status, reason=reason, detail=message)
    if status == 429:
        refused = TooMany(f"{what}: refused for now", status=status, reason=reason, detail=message, retryable=True)
        details = found.details or {}
        refused.by_budget = '"DisruptionBudget"' in msgspec.json.encode(details.get("causes")).decode()
        after = details.get("retryAfterSeconds")
        refused.retry_after = float(after) if isinstance(after, int | float) and after > 0 else 1.0
        return refused
    if status in (502, 503, 504):
        return Unreachable(f"{what}: the API server is not ready", detail=message)
    if status == 422 and any(c.get("field") == "metadata.uid" for c in _causes(found)):
        return Conflict(f"{what}: another one of this name is there now", detail=message, retryable=True)
    if 400 <= status < 500:
        return BadRequest(f"{what}: refused", detail=message)
    return KubeError(f"{what}: failed", status=status, reason=reason, detail=message, retryable=status >= 500)
