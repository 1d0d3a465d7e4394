"""The board as a person feels it: first bytes and rows, key to bytes, rest, memory. Console and engine are measured, the
simulator is not: it runs beside them.

usage: python -m benchmarks.board [SCENARIO]      (default huge)
       python -m benchmarks.board -- OPTIONS      of a real cluster, like --kubeconfig F --screen pods
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.terminal import Terminal, percentile


@contextmanager
def served(scenario: str) -> Iterator[str]:
    """A simulated cluster that is up; its kubeconfig."""
    folder = Path(tempfile.mkdtemp(prefix="slinkytui-bench-"))
    config = folder / "kubeconfig"
    # A real cluster is elsewhere and takes no core from the console.
    command = [
        "nice",
        "-n",
        "15",
        sys.executable,
        "-m",
        "slinkytui",
        "sim",
        "serve",
        scenario,
        "--write-kubeconfig",
        str(config),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()  # it says where it listens once it does
        yield str(config)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def measure(options: list[str], match: str) -> None:
    """Run the console with these options and print what was felt."""
    state = tempfile.mkdtemp(prefix="slinkytui-bench-")
    terminal = Terminal([sys.executable, "-m", "slinkytui", *options], (120, 36), {"XDG_STATE_HOME": state})
    try:
        first = terminal.until(".", 30)
        rows = terminal.until(match, 120)
        print(f"  first bytes {first * 1000:.0f} ms, first rows {rows * 1000:.0f} ms")
        busy = [t for _ in range(60) if (t := terminal.press(b"j")) is not None]
        print(f"  key to bytes while data arrives: {_spread(busy)}")
        terminal.read_all(25)
        calm = [t for n in range(300) if (t := terminal.press(b"k" if n % 20 > 10 else b"j")) is not None]
        print(f"  key to bytes: {_spread(calm)}")
        rate, share = terminal.rest(15)
        memory = terminal.memory_mb()
        print(f"  at rest: {rate:.0f} B/s, {share:.1%} of a core")
        each = ", ".join(f"{m:.0f}" for m in memory.values())
        print(f"  memory: {sum(memory.values()):.0f} MB (console and engine: {each})")
    finally:
        terminal.close()
        shutil.rmtree(state, ignore_errors=True)


def _spread(values: list[float]) -> str:
    return f"median {percentile(values, 0.5):.1f} ms, p99 {percentile(values, 0.99):.1f} ms ({len(values)} keys)"


def main(argv: list[str]) -> None:
    if "--" in argv:
        measure(argv[argv.index("--") + 1 :], r"Running|Pending|allocated|mixed|idle")
        return
    with served(argv[0] if argv else "huge") as config:
        measure(["--kubeconfig", config], r"allocated|mixed|idle")


if __name__ == "__main__":
    main(sys.argv[1:])
