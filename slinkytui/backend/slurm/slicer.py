"""Cuts the rows out of a slurmrestd list while it streams, compact or indented, so that each is decoded alone.

It cuts at `},{"FIRSTKEY":` or at the rows' own indent; neither can stand inside a JSON string. What does not look like
a list of that key is kept whole and returned by `finish`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_HEAD_ROOM: Final = 4_096


class RowSlicer:
    """`feed` yields whole rows; `finish` gives the rest as one small document: last row, meta, errors, warnings."""

    def __init__(self, key: str) -> None:
        self._start = re.compile(rb'^\s*\{\s*"' + re.escape(key.encode()) + rb'"\s*:\s*\[(\s*)\{(\s*)("[^"]*"\s*:)')
        self._prefix = b'{"' + key.encode() + b'":['
        self._buffer = b""
        self._sep = b""
        self._close = 0
        self._open = b""
        self._whole: list[bytes] = []
        """The pieces of an answer that is no list of ours: joined once, at the end."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._whole:
            self._whole.append(chunk)
            return
        self._buffer += chunk
        if not self._sep and not self._begin():
            return
        at, sep = 0, self._sep
        while (cut := self._buffer.find(sep, at)) >= 0:
            yield self._buffer[at : cut + self._close]
            at = cut + len(sep) - len(self._open)
        if at:
            self._buffer = self._buffer[at:]

    def finish(self) -> bytes:
        if self._whole:
            return b"".join(self._whole)
        return self._prefix + self._buffer if self._sep else self._buffer

    def _begin(self) -> bool:
        found = self._start.match(self._buffer)
        if found is None:
            if len(self._buffer) > _HEAD_ROOM:
                self._whole.append(self._buffer)
            return False
        before, inside, first = bytes(found[1]), bytes(found[2]), bytes(found[3])
        if b"\n" in before:
            indent = before[before.rindex(b"\n") :]
            self._sep, self._open, self._close = indent + b"}," + indent + b"{", b"{", len(indent) + 1
        else:
            self._open = b"{" + inside + first
            self._sep, self._close = b"}," + before + self._open, 1
        self._buffer = self._buffer[found.start(1) + len(before) :]
        return True
