"""Two operators on one simulated API server, in virtual time: one works, the other waits and takes over.

Each has a manager, a lease, events and one controller whose writes go through the gate. The server notes who wrote what
and when.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from slinkytui.backend.controllers.gated import GatedTransport
from slinkytui.backend.controllers.leases import KubeLease
from slinkytui.backend.controllers.recorder import KubeEvents
from slinkytui.backend.controllers.runtime.controller import Controller
from slinkytui.backend.controllers.runtime.events import Recorder, Ref
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.controllers.runtime.lease import Elector
from slinkytui.backend.controllers.runtime.manager import Manager
from slinkytui.backend.controllers.runtime.outcome import After, Outcome
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import CONFIGMAPS
from slinkytui.backend.sim.kube import KubeSim
from slinkytui.backend.sim.objects import BY_PLURAL, Objects
from tests.unit.controllers.runtime.machines import ASLEEP, STOPPED, Machine, true_time
from tests.unit.controllers.virtual import START, in_virtual_time

SPACE = "slinky"


class Server:
    def __init__(self) -> None:
        self.objects = Objects(lambda: START + true_time())
        self.sim = KubeSim(self.objects, {"t": "admin"})
        namespace = {"metadata": {"name": SPACE}, "status": {"phase": "Active"}}
        self.objects.put(BY_PLURAL["", "namespaces"], namespace)
        self.objects.put(
            BY_PLURAL["", "configmaps"], {"metadata": {"name": "work", "namespace": SPACE}, "data": {"count": "0"}}
        )
        self.writes: list[tuple[float, str, str]] = []
        """True time, who, and the plural of what was written."""

    def writers(self, plural: str, start: float = 0.0, end: float = 1e9) -> list[str]:
        return [who for at, who, what in self.writes if what == plural and start <= at < end]


@dataclass
class Operator:
    """A process with a clock of its own. It adds 1 to a counter every second while it leads."""

    server: Server
    name: str
    machine: Machine = field(default_factory=Machine)

    def __post_init__(self) -> None:
        wire = CoreTransport(self._handle, {"authorization": "Bearer t"})
        self.elector = Elector(KubeLease(KubeClient(wire), SPACE), self.name, self.machine, jitter=lambda: 0.0)
        self.client = KubeClient(GatedTransport(wire, Gate(self.elector, self.machine)))
        self.recorder = Recorder(KubeEvents(self.client, "work-controller", self.name), self.machine)
        self.controller: Controller[str] = Controller("work", self.reconcile, self.machine, keys=lambda: ["work"])
        self.manager = Manager(
            self.machine, elector=self.elector, controllers=[self.controller], helpers=[self.recorder]
        )
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.manager.run())

    async def stop(self) -> None:
        self.manager.stop()
        if self.task is not None:
            await self.task

    def kill(self) -> None:
        """As by -9: what it would do next never reaches the server."""
        self.machine.pauses.append((true_time(), true_time() + 1000, STOPPED))

    async def _handle(self, request: Request) -> Response:
        await self.machine.sleep(0.01)
        if request.method != "GET":
            plural = request.path.split("/namespaces/")[1].split("/")[1]
            self.server.writes.append((true_time(), self.name, plural))
        answer = await self.server.sim.handle(request)
        await self.machine.sleep(0.01)
        return answer

    async def reconcile(self, key: str) -> Outcome:
        found: dict[str, Any] = await self.client.get(CONFIGMAPS, SPACE, key)
        # Long enough to be suspended between the reading and the writing.
        await self.machine.sleep(0.5)
        count = str(int(found["data"]["count"]) + 1)
        await self.client.patch(CONFIGMAPS, SPACE, key, {"data": {"count": count, "by": self.name}})
        self.recorder.record(Ref("v1", "ConfigMap", SPACE, key), "Counted", f"by {self.name}", action="Count")
        return After(0.5)


@in_virtual_time
async def test_one_works_the_other_waits_and_goes_on_at_once_when_it_stops() -> None:
    server = Server()
    a, b = Operator(server, "a"), Operator(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(60)
    assert set(server.writers("configmaps")) == {"a"}
    assert (str(a.manager.phase), str(b.manager.phase)) == ("leading", "following")
    assert set(server.writers("leases", start=2)) == {"a"}
    await a.stop()
    stopped = true_time()
    assert stopped < 61 + 3
    await asyncio.sleep(5)
    assert set(server.writers("configmaps", start=stopped)) == {"b"}
    assert str(b.manager.phase) == "leading"
    events = [found["message"] for _, found in server.objects.all(BY_PLURAL["", "events"])]
    assert events == ["by a", "by b"]
    # The lease was given up after the last event, and the events after the last work.
    last = [what for at, who, what in server.writes if who == "a"][-3:]
    assert last == ["configmaps", "events", "leases"]
    await b.stop()


@in_virtual_time
async def test_killed_it_is_followed_within_the_lease_time() -> None:
    server = Server()
    a, b = Operator(server, "a"), Operator(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(30)
    a.kill()
    await asyncio.sleep(20)
    first = next(at for at, who, what in server.writes if (who, what) == ("b", "configmaps"))
    assert first < 31 + 15 + 2 * 1.2 + 1
    assert "a" not in server.writers("configmaps", start=31.1)
    await b.stop()


@in_virtual_time
async def test_suspended_in_the_middle_of_its_work_it_wakes_and_writes_nothing() -> None:
    for kind in (STOPPED, ASLEEP):
        for at in range(10):
            begun = true_time()
            server = Server()
            # At any part of a pass: while it reads, between, while it writes, while it waits.
            pause = (begun + 10 + at / 10, begun + 60, kind)
            a, b = Operator(server, "a", Machine(pauses=[pause])), Operator(server, "b")
            a.start()
            await asyncio.sleep(1)
            b.start()
            await asyncio.sleep(89)
            # What had left the process before it stopped is the one exception that no process can prevent.
            assert server.writers("configmaps", start=begun + 60.02).count("a") == 0
            assert server.writers("events", start=begun + 60.02).count("a") == 0
            assert server.writers("configmaps", start=begun + 30).count("b") > 50
            assert (str(a.manager.phase), str(b.manager.phase)) == ("following", "leading")
            await a.stop()
            await b.stop()


@in_virtual_time
async def test_it_takes_back_what_the_other_leaves() -> None:
    server = Server()
    a, b = Operator(server, "a", Machine(pauses=[(20, 60, STOPPED)])), Operator(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(79)
    await b.stop()
    await asyncio.sleep(10)
    assert (str(a.manager.phase), a.manager.terms) == ("leading", 2)
    assert set(server.writers("configmaps", start=true_time() - 5)) == {"a"}
    lease = server.objects.get(BY_PLURAL["coordination.k8s.io", "leases"], SPACE, "slurm-operator")
    assert lease is not None
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("a", 2)
    await a.stop()
