"""Programs that tests start and interrupt."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def program(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A program with its output in pipes; it is gone when the block ends, whatever happened in it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
