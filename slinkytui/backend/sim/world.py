"""One simulated cluster: both servers over one world that lives. Kubelet, scheduler and NodeSet controller are modelled
just far enough; jobs arrive, start, end and fail.
"""

from __future__ import annotations

import base64
import copy
import json
import random
import uuid
from collections.abc import Callable
from typing import Any, Final

from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim.kube import KubeSim
from slinkytui.backend.sim.objects import BY_PLURAL, SLINKY, Objects, Served, rfc3339
from slinkytui.backend.sim.scenario import Scenario, Set
from slinkytui.backend.sim.slurm import SimJob, SimNode, SlurmSim
from slinkytui.backend.sim.slurmrest import SlurmRest

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
PODS, NODES, NODESETS = BY_PLURAL["", "pods"], BY_PLURAL["", "nodes"], BY_PLURAL[SLINKY, "nodesets"]


class World:
    """`now` is the cluster's time; `step` moves it. `kube` and `rest` answer requests."""

    def __init__(self, scenario: Scenario, now: Callable[[], float], *, seed: int = 1) -> None:
        self.scenario, self.now = scenario, now
        self.rng = random.Random(seed)
        self.key = bytes(self.rng.getrandbits(8) for _ in range(32))
        self.objects = Objects(now)
        self.slurm = SlurmSim(scenario.cluster, self.rng, now())
        self.rest = SlurmRest(self.slurm, self.key)
        self.token = f"sim-{self.rng.getrandbits(64):016x}"
        self.kube = KubeSim(self.objects, {self.token: "admin", f"{self.token}-reader": "reader"})
        self.kube.services[scenario.namespace, "slurm-restapi:6820"] = self.handle_slurm
        self._uids: dict[str, str] = {}
        self._last = now()
        self._ready_at: dict[tuple[str, str], float] = {}
        self._build()

    async def handle_slurm(self, request: Request) -> Response:
        self.step()
        return await self.rest.handle(request)

    async def handle_kube(self, request: Request) -> Response:
        self.step()
        return await self.kube.handle(request)

    def step(self) -> None:
        """Bring the world to the present; cheap when little time has passed."""
        now = self.now()
        past = now - self._last
        if past < 0.2:
            return
        self._last = now
        self._arrive(past)
        self._break(past)
        self.slurm.step(now)
        self._scale()
        self._kubelet(now)

    # What stands at the start.

    def _build(self) -> None:
        sc, ns = self.scenario, self.scenario.namespace
        for name in dict.fromkeys(("default", "kube-system", ns)):
            self._put("", "namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
        secret = {"metadata": {"name": "slurm-auth-jwths256", "namespace": ns}, "type": "Opaque",
                  "data": {"jwt_hs256.key": base64.b64encode(self.key).decode()}}  # fmt: skip
        self._put("", "secrets", secret)
        if not sc.sets and not sc.login:
            return
        reference = {"name": "slurm", "namespace": ns}
        key = {"name": "slurm-auth-jwths256", "key": "jwt_hs256.key"}
        self._put(
            SLINKY,
            "controllers",
            {"metadata": {"name": "slurm", "namespace": ns}, "spec": {"clusterName": sc.cluster, "jwtKeyRef": key}},
        )
        self._put(
            SLINKY,
            "restapis",
            {"metadata": {"name": "slurm", "namespace": ns}, "spec": {"controllerRef": reference, "replicas": 1}},
        )
        service = {
            "metadata": {"name": "slurm-restapi", "namespace": ns},
            "spec": {"ports": [{"name": "slurmrestd", "port": 6820}]},
        }
        self._put("", "services", service)
        if sc.login:
            login = {"metadata": {"name": "slurm-login", "namespace": ns}, "spec": {"controllerRef": reference, "replicas": 1},
                     "status": {"replicas": 1}}  # fmt: skip
            self._put(SLINKY, "loginsets", login)
        for one in sc.sets:
            spec = {
                "controllerRef": reference,
                "replicas": one.nodes,
                "scalingMode": "StatefulSet",
                "slurmd": {"image": "slurmd:26.05"},
            }
            made = self._put(SLINKY, "nodesets", {"metadata": {"name": one.name, "namespace": ns}, "spec": spec})
            self._uids[one.name] = made["metadata"]["uid"]
            for at in range(one.nodes):
                self._worker(one, at, running=True)
        self._fill_jobs()
        for trouble in sc.troubles:
            self._trouble(trouble.set, trouble.node, trouble.what, trouble.reason)
        for one in sc.sets:
            self._status(one)

    def _put(self, group: str, plural: str, found: dict[str, Any]) -> dict[str, Any]:
        found["metadata"].setdefault("creationTimestamp", rfc3339(self.now() - 26 * _HOUR))
        found["metadata"].setdefault("uid", str(uuid.UUID(int=self.rng.getrandbits(128), version=4)))
        return self.objects.put(BY_PLURAL[group, plural], found)

    def _worker(self, one: Set, at: int, *, running: bool) -> None:
        sc, name = self.scenario, f"{one.name}-{at}"
        host = f"node-{name}"
        if self.objects.get(NODES, "", host) is None:
            ready = {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "lastTransitionTime": rfc3339(self.now() - 24 * _HOUR),
            }
            status = {"conditions": [ready], "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Debian GNU/Linux 13"},
                      "allocatable": {"cpu": str(one.cpus), "memory": f"{one.memory_mib}Mi", **({"nvidia.com/gpu": str(one.gpus)} if one.gpus else {})},
                      "addresses": [{"type": "InternalIP", "address": f"10.{at // 250 + 1}.0.{at % 250 + 1}"}]}  # fmt: skip
            self._put(
                "",
                "nodes",
                {"metadata": {"name": host, "labels": {"kubernetes.io/hostname": host}}, "spec": {}, "status": status},
            )
        labels = {
            "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": one.name, "app.kubernetes.io/component": "worker",
            "slinky.slurm.net/cluster": "slurm", "nodeset.slinky.slurm.net/pod-name": name, "nodeset.slinky.slurm.net/pod-index": str(at),
            "nodeset.slinky.slurm.net/pod-hostname": name, "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
        }  # fmt: skip
        owner = {
            "apiVersion": f"{SLINKY}/v1beta1",
            "kind": "NodeSet",
            "name": one.name,
            "uid": self._uids[one.name],
            "controller": True,
        }
        meta: dict[str, Any] = {"name": name, "namespace": sc.namespace, "labels": labels, "ownerReferences": [owner]}
        if not running:
            meta["creationTimestamp"] = rfc3339(self.now())
        spec = {"hostname": name, "nodeName": host, "containers": [{"name": "slurmd", "image": "slurmd:26.05"}]}
        self._put("", "pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        if running:
            self._run_pod((sc.namespace, name), one, self.now() - 24 * _HOUR)
        else:
            self._ready_at[sc.namespace, name] = self.now() + 4.0

    def _run_pod(self, key: tuple[str, str], one: Set, since: float) -> None:
        pod = copy.deepcopy(self.objects.get(PODS, *key))
        if pod is None:
            return
        stamp = rfc3339(since)
        pod["status"] = {
            "phase": "Running", "podIP": "10.244.0.1", "startTime": stamp,
            "conditions": [{"type": t, "status": "True", "lastTransitionTime": stamp} for t in ("PodScheduled", "ContainersReady", "Ready")],
            "containerStatuses": [{"name": "slurmd", "ready": True, "restartCount": 0, "image": "slurmd:26.05", "state": {"running": {"startedAt": stamp}}}],
        }  # fmt: skip
        self.objects.put(PODS, pod)
        info = {"namespace": key[0], "podName": key[1], "node": pod["spec"]["nodeName"], "nodeSetName": one.name}
        node = SimNode(
            key[1],
            one.cpus,
            one.memory_mib,
            one.gpu_type,
            [0] * one.gpus,
            (one.name,),
            since,
            (one.name, "all"),
            json.dumps(info, separators=(",", ":")),
        )
        self.slurm.register(node)

    def _make_job(self, now: float) -> SimJob:
        rng, sets = self.rng, [s for s in self.scenario.sets if s.nodes]
        one = rng.choices(sets, [s.nodes for s in sets])[0]
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
        for _ in range(self.scenario.running):
            self.slurm.submit(self._make_job(now))
        self.slurm.schedule(most=10**9)
        for job in self.slurm.jobs.values():
            if job.state == "RUNNING":
                job.start = now - self.rng.uniform(0.05, 0.9) * job.duration_s
                job.submit = job.start - self.rng.uniform(0, _HOUR)
        for _ in range(self.scenario.pending):
            job = self._make_job(now - self.rng.uniform(0, 4 * _HOUR))
            job.held = self.rng.random() < 0.05
            job.reason = "Priority"
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
                self._change(NODES, ("", f"node-{name}"), {"spec": {"unschedulable": True}})
            case "crash":
                waiting = {"name": "slurmd", "ready": False, "restartCount": 12, "image": "slurmd:26.05",
                           "state": {"waiting": {"reason": "CrashLoopBackOff"}}}  # fmt: skip
                condition = {
                    "type": "Ready",
                    "status": "False",
                    "reason": "ContainersNotReady",
                    "lastTransitionTime": rfc3339(self.now() - 900),
                }
                self._change(PODS, (ns, name), {"status": {"containerStatuses": [waiting], "conditions": [condition]}})
                self.slurm.vanish(name)
            case "nopod":
                self.objects.drop(PODS, (ns, name))

    def _change(self, served: Served, key: tuple[str, str], patch: dict[str, dict[str, Any]]) -> None:
        found = copy.deepcopy(self.objects.get(served, *key))
        if found is not None:
            for part, values in patch.items():
                found[part] = {**(found.get(part) or {}), **values}
            self.objects.put(served, found, spec_changed="spec" in patch)

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
            if node.down and node.silent_since is not None and self.now() - node.silent_since > 600:
                self.slurm.register(node)
                self.slurm.update_node(node.name, "RESUME", "", "root")

    def _scale(self) -> None:
        """A stand-in for the operator: NodeSets are kept at their size; drained workers leave, the highest first."""
        for one in self.scenario.sets:
            found = self.objects.get(NODESETS, self.scenario.namespace, one.name)
            if found is None:
                continue
            want = int((found.get("spec") or {}).get("replicas", 1))
            pods = {k[1]: p for k, p in self.objects.all(PODS, self.scenario.namespace)
                    if p["metadata"].get("ownerReferences", [{}])[0].get("uid") == found["metadata"]["uid"]} if self._moved(one, found) else None  # fmt: skip
            if pods is None:
                continue
            for at in range(want):
                if f"{one.name}-{at}" not in pods:
                    self._worker(one, at, running=False)
            extra = sorted(
                (p for p in pods if int(p.rsplit("-", 1)[1]) >= want), key=lambda p: -int(p.rsplit("-", 1)[1])
            )
            for name in extra:
                self._leave(name)
            self._status(one)

    def _moved(self, one: Set, found: dict[str, Any]) -> bool:
        """Whether there is anything to do for a NodeSet; at 10,000 nodes a look at every pod is not free."""
        status = found.get("status") or {}
        want = int((found.get("spec") or {}).get("replicas", 1))
        counts = (status.get("replicas"), status.get("readyReplicas"))
        troubled = any(t.set == one.name and t.what in ("crash", "nopod") for t in self.scenario.troubles)
        return counts != (want, want) and not (troubled and status.get("replicas") is not None and want == one.nodes)

    def _leave(self, name: str) -> None:
        node = self.slurm.nodes.get(name)
        ns = self.scenario.namespace
        if node is not None and not node.drain:
            self.slurm.update_node(
                name, "DRAIN", f"slurm-operator: Pod ({ns}/{name}) is pending termination for scale-in", "slurm"
            )
        if node is None or not node.jobs:
            self.objects.drop(PODS, (ns, name))
            self.slurm.nodes.pop(name, None)
            self.slurm.touch_node(name)

    def _kubelet(self, now: float) -> None:
        for key, at in list(self._ready_at.items()):
            if now >= at:
                del self._ready_at[key]
                one = next((s for s in self.scenario.sets if key[1].rsplit("-", 1)[0] == s.name), None)
                if one is not None:
                    self._run_pod(key, one, now)
                    self._status(one)
        for key, pod in [(k, p) for k, p in self.objects.table(PODS).items() if p["metadata"].get("deletionTimestamp")]:
            self.objects.drop(PODS, key)
            self.slurm.vanish(key[1])
            owner = pod["metadata"].get("ownerReferences", [{}])[0].get("name")
            one = next((s for s in self.scenario.sets if s.name == owner), None)
            if one is not None:
                self._status(one)

    def _status(self, one: Set) -> None:
        mine = [
            p
            for _, p in self.objects.all(PODS, self.scenario.namespace)
            if p["metadata"].get("ownerReferences", [{}])[0].get("name") == one.name
        ]
        ready = sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in (p.get("status") or {}).get("conditions", ()))
            for p in mine
        )
        found = self.objects.get(NODESETS, self.scenario.namespace, one.name)
        if found is not None:
            values = {"replicas": len(mine), "desired": found["spec"].get("replicas", 1), "readyReplicas": ready, "updatedReplicas": len(mine),
                      "availableReplicas": ready, "selector": f"app.kubernetes.io/name=slurmd,app.kubernetes.io/instance={one.name}"}  # fmt: skip
            if (found.get("status") or {}) != values:
                self._change(NODESETS, (self.scenario.namespace, one.name), {"status": values})
