"""What a call to slurmrestd gives back: the parsed answer, and the lists and writes made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slinkytui.backend.errors import SlurmError, Unreachable
from slinkytui.backend.models import Row
from slinkytui.backend.slurm.errors import Complaint, complaints, printable


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as it was at `last_update`; `unchanged` means that the server had no news, and says nothing of rows."""

    rows: Sequence[Row] = ()
    unchanged: bool = False
    last_update: int | None = None
    warnings: tuple[str, ...] = ()
    lost: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a write: the server's warnings, and of a submit the job's number and its message."""

    warnings: tuple[str, ...] = ()
    job_id: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: its JSON object ({} when it is none) and the complaints in it."""

    status: int
    data: dict[str, Any]
    body: bytes
    errors: list[Complaint] = field(default_factory=list)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(w.text for w in complaints(self.data.get("warnings")) if w.text)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body, bare NaN and Infinity too; {} when it is something else."""
    if not body.lstrip().startswith(b"{"):
        return {}
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        try:
            found = json.loads(body.decode("utf-8", "replace"))
        except ValueError:
            raise Unreachable("the answer of slurmrestd is cut or no JSON", detail=printable(body)) from None
    return found if isinstance(found, dict) else {}


def records(reply: Reply, key: str) -> list[dict[str, Any]]:
    """The records of an answer. Raises SlurmError when there is no list: only a list that is there can be empty."""
    found = reply.data.get(key)
    if not isinstance(found, list):
        raise SlurmError(f"the answer has no list of {key}", status=reply.status, detail=printable(reply.body))
    return [r for r in found if isinstance(r, dict)]


def no_slurm(what: str, body: bytes) -> Unreachable:
    """A page of a proxy, an empty body, JSON of something else: no answer of slurmrestd, and so no news at all."""
    return Unreachable(f"{what}: this is no answer of slurmrestd", detail=printable(body) or "an empty body")


def stamp_of(value: Any) -> int | None:
    """A last_update, whatever shape it has."""
    found = value.get("number") if isinstance(value, dict) else value
    return int(found) if isinstance(found, int | float) and found else None
