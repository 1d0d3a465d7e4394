"""The command line: argparse and nothing else of weight at import, so that `--help` is quick.

Global options hold before and after the sub-command. stdout is data, stderr is talk; the exit code tells the class of
an error: 0 done, 1 failed or refused, 2 usage, 3 not found, 4 unreachable, 5 stale plan, 6 not allowed.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

THEMES = ("dark", "light", "safe")
GLOBALS = {
    "kubeconfig": "", "context": "", "namespace": "", "all_namespaces": False, "slurm": [], "token_file": "", "ca_file": "",
    "sim": "", "sim_speed": 1.0, "read_only": False, "theme": "dark", "screen": "board", "plain": False, "verbose": False,
    "keys": {}, "columns": {}, "timeout": 30.0,
}  # fmt: skip


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        tell(f"{message} ({self._near(message)})")
        self.exit(2)

    def _near(self, message: str) -> str:
        """The nearest word to the one that argparse does not know, else where help is."""
        import difflib

        choice = re.search(r"invalid choice: '?([^'\s]*)'? \(choose from (.*)\)", message)
        if choice:
            wrong, known = choice[1], re.findall(r"[\w-]+", choice[2])
        else:
            unknown = re.search(r"unrecognized arguments: (--?[\w-]+)", message)
            wrong = unknown[1] if unknown else ""
            known = [o for p in self._everyone() for a in p._actions for o in a.option_strings]
        near = difflib.get_close_matches(wrong, known, 1) if wrong else []
        return f"did you mean {near[0]}?" if near else "slinkytui --help"

    def _everyone(self) -> list[argparse.ArgumentParser]:
        subs = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]
        return [self, *(p for a in subs for p in a.choices.values())]


def tell(text: str) -> None:
    """One line on stderr, without anything that a terminal would obey."""
    line = "".join(c if c.isprintable() else " " for c in text)
    print(f"slinkytui: {line}", file=sys.stderr)


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
    group.add_argument(
        "--timeout", type=_seconds, metavar="S", help="how long a command waits for servers (default: 30)"
    )
    group.add_argument("-v", "--verbose", action="store_true", help="log to stderr, and tracebacks of internal errors")
    look = shared.add_argument_group("look")
    look.add_argument("--theme", choices=THEMES, help="colours; safe is for the colour-blind")
    look.add_argument("--plain", action="store_true", help="ASCII only")
    look.add_argument("--screen", metavar="NAME", help="first screen: board, or a kind")
    return shared


def parser() -> argparse.ArgumentParser:
    shared = _shared()
    main_parser = _Parser(
        prog="slinkytui", description="Slurm on Kubernetes from a terminal.", parents=[shared], allow_abbrev=False
    )
    _daemon_options(main_parser)
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    get = commands.add_parser("get", parents=[shared], help="print a kind", allow_abbrev=False)
    get.add_argument("kind", metavar="KIND")
    get.add_argument("name", metavar="NAME", nargs="?")
    get.add_argument("-l", "--selector", default="", metavar="SEL", help="by labels, like app=x,tier!=db")
    get.add_argument("-w", "--watch", action="store_true", help="then print changes; with -o json one object a line")
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
    explain = commands.add_parser(
        "explain", parents=[shared], help="what the operator makes of nodeset/NAME, pod/NAME or node/NAME now, and why",
        allow_abbrev=False,
    )  # fmt: skip
    explain.add_argument("subject", metavar="KIND/NAME")
    explain.add_argument("-o", "--output", default="text", choices=("text", "json"))
    commands.add_parser("crds", parents=[shared], help="print the custom resource definitions", allow_abbrev=False)
    commands.add_parser(
        "sim", help="sim serve [SCENARIO]: serve a simulated cluster (sim serve --help); sim set: change one",
        allow_abbrev=False,
    )  # fmt: skip
    doctor = commands.add_parser("doctor", parents=[shared], help="what was found, chosen and why", allow_abbrev=False)
    doctor.add_argument("-o", "--output", default="text", choices=("text", "json"))
    config = commands.add_parser("config", parents=[shared], help="the settings and where they come from",
                                 allow_abbrev=False)  # fmt: skip
    config.add_argument("--list-keys", action="store_true", help="instead every key of the console by its id")
    config.add_argument("-o", "--output", default="text", choices=("text", "json"))
    completion = commands.add_parser("completion", help="print shell completion", allow_abbrev=False)
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    commands.add_parser("version", parents=[shared], help="print the version", allow_abbrev=False)
    return main_parser


def _daemon_options(main_parser: _Parser) -> None:
    group = main_parser.add_argument_group("operator")
    group.add_argument("--daemon", action="store_true", help="run as the operator of a cluster, without a screen")
    group.add_argument("--operate", action="store_true", help="the console also runs the operator")
    group.add_argument("--attach", default="", metavar="PATH", help="the console of a daemon, by its socket")
    group.add_argument(
        "--leader-elect", action=argparse.BooleanOptionalAction, default=True, help="write only while the lease is held"
    )
    group.add_argument("--lease-namespace", default="slinky", metavar="NS", help="where the lease is (default: slinky)")
    group.add_argument("--take-over", action="store_true", help="start beside another operator's live lease")
    group.add_argument("--nodeset-workers", type=_count, default=4, metavar="N", help="NodeSets worked on at a time")
    group.add_argument("--health", default="", metavar="ADDR", help="serve /healthz and /readyz on HOST:PORT")
    group.add_argument("--metrics", default="", metavar="ADDR", help="serve /metrics on HOST:PORT")
    group.add_argument("--socket", default="", metavar="PATH", help="a unix socket for consoles (--attach)")
    group.add_argument(
        "--propagated-node-conditions", default="", metavar="TYPES",
        help="node conditions whose texts become a cordoned node's drain reason, like DiskPressure,Gpu",
    )  # fmt: skip
    group.add_argument(
        "--create-on-cordoned-nodes", action="store_true", help="daemon NodeSets: new workers on cordoned nodes too"
    )


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1_000:
        raise argparse.ArgumentTypeError("wants a number from 1 to 1000")
    return int(text)


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"wants a number, not {text!r}") from None
    if not 0 < speed <= 10_000:
        raise argparse.ArgumentTypeError("must be greater than 0 and at most 10000")
    return speed


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"wants seconds, not {text!r}") from None
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError("must be greater than 0 and at most a day")
    return seconds


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
    # What stands on the command line, before the file and the environment fill the rest.
    found.given = frozenset(key for key in GLOBALS if hasattr(found, key))
    for key, default in GLOBALS.items():
        if not hasattr(found, key):
            setattr(found, key, default)
    if found.all_namespaces:
        found.namespace = ""
    return found


def main(argv: Sequence[str]) -> int:
    """Run a command; the exit code. No traceback leaves here."""
    verbose = "SLINKYTUI_DEBUG" in os.environ or any(w in ("-v", "--verbose") for w in argv)
    try:
        code = _run(argv, verbose)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of stdout has left (| head): nothing more to say, also not at interpreter exit.
        _hush()
        return 0
    except OSError as error:
        tell(f"cannot write the output: {error.strerror or error}")
        _hush()
        return 1


def _hush() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str], verbose: bool) -> int:
    if list(argv[:1]) == ["sim"] and list(argv[1:2]) in (["serve"], ["set"]):
        return _sim(argv[1], argv[2:])
    args = settings(argv)
    from slinkytui.backend.errors import SlinkyError

    if verbose:
        _log_to_stderr()
    try:
        return _dispatch(args)
    except SlinkyError as error:
        tell(error.line())
        return error.exit_code
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001  # the last place: it is logged and told
        return _internal(error, verbose)


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")


def _internal(error: Exception, verbose: bool) -> int:
    """A fault of ours: one line, and the traceback where it can be found."""
    import traceback

    import platformdirs

    text = "".join(traceback.format_exception(error))
    path = Path(platformdirs.user_log_dir("slinkytui")) / "internal-errors.log"
    where = f"traceback in {path}; -v shows it"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as full:
        where = f"{path} cannot be written: {full.strerror}; -v shows the traceback"
    if verbose:
        sys.stderr.write(text)
    tell(f"internal error: {type(error).__name__}: {error} ({where})")
    return 1


def _sim(action: str, argv: Sequence[str]) -> int:
    from slinkytui.backend.sim import __main__ as sim

    if action == "serve":
        return sim.main(argv)
    change = getattr(sim, "main_set", None)
    if change is None:
        tell("sim set: this simulator cannot be changed while it runs (slinkytui sim serve --help)")
        return 2
    return int(change(argv))


def _dispatch(args: argparse.Namespace) -> int:
    """Each command imports what it needs, and no more."""
    if args.command == "version":
        from slinkytui import __version__

        print(__version__)
        return 0
    if args.command == "completion":
        from slinkytui.completion import script

        sys.stdout.write(script(args.shell, parser()))
        return 0
    if args.command == "sim":
        parser().error("sim wants: sim serve [SCENARIO], or sim set")
    if args.command == "crds":
        from slinkytui.backend.crds import documents

        sys.stdout.write(documents())
        return 0
    from slinkytui.config import apply, check_keymap, run_config

    if args.command == "config":
        return run_config(args)
    where = apply(args)
    if args.command == "get":
        from slinkytui.commands_get import run_get

        return run_get(options(args), args)
    if args.command == "do":
        from slinkytui.commands_do import run_do

        return run_do(options(args), args)
    if args.command == "explain":
        from slinkytui.commands_explain import run_explain

        return run_explain(options(args), args)
    if args.command == "doctor":
        from slinkytui.commands_doctor import run_doctor

        return run_doctor(options(args), args)
    if args.daemon:
        from slinkytui.daemon import run_daemon

        return run_daemon(options(args), args)
    check_keymap(args.keys, where["keys"])
    from slinkytui.console import run_console

    return run_console(options(args), args)


def options(args: argparse.Namespace) -> Any:
    """The engine's options."""
    from slinkytui.backend.options import Options

    return Options(
        kubeconfig=args.kubeconfig, context=args.context, namespace=args.namespace, slurm=tuple(args.slurm),
        token_file=args.token_file, ca_file=args.ca_file, read_only=args.read_only, sim=args.sim, sim_speed=args.sim_speed,
        operate=args.operate and not args.daemon, lease_namespace=args.lease_namespace, take_over=args.take_over,
    )  # fmt: skip
