"""The command line: argparse and nothing else of weight at import, so that `--help` is quick.

Global options hold before and after the sub-command. stdout is data, stderr is talk; the exit code tells the class of
an error: 0 done, 1 failed or refused, 2 usage, 3 not found, 4 unreachable, 5 stale plan, 6 not allowed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

GLOBALS = {
    "kubeconfig": "", "context": "", "namespace": "", "all_namespaces": False, "slurm": [], "token_file": "", "ca_file": "",
    "sim": "", "sim_speed": 1.0, "read_only": False, "theme": "dark", "screen": "board",
}  # fmt: skip


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"slinkytui: {message} (slinkytui --help)\n")


def _shared() -> _Parser:
    """The options that stand anywhere: SUPPRESS keeps a sub-parser's default from undoing what stood before it."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = shared.add_argument_group("where")
    group.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig (default: KUBECONFIG, ~/.kube/config)")
    group.add_argument("--context", metavar="NAME", help="kubeconfig context")
    group.add_argument("-n", "--namespace", metavar="NS", help="one namespace (default: all)")
    group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    group.add_argument(
        "--slurm", action="append", metavar="[NS/CONTROLLER=]URL", help="slurmrestd, http(s)://… or unix:/…"
    )
    group.add_argument("--token-file", metavar="FILE", help="Slurm token (default: SLURM_JWT)")
    group.add_argument("--ca-file", metavar="FILE", help="CA of an https slurmrestd")
    group.add_argument(
        "--sim", metavar="SCENARIO", help="a simulated cluster: a scenario's name or file (default: small)"
    )
    group.add_argument("--sim-speed", type=_speed, metavar="N", help="how fast its time runs")
    group.add_argument("--read-only", action="store_true", help="bind no verb that writes")
    look = shared.add_argument_group("look")
    look.add_argument("--theme", choices=("dark", "light", "safe"), help="colours; safe is for the colour-blind")
    look.add_argument("--screen", metavar="NAME", help="first screen: board, or a kind")
    return shared


def parser() -> argparse.ArgumentParser:
    shared = _shared()
    main_parser = _Parser(
        prog="slinkytui", description="Slurm on Kubernetes from a terminal.", parents=[shared], allow_abbrev=False
    )
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    get = commands.add_parser("get", parents=[shared], help="print a kind", allow_abbrev=False)
    get.add_argument("kind", metavar="KIND")
    get.add_argument("name", metavar="NAME", nargs="?")
    get.add_argument("-f", "--filter", default="", metavar="EXPR", help="like: state=idle & gpus>0 & name~^gpu")
    get.add_argument("--sort", default="", metavar="FIELD", help="a field; -FIELD for descending")
    get.add_argument("-o", "--output", default="table", choices=("table", "wide", "json", "yaml", "csv", "name"))
    do = commands.add_parser("do", parents=[shared], help="plan or run a verb", allow_abbrev=False)
    do.add_argument("verb", metavar="VERB", help="like node.drain")
    do.add_argument("targets", metavar="TARGET", nargs="+")
    do.add_argument("--set", action="append", default=[], metavar="K=V", help="a setting, like replicas=4")
    do.add_argument("--reason", default="", metavar="TEXT")
    how = do.add_mutually_exclusive_group(required=True)
    how.add_argument("--plan", action="store_true", help="only say what would be done")
    how.add_argument("--yes", action="store_true", help="do it")
    do.add_argument("--if-plan", default="", metavar="HASH", help="only if the plan is still this one")
    do.add_argument("-o", "--output", default="text", choices=("text", "json"))
    commands.add_parser("crds", parents=[shared], help="print the custom resource definitions", allow_abbrev=False)
    commands.add_parser(
        "sim", help="sim serve [SCENARIO]: serve a simulated cluster (sim serve --help)", allow_abbrev=False
    )
    commands.add_parser("version", parents=[shared], help="print the version", allow_abbrev=False)
    return main_parser


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed <= 10_000:
        raise argparse.ArgumentTypeError("must be greater than 0")
    return speed


def scenarios() -> tuple[str, ...]:
    """The names of the scenarios that come with the program."""
    return tuple(sorted(p.stem for p in (Path(__file__).parent / "backend" / "sim" / "scenarios").glob("*.yaml")))


def bind_sim(argv: Sequence[str]) -> list[str]:
    """`--sim` takes the next word only if that is a scenario or a scenario's file, wherever it stands."""
    out: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word != "--sim":
            out.append(word)
            continue
        is_value = bool(words) and (
            words[0] in scenarios() or (words[0].endswith((".yaml", ".yml")) and Path(words[0]).is_file())
        )
        out.append(f"--sim={words.pop(0) if is_value else 'small'}")
    return out


def settings(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments with the defaults of what was not given. A --sim that was given is never lost."""
    words = bind_sim(argv)
    main_parser = parser()
    found = main_parser.parse_args(words)
    simulated = [w.removeprefix("--sim=") for w in words if w.startswith("--sim=")]
    if simulated:
        found.sim = simulated[-1] or "small"
        for option in ("kubeconfig", "context", "slurm", "token_file"):
            if getattr(found, option, None):
                main_parser.error(f"--sim and --{option.replace('_', '-')} exclude each other")
    for key, default in GLOBALS.items():
        if not hasattr(found, key):
            setattr(found, key, default)
    if found.all_namespaces:
        found.namespace = ""
    return found


def main(argv: Sequence[str]) -> int:
    """Run a command; the exit code."""
    if list(argv[:2]) == ["sim", "serve"]:
        return _serve_sim(argv[2:])
    args = settings(argv)
    from slinkytui.backend.errors import SlinkyError

    try:
        return _dispatch(args)
    except SlinkyError as error:
        print(f"slinkytui: {error.line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of stdout has left (| head): nothing more to say, also not at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _serve_sim(argv: Sequence[str]) -> int:
    from slinkytui.backend.sim.__main__ import main as serve

    return serve(argv)


def _dispatch(args: argparse.Namespace) -> int:
    """Each command imports what it needs, and no more."""
    if args.command == "version":
        from slinkytui import __version__

        print(__version__)
        return 0
    if args.command == "sim":
        parser().error("sim wants: sim serve [SCENARIO]")
    if args.command == "crds":
        from slinkytui.backend.crds import documents

        sys.stdout.write(documents())
        return 0
    if args.command == "get":
        from slinkytui.commands_get import run_get

        return run_get(options(args), args)
    if args.command == "do":
        from slinkytui.commands_do import run_do

        return run_do(options(args), args)
    from slinkytui.console import run_console

    return run_console(options(args), args)


def options(args: argparse.Namespace) -> Any:
    """The engine's options."""
    from slinkytui.backend.options import Options

    return Options(
        kubeconfig=args.kubeconfig, context=args.context, namespace=args.namespace, slurm=tuple(args.slurm),
        token_file=args.token_file, ca_file=args.ca_file, read_only=args.read_only, sim=args.sim, sim_speed=args.sim_speed,
    )  # fmt: skip
