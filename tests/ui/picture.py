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
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import UsageError
from slinkytui.backend.feed import VERSION, Hello, MemoryPipe
from slinkytui.backend.http import CoreTransport
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import BY_TABLE, WATCHED
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import Ask, Cluster, Key, Plan, RunResult, Source, StepResult, Table
from slinkytui.backend.options import Options
from slinkytui.backend.reader import Reader
from slinkytui.backend.server import FeedServer
from slinkytui.backend.sim.scenario import load
from slinkytui.backend.sim.world import World
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.poller import SlurmPoller
from slinkytui.backend.slurm.tokens import StaticToken
from slinkytui.backend.store import Store

START = 1_800_000_000.0
LIVED_S = 90.0


_READ: dict[str, Store] = {}
"""What the clients read of each scenario: once a run of the tests, for it is always the same."""


class Picture:
    """An engine's end over a world that stands still at `now`. Plans are real; runs are remembered, not done."""

    def __init__(self, scenario: str) -> None:
        self.time = START
        self.scenario = scenario
        self.world = World(load(scenario), lambda: self.time)
        for _ in range(int(LIVED_S) if scenario not in _READ else 0):
            self.time += 1.0
            self.world.step()
        self.time = START + LIVED_S
        self.clock = VirtualClock(self.time)
        self.kube = KubeClient(CoreTransport(self.world.handle_kube, {"authorization": f"Bearer {self.world.token}"}))
        self.engine = Engine(Options(journal="/nonexistent/journal"), self.clock)
        self.ran: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Read both servers once."""
        engine = self.engine
        if self.scenario in _READ:
            engine.facts = _READ[self.scenario]
        engine._look(None)
        for task in engine._tasks:
            task.cancel()
        if self.scenario not in _READ:
            await self._ask()
            _READ[self.scenario] = engine.facts
        await engine._join()

    async def _ask(self) -> None:
        engine = self.engine
        tasks = [
            asyncio.create_task(Watcher(self.kube, r, engine.facts, self.clock, note="sim").run()) for r in WATCHED
        ]
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
        return done >= slurm | {f"kubernetes/{r.plural}" for r in WATCHED}

    def hello(self) -> Hello:
        return Hello(VERSION, context="sim", sim=self.scenario, contexts=("sim",))

    def wanted(self, table: Table, readers: int) -> None:
        self.engine.wanted(table, readers)

    async def answer(self, method: str, params: bytes, progress: Callable[[Any], Awaitable[None]]) -> Any:
        scene = Scene(self.engine.store, self.clock.now())
        if method == "plan":
            return make_plan(msgspec.msgpack.decode(params, type=Ask), scene)
        if method == "rights":
            return {}
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
