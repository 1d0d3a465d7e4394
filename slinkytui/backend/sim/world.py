"""One simulated cluster: both servers over one world that lives. Kubelet, scheduler and NodeSet controller are modelled
just far enough; jobs arrive, start, end and fail.
"""

from __future__ import annotations

import asyncio
import base64
import random
import uuid
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

from slinkytui.backend import crds
from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim.faults import Settings
from slinkytui.backend.sim.faulty import Faulty, Sleep
from slinkytui.backend.sim.jobs import SimJob
from slinkytui.backend.sim.kube import KubeSim
from slinkytui.backend.sim.kubelet import Kubelet
from slinkytui.backend.sim.nodesets import NODES, PODS, NodeSets
from slinkytui.backend.sim.objects import BY_PLURAL, SLINKY, Objects, rfc3339
from slinkytui.backend.sim.recorder import Recorder
from slinkytui.backend.sim.scenario import Scenario
from slinkytui.backend.sim.schema import schema_of
from slinkytui.backend.sim.slurm import SlurmSim
from slinkytui.backend.sim.slurmrest import SlurmRest
from slinkytui.backend.sim.standing import established
from slinkytui.backend.sim.validate import defaulted

_NAMES: Final = (
    "pretrain-7b",
    "finetune-lora",
    "eval-mmlu",
    "tokenize",
    "sweep",
    "dpo-70b",
    "render",
    "fold-batch",
    "infer-bench",
)
_HOUR: Final = 3_600.0


class World:
    """`now` is the cluster's time; `step` moves it. `kube` and `rest` answer requests."""

    def __init__(
        self, scenario: Scenario, now: Callable[[], float], *, seed: int = 1, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.scenario, self.now = scenario, now
        self.rng = random.Random(seed)
        self.key = bytes(self.rng.getrandbits(8) for _ in range(32))
        self.objects = Objects(now)
        self.slurm = SlurmSim(scenario.cluster, self.rng, now())
        self.rest = SlurmRest(self.slurm, self.key)
        self.token = f"sim-{self.rng.getrandbits(64):016x}"
        self.kube = KubeSim(self.objects, {self.token: "admin", f"{self.token}-reader": "reader"})
        self.kube.services[scenario.namespace, "slurm-restapi:6820"] = self.handle_slurm
        self.recorder = Recorder(self.objects)
        self.nodesets = NodeSets(scenario, self.objects, self.slurm, self.recorder, self._put)
        self._last = now()
        self._build()
        self._namespace("slinky")  # where an operator keeps its lease
        self.kubelet = Kubelet(self.objects, self.recorder)
        self.settings = Settings()
        self.settings.listen("pods.delay", self._slow_pods)
        self.settings.listen("speed", self._speed)
        chance = random.Random(seed)
        self._slurm_door = Faulty("slurm", self.rest.handle, self.settings, chance, sleep)
        self._kube_door = Faulty("kube", self.kube.handle, self.settings, chance, sleep)
        self._dead: list[str] = []

    async def handle_slurm(self, request: Request) -> Response:
        self.step()
        return await self._slurm_door.handle(request)

    async def handle_kube(self, request: Request) -> Response:
        self.step()
        return await self._kube_door.handle(request)

    def step(self) -> None:
        """Bring the world to the present; cheap when little time has passed."""
        now = self.now()
        past = now - self._last
        if past < 0.2:
            return
        self._last = now
        self._arrive(past)
        self._break(past)
        self._bury()
        self.slurm.step(now + self.settings["slurm.skew"])
        self.nodesets.scale()
        self.kubelet.step(now)
        self.nodesets.run(now, self.kubelet.workers)

    # What stands at the start.

    def _build(self) -> None:
        sc, ns = self.scenario, self.scenario.namespace
        for name in dict.fromkeys(("default", "kube-system", ns)):
            self._namespace(name)
        for definition in crds.DEFINITIONS:
            self._put(
                "apiextensions.k8s.io", "customresourcedefinitions", established(crds.document(definition), self.now())
            )
        secret = {"metadata": {"name": "slurm-auth-jwths256", "namespace": ns}, "type": "Opaque",
                  "data": {"jwt_hs256.key": base64.b64encode(self.key).decode()}}  # fmt: skip
        self._put("", "secrets", secret)
        if not sc.sets and not sc.login:
            return
        reference = {"name": "slurm"}
        key = {"name": "slurm-auth-jwths256", "key": "jwt_hs256.key"}
        self._put(
            SLINKY,
            "controllers",
            {
                "metadata": {"name": "slurm", "namespace": ns},
                "spec": {
                    "clusterName": sc.cluster,
                    "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
                    "jwtKeyRef": key,
                },
            },
        )
        self._put(
            SLINKY,
            "restapis",
            {"metadata": {"name": "slurm", "namespace": ns}, "spec": {"controllerRef": reference, "replicas": 1}},
        )
        service = {
            "metadata": {"name": "slurm-restapi", "namespace": ns},
            "spec": {
                "type": "ClusterIP",
                "clusterIP": "10.96.0.20",
                "ports": [{"name": "slurmrestd", "port": 6820, "protocol": "TCP", "targetPort": 6820}],
            },
        }
        self._put("", "services", service)
        if sc.login:
            login = {"metadata": {"name": "slurm-login", "namespace": ns}, "spec": {"controllerRef": reference, "replicas": 1,
                     "sssdConfRef": {"name": "slurm-sssd", "key": "sssd.conf"}}, "status": {"replicas": 1, "selector": ""}}  # fmt: skip
            self._put(SLINKY, "loginsets", login)
        for one in sc.sets:
            spec = {
                "controllerRef": reference,
                "replicas": one.nodes,
                "scalingMode": "StatefulSet",
                "slurmd": {"image": "slurmd:26.05"},
            }
            made = self._put(SLINKY, "nodesets", {"metadata": {"name": one.name, "namespace": ns}, "spec": spec})
            self.nodesets.uids[one.name] = made["metadata"]["uid"]
            for at in range(one.nodes):
                self.nodesets.worker(one, at, running=True)
        self._fill_jobs()
        for trouble in sc.troubles:
            self._trouble(trouble.set, trouble.node, trouble.what, trouble.reason)
        for one in sc.sets:
            self.nodesets.status(one)

    def _namespace(self, name: str) -> None:
        self._put("", "namespaces", {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                                     "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})  # fmt: skip

    def _put(self, group: str, plural: str, found: dict[str, Any]) -> dict[str, Any]:
        found["metadata"].setdefault("creationTimestamp", rfc3339(self.now() - 26 * _HOUR))
        found["metadata"].setdefault("uid", str(uuid.UUID(int=self.rng.getrandbits(128), version=4)))
        served = BY_PLURAL[group, plural]
        if group == SLINKY:
            found["spec"] = defaulted(
                found["spec"], schema_of(group, served.version, served.kind)["properties"]["spec"]
            )
        return self.objects.put(served, found)

    def _make_job(self, now: float) -> SimJob:
        rng, sets = self.rng, [s for s in self.scenario.sets if s.nodes]
        one = rng.choices(sets, cum_weights=list(accumulate(s.nodes for s in sets)))[0]
        nodes = 1 if rng.random() < 0.8 else min(one.nodes, rng.choice((2, 2, 4, 8)))
        gpus = (rng.choice((1, 2, 4, 8)) if nodes == 1 else one.gpus) if one.gpus else 0
        gpus = min(gpus, one.gpus) * nodes
        hours = rng.choice((0.5, 1, 2, 4, 8, 24))
        return SimJob(
            0, rng.choice(self.scenario.users), rng.choice(_NAMES), one.name, gpus, nodes, max(nodes, gpus * 8 or 16 * nodes), nodes * 64_000,
            int(hours * 60), rng.uniform(0.2, 0.95) * hours * _HOUR, rng.randint(1_000, 9_000), now, fails=rng.random() < 0.1,
        )  # fmt: skip

    def _fill_jobs(self) -> None:
        """As if it had been running for hours: jobs in the middle of their time, and a queue."""
        now = self.now()
        if not any(s.nodes for s in self.scenario.sets):
            return
        made = [self._make_job(now) for _ in range(self.scenario.running)]
        arrays = min(self.scenario.arrays, len(made) // 2, self.scenario.pending)
        for at, job in enumerate(made):
            if at % 2 == 0 and at // 2 < arrays:
                # Two running tasks in the place of two jobs, and the rest in the queue.
                job.tasks, job.array_limit, job.priority = list(range(8 + at % 32)), 2, 9_500
                job.gpus, job.cpus = job.gpus // job.node_count, job.cpus // job.node_count
                job.memory_mib, job.node_count = job.memory_mib // job.node_count, 1
                self.slurm.submit(job)
            elif at // 2 >= arrays:
                self.slurm.submit(job)
        self.slurm.schedule(most=10**9)
        for job in self.slurm.jobs.values():
            if job.state == "RUNNING":
                job.start = now - self.rng.uniform(0.05, 0.9) * job.duration_s
                job.submit = job.start - self.rng.uniform(0, _HOUR)
        running = [j.id for j in self.slurm.jobs.values() if j.state == "RUNNING"]
        for at in range(self.scenario.pending):  # the first are those of the arrays
            job = self._make_job(now - self.rng.uniform(0, 4 * _HOUR))
            job.held = self.rng.random() < 0.05
            job.reason = "Priority"
            if 0 <= at - arrays < self.scenario.dependent and (late := max(running, default=0)):
                job.dependency = f"afterok:{late}"
            if at >= arrays:
                self.slurm.submit(job)

    def _trouble(self, set_name: str, at: int, what: str, reason: str) -> None:
        name, ns = f"{set_name}-{at}", self.scenario.namespace
        match what:
            case "down":
                self.slurm.vanish(name)
                self.slurm.update_node(name, "DOWN", reason, "slurm")
            case "drain":
                self.slurm.update_node(name, "DRAIN", reason, "bob")
                self.slurm.nodes[name].reason_time = self.now() - 2 * _HOUR
            case "cordon":
                self.objects.change(NODES, ("", f"node-{name}"), {"spec": {"unschedulable": True}})
            case "crash":
                waiting = {"name": "slurmd", "ready": False, "restartCount": 12, "image": "slurmd:26.05",
                           "state": {"waiting": {"reason": "CrashLoopBackOff"}}}  # fmt: skip
                condition = {
                    "type": "Ready",
                    "status": "False",
                    "reason": "ContainersNotReady",
                    "lastTransitionTime": rfc3339(self.now() - 900),
                }
                self.objects.change(
                    PODS, (ns, name), {"status": {"containerStatuses": [waiting], "conditions": [condition]}}
                )
                if (crashing := self.objects.get(PODS, ns, name)) is not None:
                    self.recorder.say(
                        crashing,
                        "BackOff",
                        f"Back-off restarting failed container slurmd in pod {name}",
                        by="kubelet",
                        warning=True,
                    )
                self.slurm.vanish(name)
            case "nopod":
                self.objects.drop(PODS, (ns, name))

    # What happens as time goes on.

    def _arrive(self, past: float) -> None:
        if any(s.nodes for s in self.scenario.sets):
            expected = self.scenario.arrivals_per_min * past / 60
            for _ in range(min(500, int(expected) + (self.rng.random() < expected % 1))):
                self.slurm.submit(self._make_job(self.now()))

    def _break(self, past: float) -> None:
        """Now and then a slurmd falls silent, and a silent one comes back and is resumed by somebody."""
        if self.rng.random() < self.scenario.failures_per_hour * past / _HOUR:
            fit = [n for n in self.slurm.nodes.values() if n.usable()]
            if fit:
                self.slurm.vanish(self.rng.choice(fit).name)
        for node in self.slurm.nodes.values():
            there = self.objects.get(PODS, self.scenario.namespace, node.name) is not None
            if (
                there
                and node.down
                and node.name not in self._dead
                and node.silent_since is not None
                and self.now() - node.silent_since > 600
            ):
                self.slurm.register(node)
                self.slurm.update_node(node.name, "RESUME", "", "root")

    def _speed(self, speed: float) -> None:
        self.nodesets.speed = speed

    def _slow_pods(self, seconds: float) -> None:
        self.kubelet.delay_s = self.nodesets.delay_s = max(0.0, seconds)

    def _bury(self) -> None:
        """As many silent slurmds as the settings say; those that are let go come back and are resumed."""
        wanted = int(self.settings["nodes.dead"])
        while len(self._dead) > wanted:
            node = self.slurm.nodes.get(self._dead.pop())
            if node is not None and node.silent_since is not None:
                self.slurm.register(node)
                if node.down:
                    self.slurm.update_node(node.name, "RESUME", "", "root")
        if len(self._dead) < wanted:
            fit = sorted(n.name for n in self.slurm.nodes.values() if n.usable())
            for name in fit[: wanted - len(self._dead)]:
                self.slurm.vanish(name)
                self._dead.append(name)
