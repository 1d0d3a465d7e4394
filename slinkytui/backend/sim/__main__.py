"""`slinkytui sim serve` and `sim set`. Serving prints one JSON line when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.sim.faults import SETTINGS, read_all
from slinkytui.backend.sim.serve import serve
from slinkytui.backend.sim.setting import change

_SETTINGS = "settings:\n" + "\n".join(f"  {s.name:<16} {s.kind:<8} {s.help}" for s in SETTINGS.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Serve a scenario until interrupted, or with --with-parent until stdin ends."""
    parser = _parser("slinkytui sim serve")
    parser.add_argument("scenario", nargs="?", default="small")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kube", default="127.0.0.1:0")
    parser.add_argument("--slurm", default="127.0.0.1:0")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=VALUE", help="a setting from the start")
    parser.add_argument("--write-kubeconfig", default="")
    parser.add_argument("--write-token", default="")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin ends")
    args = parser.parse_args(argv)
    try:
        asyncio.run(
            serve(
                args.scenario,
                speed=args.speed,
                seed=args.seed,
                kube=args.kube,
                slurm=args.slurm,
                kubeconfig=args.write_kubeconfig,
                token_file=args.write_token,
                with_parent=args.with_parent,
                ready=lambda found: print(json.dumps(found), flush=True),
                faults=read_all(args.fault),
            )
        )
    except SlinkyError as error:
        print(f"slinkytui: {error.line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    return 0


def main_set(argv: Sequence[str]) -> int:
    """Change settings of a running simulator and print all of them; without words only print."""
    parser = _parser("slinkytui sim set")
    parser.add_argument("--url", required=True, help="the simulator's Slurm address, slurm_url of sim serve")
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    args = parser.parse_args(argv)
    try:
        for name, value in change(args.url, read_all(args.settings)).items():
            print(f"{name}={value}")
    except SlinkyError as error:
        print(f"slinkytui: {error.line()}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser(name: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=name, epilog=_SETTINGS, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


if __name__ == "__main__":
    sys.exit(main())
