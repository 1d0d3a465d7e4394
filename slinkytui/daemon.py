"""`slinkytui --daemon`: the operator of a cluster, without a screen. Signals, health, metrics, and a socket for consoles."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from slinkytui.backend.controllers.nodeset.observe import Settings
from slinkytui.backend.controllers.runtime.logs import PassFilter
from slinkytui.backend.controllers.runtime.manager import Phase
from slinkytui.backend.controllers.runtime.waiting import first
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import ConfigError, SlinkyError
from slinkytui.backend.feed import StreamPipe
from slinkytui.backend.operate import Operate, OperatorOptions, leases_known
from slinkytui.backend.options import Options

PARTS: Final = "it runs NodeSets; it does not write slurm.conf, refresh Tokens or label the active slurmctld"

log = logging.getLogger("slinkytui.daemon")


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the reconcile that it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage(),
        }  # fmt: skip
        for name in ("controller", "key", "reconcile_id"):
            if value := getattr(record, name, ""):
                found[name] = value
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=True)


def start_logs(verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(PassFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for noisy in ("httpx", "httpcore", "aiohttp.access", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def run_daemon(options: Options, args: argparse.Namespace) -> int:
    start_logs(args.verbose)
    settings = Settings(
        propagated=tuple(t for t in (p.strip() for p in args.propagated_node_conditions.split(",")) if t),
        create_on_cordoned=args.create_on_cordoned_nodes,
    )
    wanted = OperatorOptions(
        namespace=args.lease_namespace, leader_elect=args.leader_elect, take_over=args.take_over,
        workers=args.nodeset_workers, settings=settings,
    )  # fmt: skip
    return asyncio.run(Daemon(options, wanted, args.health, args.metrics, args.socket).run())


class Daemon:
    """`health` and `metrics` are HOST:PORT, "" serves none; `socket` is the path of a unix socket for consoles."""

    def __init__(self, options: Options, wanted: OperatorOptions, health: str, metrics: str, socket: str) -> None:
        self._wanted, self._health, self._metrics, self._socket = wanted, health, metrics, socket
        self.engine = Engine(options, lazy=True)
        self.operate: Operate | None = None
        self._runners: list[web.AppRunner] = []
        self._stop = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        await self.engine.start()
        try:
            await self._serve()
            self.operate = Operate(self.engine, self._wanted)
            await self._alone(self.operate)
            log.info("operating as %s: %s", self.operate.identity, PARTS)
            await self._work(self.operate)
        finally:
            for runner in self._runners:
                await runner.cleanup()
            await self.engine.close()
            if self._socket:
                Path(self._socket).unlink(missing_ok=True)
        log.info("ended")
        return 0

    def _end(self) -> None:
        self._stop.set()
        if self.operate is not None:
            self.operate.stop()

    async def _alone(self, operate: Operate) -> None:
        """Refuse to start beside another operator; a signal ends the wait for the answer."""
        if await first(self._stop.wait(), leases_known(self.engine)) == 1:
            operate.check_alone()

    async def _work(self, operate: Operate) -> None:
        if self._stop.is_set():
            return
        await operate.run()

    # -- what others ask

    async def _serve(self) -> None:
        routes = {self._health: [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]}
        routes.setdefault(self._metrics, []).append(web.get("/metrics", self._scrape))
        for address, handlers in routes.items():
            if not address:
                continue
            app = web.Application()
            app.add_routes(handlers)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            self._runners.append(runner)
            host, _, port = address.rpartition(":")
            try:
                await web.TCPSite(runner, host.strip("[]") or None, int(port), shutdown_timeout=0.5).start()
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"cannot serve on {address}", detail=str(error), hint="HOST:PORT, or :PORT"
                ) from error
            log.info("serving %s on %s", ", ".join(str(h.path) for h in handlers), address)
        if self._socket:
            await self._serve_consoles()

    async def _serve_consoles(self) -> None:
        path = Path(self._socket)
        if path.exists():
            if not path.is_socket():
                raise ConfigError(f"{path} is there and is no socket")
            path.unlink()
        before = os.umask(0o077)
        try:
            server = await asyncio.start_unix_server(self._console, path)
        except OSError as error:
            raise ConfigError(f"cannot serve consoles on {path}", detail=error.strerror or "") from error
        finally:
            os.umask(before)
        log.info("consoles attach with --attach %s", path)
        self._server = server

    async def _console(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.engine.serve(StreamPipe(reader, writer))
        except (SlinkyError, EOFError, ConnectionError) as error:
            log.info("a console left: %s", error)

    async def _healthz(self, request: web.Request) -> web.Response:
        sick = self.operate.manager.unhealthy() if self.operate is not None else {}
        text = "\n".join(f"{name}: {why}" for name, why in sick.items())
        return web.Response(status=500 if sick else 200, text=text or "ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        """Ready once every source is synced, leading or not; a source that is not is named."""
        if self.operate is None:
            return web.Response(status=503, text="starting")
        missing = self.operate.manager.unready()
        phase = self.operate.manager.phase
        if phase in (Phase.NEW, Phase.SYNCING) and not missing:
            missing = {"sources": "syncing"}
        text = "\n".join(f"{name}: {why}" for name, why in missing.items())
        elector = self.operate.elector
        if phase is Phase.FOLLOWING and elector is not None:
            view = elector.view()
            return web.Response(
                status=503 if missing else 200,
                text=text or f"ok (following: {view.error or f'the lease is held by {view.holder}'})",
            )
        return web.Response(status=503 if missing else 200, text=text or f"ok ({phase})")

    async def _scrape(self, request: web.Request) -> web.Response:
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(_Collected(self))
        return web.Response(body=generate_latest(registry), content_type="text/plain", charset="utf-8")


class _Collected:
    """The runtime's counters under the standard names."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        from slinkytui.backend.controllers.runtime import stats

        operate = self._daemon.operate
        if operate is None:
            return
        controller = operate.controller
        queue, work, name = controller.queue, controller.stats, controller.name
        labels = ["name", "controller"]

        def gauge(metric: str, value: float, keys: list[str], values: list[str]) -> Any:
            found = GaugeMetricFamily(metric, metric, labels=keys)
            found.add_metric(values, value)
            return found

        def counter(metric: str, value: float, keys: list[str], values: list[str]) -> Any:
            found = CounterMetricFamily(metric, metric, labels=keys)
            found.add_metric(values, value)
            return found

        def histogram(metric: str, held: stats.Histogram, keys: list[str], values: list[str]) -> Any:
            found, total, buckets = HistogramMetricFamily(metric, metric, labels=keys), 0, []
            for bound, count in zip((*held.bounds, float("inf")), held.counts, strict=True):
                total += count
                buckets.append(("+Inf" if bound == float("inf") else str(bound), total))
            found.add_metric(values, buckets=buckets, sum_value=held.total)
            return found

        both = [name, name]
        yield gauge(stats.DEPTH, queue.depth, labels, both)
        yield counter(stats.ADDS, queue.stats.adds, labels, both)
        yield counter(stats.RETRIES, queue.stats.retries, labels, both)
        yield histogram(stats.QUEUE_DURATION, queue.stats.queue_duration, labels, both)
        yield histogram(stats.WORK_DURATION, queue.stats.work_duration, labels, both)
        unfinished, longest = queue.unfinished()
        yield gauge(stats.UNFINISHED, unfinished, labels, both)
        yield gauge(stats.LONGEST, longest, labels, both)
        total = CounterMetricFamily(stats.RECONCILES, stats.RECONCILES, labels=["controller", "result"])
        for result, count in work.results.items():
            total.add_metric([name, result], count)
        yield total
        one = ["controller"]
        yield counter(stats.RECONCILE_ERRORS, work.errors, one, [name])
        yield counter(stats.TERMINAL_ERRORS, work.results["terminal_error"], one, [name])
        yield counter(stats.PANICS, work.panics, one, [name])
        yield histogram(stats.RECONCILE_TIME, work.time, one, [name])
        yield gauge(stats.MAX_WORKERS, controller.workers, one, [name])
        yield gauge(stats.ACTIVE_WORKERS, len(controller.active), one, [name])
        leading = float(operate.manager.phase is Phase.LEADING)
        yield gauge(stats.LEADING, leading, ["name"], ["slurm-operator"])
