"""What a person chose in the console and wants to find again: columns, sort fields, hidden panes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec


class _File(msgspec.Struct, forbid_unknown_fields=False, omit_defaults=True):
    columns: dict[str, list[str]] = {}
    sort: dict[str, str] = {}
    hidden: list[str] = []


@dataclass
class Memory:
    """`columns` and `sort` by kind, `hidden` panes of the board. Without a path nothing outlives the process."""

    path: Path | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)
    sort: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    trouble: str = ""
    """Why the file could not be read or written; the console says it once and goes on."""

    @classmethod
    def load(cls, path: Path | None) -> Memory:
        """What the file holds; an unreadable one is told and left alone until the next choice."""
        if path is None or not path.exists():
            return cls(path)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=_File)
        except (OSError, msgspec.MsgspecError) as error:
            return cls(path, trouble=f"{path} cannot be read: {error}")
        return cls(path, found.columns, found.sort, found.hidden)

    def save(self) -> None:
        """Write the file as a whole, beside it first: a full disk keeps the old one."""
        if self.path is None:
            return
        data = msgspec.json.format(msgspec.json.encode(_File(self.columns, self.sort, self.hidden)), indent=1)
        beside = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(data + b"\n")
            beside.replace(self.path)
        except OSError as error:
            self.trouble = f"{self.path} cannot be written: {error}"


def default_path() -> Path:
    import platformdirs

    return Path(platformdirs.user_state_dir("slinkytui")) / "console.json"
