"""Runs a full-screen program in a pseudo-terminal and measures what a person would feel."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


class Terminal:
    """A program in a pty. Times are seconds since its start; `output` are all bytes that it wrote."""

    def __init__(
        self, command: Sequence[str], size: tuple[int, int] = (200, 50), env: dict[str, str] | None = None
    ) -> None:
        self.began = time.monotonic()
        self.output = bytearray()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})})
            os.execvp(command[0], list(command))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def read(self, seconds: float) -> bytes:
        """What arrives within `seconds`."""
        out, until = bytearray(), time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            found, _, _ = select.select([self._fd], [], [], left)
            if not found:
                break
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                break
            out += data
        self.output += out
        return bytes(out)

    def until(self, pattern: str, timeout: float = 60.0) -> float:
        """When the pattern has been written, in seconds since the start. Raises TimeoutError."""
        wanted = re.compile(pattern.encode())
        while time.monotonic() - self.began < timeout:
            self.read(0.02)
            if wanted.search(plain(self.output)):
                return time.monotonic() - self.began
        raise TimeoutError(f"{pattern!r} did not appear within {timeout:g} s")

    def press(self, keys: bytes, timeout: float = 2.0) -> float | None:
        """Milliseconds from a key to the first byte after it; None when nothing came."""
        self.read(0.03)
        began = time.monotonic()
        os.write(self._fd, keys)
        found, _, _ = select.select([self._fd], [], [], timeout)
        took = (time.monotonic() - began) * 1000
        self.read(0.03)
        return took if found else None

    def rest(self, seconds: float) -> tuple[float, float]:
        """Bytes a second and share of a core of the whole process tree, while nobody does anything."""
        cpu, began = self.cpu(), time.monotonic()
        data = self.read_all(seconds)
        took = time.monotonic() - began
        return len(data) / took, (self.cpu() - cpu) / took

    def read_all(self, seconds: float) -> bytes:
        """What arrives within `seconds`, also after silences."""
        out, until = bytearray(), time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            out += self.read(min(left, 0.2))
        return bytes(out)

    def tree(self) -> list[int]:
        """The program and its descendants, without simulators."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                children.setdefault(int(fields[1]), []).append(int(entry.name))
        out, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"backend.sim" not in line:
                out.append(pid)
                todo += children.get(pid, [])
        return out

    def cpu(self) -> float:
        """CPU seconds of the tree so far."""
        total = 0.0
        for pid in self.tree():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += (int(fields[11]) + int(fields[12])) / _TICK
        return total

    def memory_mb(self) -> dict[int, float]:
        """Proportional resident memory of each process of the tree, in MB: pages that they share are counted once."""
        out = {}
        for pid in self.tree():
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            found = re.search(r"^Pss:\s+(\d+) kB", text, re.M)
            out[pid] = int(found[1]) / 1000 if found else 0.0
        return out

    def close(self) -> None:
        os.close(self._fd)
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


def plain(data: bytes | bytearray) -> bytes:
    """The text between the escape sequences."""
    return re.sub(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][0-9A-Za-z]|.)", b"", bytes(data))


def percentile(values: Sequence[float], share: float) -> float:
    found = sorted(values)
    return found[min(len(found) - 1, int(share * len(found)))] if found else float("nan")
