"""Starts the console: the engine in a child process, this process paints at once and waits for its greeting."""

from __future__ import annotations

import argparse
import asyncio
import gc
import socket
import sys

import msgspec

from slinkytui.app import SlinkyApp
from slinkytui.backend.errors import Unreachable, UsageError
from slinkytui.backend.feed import StreamPipe
from slinkytui.backend.options import Options
from slinkytui.backend.reader import Reader
from slinkytui.keys import check_keys
from slinkytui.memory import Memory, default_path


async def start_engine(options: Options) -> Reader:
    """A reader of an engine in a new process; the engine ends when the reader is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "slinkytui.backend.serve", str(theirs.fileno()), msgspec.json.encode(options).decode(),
            pass_fds=(theirs.fileno(),), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    stream, writer = await asyncio.open_connection(sock=ours, limit=2**20)
    return Reader(StreamPipe(stream, writer))


async def attach(path: str) -> Reader:
    """A reader of a daemon. Raises Unreachable when nobody listens there."""
    try:
        stream, writer = await asyncio.open_unix_connection(path, limit=2**20)
    except OSError as error:
        raise Unreachable(
            f"no daemon at {path}", detail=error.strerror or "", hint="slinkytui --daemon --socket PATH"
        ) from error
    return Reader(StreamPipe(stream, writer))


def run_console(options: Options, args: argparse.Namespace) -> int:
    """Run until the person leaves; an engine that cannot start is an error with its own words."""
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        raise UsageError("the console needs a terminal", hint="slinkytui get KIND prints without one")
    if args.attach and args.operate:
        raise UsageError("--attach and --operate exclude each other: the daemon is the operator")
    check_keys(args.keys)
    memory = Memory.load(default_path())
    # What stands in the settings is the usual; what a person chose in the console since goes before it.
    memory.columns = {**args.columns, **memory.columns}
    # A full collection walks every id of every row: it would be felt at a key press.
    gc.set_threshold(5_000, 100, 100_000)
    app = SlinkyApp(
        lambda: attach(args.attach) if args.attach else start_engine(options),
        theme_name=args.theme,
        plain=args.plain,
        first=args.screen,
        read_only=options.read_only,
        keys=args.keys,
        memory=memory,
    )
    app.run()
    if app.fatal is not None:
        raise app.fatal
    return app.return_code or 0
