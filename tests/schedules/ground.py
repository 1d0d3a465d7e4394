"""The simulator and our operator on one loop with virtual time, without a socket. Jobs that die with a pod are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from slinkytui.backend.engine import Engine
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.operate import Operate, OperatorOptions
from slinkytui.backend.options import Options
from slinkytui.backend.sim.jobs import SimJob
from slinkytui.backend.sim.nodesets import NODES, NODESETS, PODS
from slinkytui.backend.sim.scenario import Scenario, Set
from slinkytui.backend.sim.world import World
from tests.unit.controllers.virtual import LoopClock

SPACE = "slurm"
STEP_S = 0.5


class Ground:
    """`requests` counts what the operator sent; `crash_at` ends it right after that many writes."""

    def __init__(self, nodes: int, *, seed: int = 1, arrivals: float = 0.0) -> None:
        self.clock = LoopClock()
        scenario = Scenario(
            name="ground", cluster="sim", namespace=SPACE, sets=(Set(name="gpu", nodes=nodes, cpus=16, memory_mib=64_000),),
            arrivals_per_min=arrivals,
        )  # fmt: skip
        self.world = World(scenario, self.clock.now, seed=seed, sleep=self.clock.sleep)
        self.requests: list[str] = []
        self.killed: list[int] = []
        self.killed_by: list[tuple[str, int]] = []
        """UID of the pod that went, and the job that ran on it."""
        self.watchers: list[Callable[[], None]] = []
        """Called every half second."""
        self.listeners: list[Callable[[Request], None]] = []
        """Called with each write of the operator, before it is answered."""
        self.deleted: list[tuple[str, float]] = []
        self.most_away = 0
        self.down_s = 0.0
        """Until when slurmrestd does not answer."""
        self.crash_at: int | None = None
        self.crashed = asyncio.Event()
        self._living: asyncio.Task[None] | None = None
        self._seen = self.world.objects.version
        self._engine: Engine | None = None
        self._operate: Operate | None = None
        self._running: asyncio.Task[None] | None = None
        self._names: list[str] = []

    @asynccontextmanager
    async def living(self) -> AsyncIterator[Ground]:
        self._living = asyncio.create_task(self._live())
        try:
            yield self
        finally:
            await self.end_operator()
            self._living.cancel()
            await asyncio.gather(self._living, return_exceptions=True)

    async def _live(self) -> None:
        while True:
            self.world.step()
            self._look()
            await self.clock.sleep(STEP_S)

    def _look(self) -> None:
        """Note pods that have gone while a job held their node, and how many workers are away."""
        for change in [c for c in self.world.objects.log if c.version > self._seen]:
            if change.type == "DELETED" and change.served is PODS:
                host = change.found["spec"].get("hostname") or change.name[1]
                self.deleted.append((change.name[1], self.clock.now()))
                died = [j.id for j in self.world.slurm.jobs.values() if j.state == "RUNNING" and host in j.nodes]
                self.killed += died
                self.killed_by += [(change.found["metadata"]["uid"], job) for job in died]
        self._seen = self.world.objects.version
        for watch in self.watchers:
            watch()
        ready = sum(1 for p in self.pods().values() if is_ready(p) and not self.is_drained(p))
        want = int((self.nodeset().get("spec") or {}).get("replicas", 0)) if self.nodeset() else 0
        self.most_away = max(self.most_away, want - ready)

    # -- the operator

    async def start_operator(self) -> None:
        engine = Engine(Options(), self.clock, lazy=True)
        headers = {"authorization": f"Bearer {self.world.token}"}
        engine.look_through(KubeClient(CoreTransport(self._handle, headers)))
        options = OperatorOptions(namespace="slinky")
        self._engine, self._operate = engine, Operate(engine, options, name=f"slinkytui-{len(self._names)}")
        self._names.append("")
        self._running = asyncio.create_task(self._operate.run())

    async def end_operator(self, *, kill: bool = False) -> None:
        """End it in order, or at once and with an empty memory."""
        running, self._running = self._running, None
        if running is None:
            return
        if kill:
            running.cancel()
        elif self._operate is not None:
            self._operate.stop()
        await asyncio.gather(running, return_exceptions=True)
        if self._engine is not None:
            await self._engine.close()

    def restart_when_crashed(self) -> Restart:
        return Restart(self)

    async def _handle(self, request: Request) -> Response:
        if self.crashed.is_set():
            await asyncio.get_running_loop().create_future()  # nothing leaves a process that is dead
        if "/proxy/" in request.path and self.clock.now() < self.down_s:
            return Response(503, b'{"kind":"Status","message":"no endpoints available"}')
        writes = request.method not in ("GET", "HEAD") and "/leases" not in request.path
        if writes:
            for listener in self.listeners:
                listener(request)
        response = await self.world.handle_kube(request)
        if writes:
            self.requests.append(f"{request.method} {request.path}")
            if self.crash_at is not None and len(self.requests) >= self.crash_at:
                self.crash_at = None
                self.crashed.set()
        return response

    # -- what a person does and sees

    def nodeset(self) -> dict[str, Any]:
        return self.world.objects.get(NODESETS, SPACE, "gpu") or {}

    def pods(self) -> dict[str, dict[str, Any]]:
        return {k[1]: p for k, p in self.world.objects.all(PODS, SPACE)}

    def is_drained(self, pod: dict[str, Any]) -> bool:
        node = self.world.slurm.nodes.get(pod["spec"].get("hostname", ""))
        return bool(node is not None and (node.drain or node.down))

    def condition(self, kind: str) -> dict[str, Any]:
        found = (self.nodeset().get("status") or {}).get("conditions") or []
        return next((c for c in found if c["type"] == kind), {})

    def scale(self, replicas: int) -> None:
        self.world.objects.change(NODESETS, (SPACE, "gpu"), {"spec": {"replicas": replicas}})

    def template(self, image: str) -> None:
        self.world.objects.change(NODESETS, (SPACE, "gpu"), {"spec": {"slurmd": {"image": image}}})

    def strategy(self, limit: int | str) -> None:
        update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}
        self.world.objects.change(NODESETS, (SPACE, "gpu"), {"spec": {"updateStrategy": update}})

    def cordon(self, node: str, value: bool = True) -> None:
        self.world.objects.change(NODES, ("", node), {"spec": {"unschedulable": value}})

    def drain(self, node: str, reason: str) -> None:
        self.world.slurm.update_node(node, "DRAIN", reason, "bob")

    def job(self, minutes: float, cpus: int = 16, nodes: int = 1) -> SimJob:
        """A job that ends well after so long."""
        job = SimJob(
            0, "ada", "work", "gpu", 0, nodes, cpus * nodes, nodes * 1_000, int(minutes * 2) + 1, minutes * 60, 5_000, self.clock.now(),
        )  # fmt: skip
        return self.world.slurm.submit(job)

    async def until(self, done: Callable[[], object], seconds: float, what: str) -> float:
        """Seconds of virtual time that it took."""
        began = self.clock.now()
        while not done():
            if self.clock.now() - began > seconds:
                raise AssertionError(f"{what}: not after {seconds:.0f} s; {self.condition('Progressing')}")
            await self.clock.sleep(0.25)
        return self.clock.now() - began

    async def settled(self, seconds: float = 300.0) -> None:
        """Wait until as many workers as wanted are ready, of the present revision, and nothing drains."""

        def done() -> bool:
            found, status = self.nodeset(), self.nodeset().get("status") or {}
            want = found["spec"].get("replicas", 1)
            ready = [p for p in self.pods().values() if is_ready(p) and not p["metadata"].get("deletionTimestamp")]
            image = found["spec"]["slurmd"]["image"]
            ready = [p for p in ready if p["spec"]["containers"][0]["image"] == image]
            seen = status.get("observedGeneration") == found["metadata"]["generation"]
            return bool(seen) and len(ready) == len(self.pods()) == want == status.get("updatedReplicas")

        await self.until(done, seconds, "it does not settle")


class Restart:
    """Starts the operator again after each crash."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await self._ground.crashed.wait()
            await self._ground.end_operator(kill=True)
            self._ground.crashed.clear()
            await self._ground.start_operator()

    async def done(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
