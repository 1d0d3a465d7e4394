"""The console over a simulated cluster at rest: the real clients read its cores once, the real join makes the picture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import jwt
import msgspec

from slinkytui.app import SlinkyApp
from slinkytui.backend.actions.registry import Scene, make_plan
from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.clusters import Link
from slinkytui.backend.controllers.nodeset.explain import explained, would
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.engine import Engine, worker_of
from slinkytui.backend.errors import UsageError
from slinkytui.backend.feed import TYPES, VERSION, Hello, MemoryPipe
from slinkytui.backend.http import CoreTransport
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import BY_TABLE, OPERATED, WATCHED
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import (
    Ask,
    Cluster,
    Key,
    OperatorView,
    Plan,
    QueueLine,
    RunResult,
    Source,
    StepResult,
    Table,
)
from slinkytui.backend.options import Options
from slinkytui.backend.reader import Reader
from slinkytui.backend.server import FeedServer
from slinkytui.backend.sim.nodesets import NODESETS
from slinkytui.backend.sim.scenario import load
from slinkytui.backend.sim.world import World
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.poller import SlurmPoller
from slinkytui.backend.slurm.tokens import StaticToken
from slinkytui.backend.store import Store

START = 1_800_000_000.0
LIVED_S = 90.0


_READ: dict[str, tuple[Store, Store]] = {}
"""What the clients read of each scenario, rows and whole objects: once a run of the tests, for it is always the same."""
ROLLING = "rolling"
"""The small scenario, in which the image of a NodeSet has just been changed and an operator is at work."""


_AT_WORK = OperatorView(
    "slinkytui-op-7c9_5f2b", "leading", "slinkytui-op-7c9_5f2b", terms=1, workers=4,
    queue=(
        QueueLine("slurm/h100", "waiting", START + LIVED_S - 12, 18.0),
        QueueLine("slurm/cpu", "waiting", START + LIVED_S - 3, 4.0, 3, "slurmrestd of sim does not answer"),
    ),
    running=(("slurm/a100", "1f0a9c7d22e4"),), results=(("success", 41), ("requeue_after", 9), ("error", 3), ("terminal_error", 0)),
)  # fmt: skip


class Picture:
    """An engine's end over a world that stands still at `now`. Plans are real; runs are remembered, not done."""

    def __init__(self, scenario: str) -> None:
        self.time = START
        self.scenario = scenario
        self.world = World(load("small" if scenario == ROLLING else scenario), lambda: self.time)
        for _ in range(int(LIVED_S) if scenario not in _READ else 0):
            self.time += 1.0
            self.world.step()
        if scenario == ROLLING and scenario not in _READ:
            found = self.world.objects.get(NODESETS, "slurm", "h100")
            assert found is not None
            found["spec"]["slurmd"]["image"] = "slurmd:26.05.1"
            self.world.objects.put(NODESETS, found, spec_changed=True)
        self.time = START + LIVED_S
        self.clock = VirtualClock(self.time)
        self.kube = KubeClient(CoreTransport(self.world.handle_kube, {"authorization": f"Bearer {self.world.token}"}))
        self.engine = Engine(Options(journal="/nonexistent/journal"), self.clock)
        self.held = Store()
        self.ran: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Read both servers once."""
        engine = self.engine
        if self.scenario in _READ:
            engine.facts, self.held = _READ[self.scenario]
        engine._look(None)
        for task in engine._tasks:
            task.cancel()
        if self.scenario not in _READ:
            await self._ask()
            _READ[self.scenario] = (engine.facts, self.held)
        (cluster,) = (c for c in engine.facts.rows(Table.CLUSTERS).values() if isinstance(c, Cluster))
        client = SlurmClient(CoreTransport(self.world.handle_slurm), StaticToken(""), self.clock, cluster=cluster.name)
        engine.clusters.links["sim"] = Link("sim", "sim", "", client=client, name=cluster.name)
        await engine._join()

    def observer(self) -> Observer:
        return Observer(self.engine.facts, self.held, self.engine.clusters, self.clock)

    async def _ask(self) -> None:
        engine = self.engine
        tasks = [
            asyncio.create_task(Watcher(self.kube, r, engine.facts, self.clock, note="sim").run()) for r in WATCHED
        ]
        tasks += [asyncio.create_task(Watcher(self.kube, r, self.held, self.clock).run()) for r in OPERATED]
        token = jwt.encode(
            {"exp": int(START + 1e6), "iat": int(START), "sun": "root"}, self.world.key, algorithm="HS256"
        )
        client = SlurmClient(CoreTransport(self.world.handle_slurm), StaticToken(token), self.clock)
        await client.probe()
        poller = SlurmPoller(client, engine.facts, self.clock)
        tasks.append(asyncio.create_task(poller.run()))
        engine.facts.upsert(Table.CLUSTERS, "", [Cluster(client.cluster, "sim", "", client.release, client.version)])
        async with asyncio.timeout(60):
            while not self._read():
                await asyncio.sleep(0.005)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _read(self) -> bool:
        found = [s for s in self.engine.facts.rows(Table.SOURCES).values() if isinstance(s, Source)]
        done = {s.name for s in found if s.state in ("live", "absent")}
        slurm = {f"slurm/{self.world.scenario.cluster}/{t}" for t in ("nodes", "jobs", "partitions", "reservations")}
        whole = {s.name for s in self.held.rows(Table.SOURCES).values() if isinstance(s, Source) and s.state == "live"}
        return done >= slurm | {f"kubernetes/{r.plural}" for r in WATCHED} and len(whole) == len(OPERATED)

    def hello(self) -> Hello:
        return Hello(VERSION, context="sim", sim=self.scenario, contexts=("sim",))

    def wanted(self, table: Table, readers: int) -> None:
        if table == Table.DECISIONS:
            observer, now = self.observer(), self.clock.now()
            ids = [k for k in self.engine.facts.rows(Table.NODESETS) if isinstance(k, Key)]
            rows = [d for key in ids if (d := would(observer, key, now)) is not None]
            self.engine.store.upsert(Table.DECISIONS, "", rows)
            return
        self.engine.wanted(table, readers)

    async def answer(self, method: str, params: bytes, progress: Callable[[Any], Awaitable[None]]) -> Any:
        scene = Scene(self.engine.store, self.clock.now())
        if method == "plan":
            return make_plan(msgspec.msgpack.decode(params, type=Ask), scene)
        if method == "rights":
            return {}
        if method == "operator":
            return _AT_WORK if self.scenario == ROLLING else None
        if method == "explain":
            asked, row_id = msgspec.msgpack.decode(params, type=tuple[Table, bytes])
            decoded = msgspec.msgpack.decode(row_id, type=TYPES[asked][1])
            key, subject = worker_of(asked, decoded, self.engine.store)
            return explained(self.observer(), key, subject, self.clock.now())
        if method == "raw":
            table, row_id = msgspec.msgpack.decode(params, type=tuple[Table, bytes])
            key = msgspec.msgpack.decode(row_id, type=Key)
            found = await self.kube.get(BY_TABLE[table], key.namespace, key.name)
            return msgspec.yaml.encode(found).decode()
        if method == "run":
            plan = msgspec.msgpack.decode(params, type=Plan)
            self.ran.append(f"{plan.ask.verb} {','.join(plan.ask.targets)} {plan.ask.reason}".strip())
            return RunResult(plan.hash, plan.ask.verb, tuple(StepResult(s.target, True, "done") for s in plan.todo))
        raise UsageError(method)

    async def reader(self) -> Reader:
        await self.read()
        ours, theirs = MemoryPipe.pair()
        self._task = asyncio.create_task(FeedServer(self.engine.store, theirs, self).run())
        return Reader(ours)


def console(scenario: str, **settings: Any) -> SlinkyApp:
    """The console over a picture; `app.picture` is its other end."""
    picture = Picture(scenario)
    app = SlinkyApp(picture.reader, now=picture.clock.now, **settings)
    app.picture = picture  # type: ignore[attr-defined]  # for tests to look behind
    return app
