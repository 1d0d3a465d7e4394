"""`python -m slinkytui.backend.sim SCENARIO`: serves until its stdin ends; prints one JSON line when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.sim.serve import serve


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="slinkytui sim serve")
    parser.add_argument("scenario", nargs="?", default="small")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kube", default="127.0.0.1:0")
    parser.add_argument("--slurm", default="127.0.0.1:0")
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
            )
        )
    except SlinkyError as error:
        print(f"slinkytui: {error.line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
