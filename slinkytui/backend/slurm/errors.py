"""An answer of slurmrestd becomes data or one exception: by `error_number` first, by status second.

200 with `errors` is a failure; "not found" has several spellings and one exception.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from slinkytui.backend.errors import (
    BadRequest,
    Conflict,
    NotAllowed,
    NotFound,
    SlinkyError,
    SlurmError,
    Unreachable,
    Unsupported,
)

_COMMUNICATION: Final = {*range(1000, 1007), *range(1008, 1100), *range(1800, 1806), 7000, 7008, 2027, 2131}
_CREDENTIAL: Final = {1007, 6000, 6001, 6008, 9008}
_ACCESS: Final = {1, 2002, 2010}
_MISSING: Final = {2017, 2018, 2053}
_CONFLICT: Final = {2016, 2020, 2021, 2024, 2028, 2085, 2172, 2180}


class Complaint(msgspec.Struct):
    """One entry of `errors` or `warnings`."""

    description: str | None = ""
    error_number: int | None = 0
    error: str | None = ""
    source: str | None = ""

    @property
    def text(self) -> str:
        """What it says; "Batch job submission failed" alone says nothing, the reason stands in `error`."""
        said = [t for t in (self.description, self.error) if t and t != "No error"]
        return ": ".join(dict.fromkeys(said)) or (f"error {self.error_number}" if self.error_number else "")


class CredentialRefused(NotAllowed):
    """The token was refused: worth one new token and one more try."""


def classify(
    what: str, status: int, errors: list[Complaint], body: bytes = b"", *, token_user: str = ""
) -> SlinkyError:
    """The exception for a failed call. `what` names the call in words ("node gpu-1")."""
    first = next((e for e in errors if e.error_number), errors[0] if errors else Complaint())
    code = first.error_number or 0
    detail = "; ".join(dict.fromkeys(e.text for e in errors if e.text)) or printable(body)
    who = f"the token is for {token_user}" if token_user else ""
    if code in _CREDENTIAL or status == 401:
        return CredentialRefused(
            f"{what}: slurmrestd refuses the token", detail=detail, hint=who or "give --token-file"
        )
    if code in _COMMUNICATION or (status in (502, 503, 504) and not code):
        return Unreachable(f"{what}: slurmctld does not answer", detail=detail)
    if code in _ACCESS or status == 403:
        return NotAllowed(f"{what}: refused", detail=detail, hint=who)
    if code in _MISSING or (errors and (status == 404 or (status in (200, 422) and code in (0, 9000, 9003)))):
        return NotFound(f"{what} not found", detail=detail)
    if code in _CONFLICT:
        return Conflict(f"{what}: refused in this state", detail=detail)
    if code == 2037 or status == 405:
        return Unsupported(f"{what}: this Slurm cannot do it", detail=detail)
    if status == 404:
        return Unsupported(f"{what}: slurmrestd does not know this call", detail=detail)
    if 2000 <= code < 2200 or code >= 9000 or status in (400, 415, 422):
        return BadRequest(f"{what}: refused", detail=detail)
    return SlurmError(f"{what}: failed", code=code, status=status, detail=detail, retryable=status >= 500)


def printable(body: bytes, size: int = 200) -> str:
    """The first printable characters of a body that is no envelope of ours ("" for one that is: it says nothing more)."""
    if b'"meta"' in body and body.lstrip().startswith(b"{"):
        return ""
    text = body[: size * 4].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text)[:size].strip()


def complaints(found: Any) -> list[Complaint]:
    """`errors` or `warnings` of an answer, whatever shape they have."""
    if not isinstance(found, list):
        return [Complaint(description=str(found)[:200])] if found else []
    out: list[Complaint] = []
    for entry in found:
        try:
            out.append(msgspec.convert(entry, Complaint, strict=False))
        except msgspec.ValidationError:
            out.append(Complaint(description=str(entry)[:200]))
    return out
