"""Hands the arguments to the command line."""

from __future__ import annotations

import sys


def main() -> int:
    from slinkytui.cli import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
