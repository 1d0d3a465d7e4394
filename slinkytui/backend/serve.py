"""The engine's own process: `python -m slinkytui.backend.serve FD OPTIONS_JSON` serves one console over a socket."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
from pathlib import Path

import msgspec
import platformdirs

from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import SlinkyError
from slinkytui.backend.feed import VERSION, Hello, StreamPipe, to_fault
from slinkytui.backend.models import Source
from slinkytui.backend.options import Options


async def serve(sock: socket.socket, options: Options) -> None:
    """Serve until the console leaves. A start that fails is told in the greeting."""
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**20)
    pipe = StreamPipe(reader, writer)
    engine = Engine(options)
    try:
        await engine.start()
    except SlinkyError as error:
        await pipe.send(Hello(VERSION, failed=to_fault(error)))
        await pipe.close()
        return
    operator = asyncio.create_task(_operate(engine), name="operator") if options.operate else None
    try:
        await engine.serve(pipe)
    finally:
        if operator is not None:
            operator.cancel()
            await asyncio.gather(operator, return_exceptions=True)
        await engine.close()


async def _operate(engine: Engine) -> None:
    """Run the operator beside the console; what keeps it from that is a row among the sources."""
    from slinkytui.backend.operate import Operate, OperatorOptions, leases_known

    try:
        options = OperatorOptions(namespace=engine.options.lease_namespace, take_over=engine.options.take_over)
        operate = Operate(engine, options)
        await leases_known(engine)
        operate.check_alone()
        await operate.run()
    except SlinkyError as error:
        logging.getLogger(__name__).error("the operator does not run: %s", error.line())
        engine.facts.source(Source("operator", "refused", None, engine.clock.now(), error.line()))


def log_path() -> Path:
    return Path(platformdirs.user_log_dir("slinkytui")) / "engine.log"


def main() -> None:
    path = log_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.umask(0o077)
    os.nice(5)  # where cores are few, the process that hears keys goes first
    logging.basicConfig(filename=path, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    gc.set_threshold(5_000, 20, 50)
    options = msgspec.json.decode(sys.argv[2], type=Options)
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[1])), options))


if __name__ == "__main__":
    main()
