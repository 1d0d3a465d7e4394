"""A program on a pseudo-terminal: keys in, every byte that it writes out."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from types import TracebackType


class Terminal:
    """`written` is all that came so far. Reading stops when the program is quiet, or after a bounded time."""

    def __init__(self, command: list[str], env: Mapping[str, str], *, columns: int = 120, lines: int = 36) -> None:
        self._command, self._env, self._size = command, dict(env), (lines, columns)
        self.written = b""

    def __enter__(self) -> Terminal:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *self._size, 0, 0))
        env = {**self._env, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            self._command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        os.close(self._fd)

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._fd], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._fd, 65_536)
        except OSError:
            # The program has left its terminal.
            return b""
        self.written += data
        return data

    def until(self, text: str, seconds: float = 30.0) -> None:
        """Read until this text was written after what has been read before."""
        start, end = len(self.written), time.monotonic() + seconds
        while text.encode() not in self.written[start:]:
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} never comes: {self.written[-3000:]!r}")
            self._read(0.1)

    def press(self, keys: str, quiet_s: float = 0.15) -> None:
        """Send keys and read until nothing more comes for a while (at most two seconds)."""
        os.write(self._fd, keys.encode())
        end = time.monotonic() + 2
        while self._read(quiet_s) and time.monotonic() < end:
            continue

    def ask(self, keys: str, text: str) -> None:
        """Send keys and read until this text comes."""
        os.write(self._fd, keys.encode())
        self.until(text)
