"""What was done, by whom, with which answer: one JSON object a line, appended and never rewritten."""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import SlinkyError


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


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
