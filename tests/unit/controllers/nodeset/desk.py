"""An API server of the simulator, and a pass's effects carried out against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from slinkytui.backend.controllers.nodeset.decision import CreatePod, Decision, Effect, Tell
from slinkytui.backend.controllers.nodeset.effects import Effects, KubeHand, Outcome, SlurmHand
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.runtime.breaker import Breaker
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.controllers.runtime.gate import Alone, Gate
from slinkytui.backend.controllers.runtime.pool import Limiter, Pool
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.sim.kube import KubeSim
from slinkytui.backend.sim.objects import BY_PLURAL, Objects
from slinkytui.backend.slurm.client import SlurmClient
from tests.unit.controllers.nodeset.worlds import SET
from tests.unit.controllers.virtual import LoopClock

GROUPS = {"pods": "", "persistentvolumeclaims": "", "controllerrevisions": "apps", "nodesets": "slinky.slurm.net"}


class Desk:
    """`sent` are the writes that reached the server, as "PATCH pods/gpu-0"."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.objects = Objects(self.clock.now)
        self.sim = KubeSim(self.objects, {"t": "admin"})
        self.objects.put(BY_PLURAL["", "namespaces"], {"metadata": {"name": "slurm"}, "status": {"phase": "Active"}})
        self.kube = KubeClient(CoreTransport(self._handle, {"authorization": "Bearer t"}))
        self.sent: list[str] = []
        self.told: list[Tell] = []
        self.slurm: SlurmClient | None = None
        self.reread: list[str] = []
        self.expected = Expectations(self.clock)

    async def _handle(self, request: Request) -> Response:
        response = await self.sim.handle(request)
        if request.method != "GET":
            self.sent.append(f"{request.method} {'/'.join(request.path.split('/')[-2:])}")
        return response

    def put(self, plural: str, name: str, meta: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
        """An object that stands there; its UID and version are the server's."""
        served = BY_PLURAL[GROUPS[plural], plural]
        body = {
            "apiVersion": served.api,
            "kind": served.kind,
            "metadata": {"name": name, "namespace": "slurm", **(meta or {})},
        }
        return self.objects.put(served, {**body, **parts})  # fmt: skip

    def get(self, plural: str, name: str) -> dict[str, Any]:
        return self.objects.get(BY_PLURAL[GROUPS[plural], plural], "slurm", name) or {}

    async def _read_again(self, names: list[str]) -> None:
        self.reread += names

    async def carry_out(self, world: World, effects: Sequence[Effect], builder: Builder | None = None) -> Outcome:
        pool = Pool(Limiter(self.clock), self.clock)
        gate = Gate(Alone(), self.clock)
        hand = Effects(
            KubeHand(self.kube, gate, self.expected, self.clock, builder or Builder()),
            SlurmHand(self.slurm, gate, pool, Breaker("slurmrestd", self.clock)), pool, self.told.append, self._read_again,
        )  # fmt: skip
        return await hand.perform(world, Decision(tuple(effects)))


class Builder:
    """Makes pods with one container, and the claims that it was given."""

    def __init__(self, claims: Iterable[str] = (), labels: dict[str, str] | None = None) -> None:
        self._claims, self._labels = list(claims), {"app": "slurmd"} if labels is None else labels

    def pod(self, new: CreatePod) -> dict[str, Any]:
        meta = {"name": f"{SET.name}-{new.slot}", "namespace": SET.namespace, "labels": self._labels}
        spec = {"containers": [{"name": "slurmd", "image": "slurmd"}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def claims(self, new: CreatePod) -> Sequence[dict[str, Any]]:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        return [{**kind, "metadata": {"name": f"{c}-{new.slot}", "namespace": SET.namespace}, "spec": spec} for c in self._claims]  # fmt: skip
