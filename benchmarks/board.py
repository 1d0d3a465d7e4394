"""The board as a person feels it: `python benchmarks/board.py [SCENARIO]` (default huge), or behind `--` the options
of a real cluster, like `-- --kubeconfig F --screen pods`. Prints first bytes and rows, key to bytes, rest, memory.
"""

from __future__ import annotations

import shutil
import sys
import tempfile

from benchmarks.terminal import Terminal, percentile


def main(argv: list[str]) -> None:
    options = argv[argv.index("--") + 1 :] if "--" in argv else ["--sim", argv[0] if argv else "huge"]
    match = r"allocated|mixed|idle" if "--screen" not in options else r"Running|Ready"
    state = tempfile.mkdtemp(prefix="slinkytui-bench-")
    command = [sys.executable, "-m", "slinkytui", *options]
    terminal = Terminal(command, (120, 36), {"XDG_STATE_HOME": state})
    try:
        first = None
        while first is None:
            if terminal.read(0.01):
                first = terminal.until(".", 30)
        rows = terminal.until(match, 120)
        print(f"first bytes {first * 1000:.0f} ms, first rows {rows * 1000:.0f} ms")
        busy = [t for _ in range(60) if (t := terminal.press(b"j")) is not None]
        print(
            f"key to bytes while data arrives: median {percentile(busy, 0.5):.1f} ms, p99 {percentile(busy, 0.99):.1f} ms"
        )
        terminal.read_all(25)
        calm = [t for n in range(200) if (t := terminal.press(b"k" if n % 20 > 10 else b"j")) is not None]
        print(
            f"key to bytes: median {percentile(calm, 0.5):.1f} ms, p99 {percentile(calm, 0.99):.1f} ms ({len(calm)} keys)"
        )
        rate, share = terminal.rest(15)
        print(f"at rest: {rate:.0f} B/s, {share:.1%} of a core")
        memory = terminal.memory_mb()
        print(
            f"memory: {sum(memory.values()):.0f} MB in {len(memory)} processes: {', '.join(f'{m:.0f}' for m in memory.values())}"
        )
    finally:
        terminal.close()
        shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
