"""What was done, by whom, with which answer: one JSON object a line, appended and never rewritten."""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import platformdirs

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.models import JournalEntry

_TAIL_BYTES: Final = 500_000


class _Line(msgspec.Struct):
    at: str = ""
    who: str = ""
    verb: str = ""
    target: str = ""
    phase: str = ""
    ok: bool | None = None
    answer: str = ""
    reason: str = ""
    plan: str = ""
    call: str = ""
    took_ms: int | None = None


_decoder = msgspec.json.Decoder(_Line)


def default_path() -> str:
    return str(Path(platformdirs.user_state_dir("slinkytui")) / "journal.jsonl")


class Journal:
    def __init__(self, path: str, clock: Clock, actor: str = "") -> None:
        self._path, self._clock = Path(path or default_path()), clock
        self._actor = actor or _me()

    def write(self, entry: dict[str, Any]) -> None:
        """Append one entry. A journal that cannot be written stops the verb: nothing is done unseen."""
        at = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="milliseconds")
        line = msgspec.json.encode({"at": at, "who": self._actor, **entry}) + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            raise SlinkyError(
                f"the journal {self._path} cannot be written", detail=str(error), hint="nothing was done"
            ) from error

    def tail(self) -> list[JournalEntry]:
        """The newest entries, a step's begin and end as one; lines that cannot be read are left out."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as lines:
            size = lines.seek(0, os.SEEK_END)
            lines.seek(max(0, size - _TAIL_BYTES))
            if size > _TAIL_BYTES:
                lines.readline()  # the rest of a line that begins before
            newest = [(lines.tell(), line) for line in iter(lines.readline, b"")]
        out: dict[tuple[str, str, str], JournalEntry] = {}
        done: list[JournalEntry] = []
        for number, raw in newest:
            try:
                line = _decoder.decode(raw)
                at = datetime.fromisoformat(line.at).timestamp()
            except (msgspec.MsgspecError, ValueError):
                continue
            step = (line.plan, line.verb, line.target)
            begun = out.pop(step, None)
            row = JournalEntry(
                begun.number if begun else number, begun.at if begun else at, line.who, line.verb, line.target, line.ok,
                line.answer, line.reason or (begun.reason if begun else ""), line.plan, line.call, line.took_ms,
            )  # fmt: skip
            if line.phase == "begin":
                out[step] = row
            else:
                done.append(row)
        return [*done, *out.values()]


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
