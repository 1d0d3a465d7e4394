"""A stand-in for the operator and for slurmd: NodeSets are kept at their size, their pods register as Slurm nodes.

While somebody else holds the operator's lease only the pods are run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from slinkytui.backend.controllers.objects.revision import revision_data, revision_hash
from slinkytui.backend.crds.nodeset import NodeSet, parse_nodeset
from slinkytui.backend.sim.evict import release
from slinkytui.backend.sim.kubelet import host_ip
from slinkytui.backend.sim.kubelet import running as running_status
from slinkytui.backend.sim.objects import BY_PLURAL, SLINKY, Name, Objects, rfc3339
from slinkytui.backend.sim.recorder import Recorder
from slinkytui.backend.sim.scenario import Scenario, Set
from slinkytui.backend.sim.slurm import SimNode, SlurmSim
from slinkytui.backend.sim.standing import host as host_of

_DAY: Final = 86_400.0
_POLL_S: Final = 30.0
_REGISTERS_S: Final = 4.0
LEASE: Final = "slurm-operator"
PODS, NODES, NODESETS = BY_PLURAL["", "pods"], BY_PLURAL["", "nodes"], BY_PLURAL[SLINKY, "nodesets"]
CLAIMS: Final = BY_PLURAL["", "persistentvolumeclaims"]
_LEASES: Final = BY_PLURAL["coordination.k8s.io", "leases"]


class NodeSets:
    """`put` stores an object of the scenario (group, plural, object) and gives it an age and a UID."""

    def __init__(self, scenario: Scenario, objects: Objects, slurm: SlurmSim, recorder: Recorder,
                 put: Callable[[str, str, dict[str, Any]], dict[str, Any]]) -> None:  # fmt: skip
        self.scenario, self.objects, self.slurm, self.recorder, self._put = scenario, objects, slurm, recorder, put
        self.sets: dict[str, Set] = {s.name: s for s in scenario.sets}
        self.uids: dict[str, str] = {}
        self._hashes: dict[str, tuple[object, str]] = {}
        self._began = self._counted = objects.now()
        self._ready_at: dict[Name, float] = {}
        self._lease = ("", 0.0)
        self.speed = 1.0
        self.delay_s = 0.0
        """Pods get ready that much later."""

    def worker(self, one: Set, at: int, *, running: bool) -> None:
        """Make the pod of this number, and its node if there is none; a `running` one has been there for a day."""
        space, name = self.scenario.namespace, f"{one.name}-{at}"
        host = f"node-{name}"
        if self.objects.get(NODES, "", host) is None:
            self._put(
                "", "nodes", host_of(one, at, host, rfc3339(self.objects.now() - _DAY), rfc3339(self.objects.now()))
            )
        labels = {
            "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": one.name, "app.kubernetes.io/component": "worker",
            "slinky.slurm.net/cluster": "slurm", "nodeset.slinky.slurm.net/pod-name": name, "nodeset.slinky.slurm.net/pod-index": str(at),
            "nodeset.slinky.slurm.net/pod-hostname": name, "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
            **self._revision(one),
        }  # fmt: skip
        owner = {
            "apiVersion": f"{SLINKY}/v1beta1",
            "kind": "NodeSet",
            "name": one.name,
            "uid": self.uids[one.name],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        meta: dict[str, Any] = {"name": name, "namespace": space, "labels": labels, "ownerReferences": [owner]}
        if not running:
            meta["creationTimestamp"] = rfc3339(self.objects.now())
        container = {
            "name": "slurmd",
            "image": "slurmd:26.05",
            "ports": [{"name": "slurmd", "containerPort": 6818, "protocol": "TCP"}],
        }
        # A new pod waits for the scheduler; one that already runs has been through that.
        place = {"nodeName": host} if running else {"nodeSelector": {"kubernetes.io/hostname": host}}
        spec = {"hostname": name, **place, "containers": [container], "terminationGracePeriodSeconds": 30}
        self._put("", "pods", {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        if running:
            self._run((space, name), one, self.objects.now() - _DAY)
        else:
            self._ready_at[space, name] = self.objects.now() + _REGISTERS_S

    def _revision(self, one: Set) -> dict[str, str]:
        """The hash of the NodeSet's revision as its pods carry it: whoever operates next need not replace them."""
        found = self.objects.get(NODESETS, self.scenario.namespace, one.name)
        generation = found["metadata"].get("generation") if found else None
        if found is None or self._hashes.get(one.name, (None, ""))[0] != generation:
            nodeset = parse_nodeset(found) if found is not None else None
            text = revision_hash(revision_data(nodeset)) if isinstance(nodeset, NodeSet) else ""
            self._hashes[one.name] = (generation, text)
        text = self._hashes[one.name][1]
        return {"controller.kubernetes.io/hash": text} if text else {}

    def _run(self, key: tuple[str, str], one: Set, since: float) -> None:
        found = self.objects.get(PODS, *key)
        if found is None or not found["spec"].get("nodeName"):
            return
        pod = {**found, "metadata": dict(found["metadata"])}
        pod["status"] = running_status(pod, rfc3339(since), host_ip(self.objects, pod))
        stored = self.objects.put(PODS, pod)
        if since > self._began:
            self.recorder.started(stored)
        info = {"namespace": key[0], "podName": key[1], "node": pod["spec"]["nodeName"], "nodeSetName": one.name}
        node = SimNode(
            _hostname(pod), one.cpus, one.memory_mib, one.gpu_type, [0] * one.gpus, (one.name,), since, (one.name, "all"),
            msgspec.json.encode(info).decode(),
        )  # fmt: skip
        self.slurm.register(node)

    def scale(self) -> None:
        """A stand-in for the operator: NodeSets are kept at their size; drained workers leave, the highest first."""
        self._meet()
        if self._led():
            return
        self._count_slurm()
        for one in list(self.sets.values()):
            found = self.objects.get(NODESETS, self.scenario.namespace, one.name)
            if found is None or found["metadata"].get("deletionTimestamp") or not self._moved(one, found):
                continue
            want = int((found.get("spec") or {}).get("replicas", 1))
            pods = {k[1] for k, p in self.objects.all(PODS, self.scenario.namespace)
                    if p["metadata"].get("ownerReferences", [{}])[0].get("uid") == found["metadata"]["uid"]}  # fmt: skip
            missing = [at for at in range(want) if f"{one.name}-{at}" not in pods]
            if missing:
                self._say(found, "ScalingUp", f"Creating {len(missing)} Pod(s) to stabilize at {want} replicas")
            for at in missing:
                self.worker(one, at, running=False)
                self._say(found, "SuccessfulCreate", f"Created pod: {one.name}-{at}")
            extra = sorted(
                (p for p in pods if int(p.rsplit("-", 1)[1]) >= want), key=lambda p: -int(p.rsplit("-", 1)[1])
            )
            if extra:
                self._say(found, "ScalingDown", f"Deleting {len(extra)} Pod(s) to stabilize at {want} replicas")
            for name in extra:
                self._leave(name)
            self.status(one)

    def _say(self, found: dict[str, Any], reason: str, message: str) -> None:
        self.recorder.say(found, reason, message, by="nodeset-controller")

    def _meet(self) -> None:
        """NodeSets that somebody made or deleted while the world lives."""
        there = {k[1]: o for k, o in self.objects.table(NODESETS).items() if k[0] == self.scenario.namespace}
        for name in [n for n in self.sets if n not in there and n in self.uids]:
            del self.sets[name], self.uids[name]
            for node in [n for n in self.slurm.nodes.values() if n.features[:1] == (name,)]:
                self.slurm.vanish(node.name)
                if not node.jobs:
                    del self.slurm.nodes[node.name]
                self.slurm.touch_node(node.name)
        for name, found in there.items():
            if name not in self.sets:
                limits = ((found["spec"].get("slurmd") or {}).get("resources") or {}).get("limits") or {}
                self.sets[name] = Set(name=name, nodes=0, gpus=min(64, int(limits.get("nvidia.com/gpu", 0))))
            self.uids[name] = found["metadata"]["uid"]

    def _led(self) -> bool:
        """Whether an operator is at work: somebody renews the lease that the Slinky operator elects its leader by."""
        for (_, name), lease in self.objects.table(_LEASES).items():
            spec = lease.get("spec") or {}
            if name == LEASE and spec.get("holderIdentity") and spec.get("renewTime"):
                # Its holder lives by another clock than a cluster that runs fast: what counts is when it was seen to move.
                version = str(lease["metadata"]["resourceVersion"])
                if self._lease[0] != version:
                    self._lease = (version, self.objects.now())
                if self.objects.now() - self._lease[1] < float(spec.get("leaseDurationSeconds", 15)) * max(
                    1.0, self.speed
                ):
                    return True
        return False

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
            if (pod := self.objects.get(PODS, ns, name)) is not None:
                self.recorder.killing(pod)
                self.objects.drop(PODS, (ns, name))
            self.slurm.nodes.pop(name, None)
            self.slurm.touch_node(name)

    def run(self, now: float, workers: set[Name]) -> None:
        """Pods get ready and go. `workers` are pods of NodeSets that are on a node by now, whoever made them."""
        told: set[str] = set()
        while workers:
            self._ready_at.setdefault(workers.pop(), now + _REGISTERS_S + self.delay_s)
        for key, at in list(self._ready_at.items()):
            if now >= at:
                del self._ready_at[key]
                pod = self.objects.get(PODS, *key)
                one = self.sets.get(_owner(pod)) if pod is not None else None
                if one is None or pod is None:
                    continue
                if pod["spec"].get("nodeName"):
                    self._run(key, one, now)
                    told.add(one.name)
                else:
                    self._ready_at[key] = now
        for key, pod in [(k, p) for k, p in self.objects.table(PODS).items() if p["metadata"].get("deletionTimestamp")]:
            if pod["metadata"].get("finalizers"):
                continue
            self.recorder.killing(pod)
            self.objects.drop(PODS, key)
            release(self.objects, pod["metadata"]["uid"], orphan=False, among=(CLAIMS,))
            self._ready_at.pop(key, None)
            one = self.sets.get(_owner(pod))
            if one is not None:
                self.slurm.vanish(_hostname(pod))
                told.add(one.name)
        if told and not self._led():
            for name in sorted(told):
                self.status(self.sets[name])

    def status(self, one: Set) -> None:
        """Count the set's pods and Slurm nodes into its status."""
        mine = [p for _, p in self.objects.all(PODS, self.scenario.namespace) if _owner(p) == one.name]
        ready = sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in (p.get("status") or {}).get("conditions", ()))
            for p in mine
        )
        found = self.objects.get(NODESETS, self.scenario.namespace, one.name)
        if found is not None:
            old = found.get("status") or {}
            values = {**old, "replicas": len(mine), "desired": found["spec"].get("replicas", 1), "readyReplicas": ready,
                      "updatedReplicas": len(mine), "availableReplicas": ready, "unavailableReplicas": len(mine) - ready,
                      "nodeSetHash": "6c8b5fd7d4", "observedGeneration": found["metadata"].get("generation", 1),
                      "selector": f"app.kubernetes.io/instance={one.name},app.kubernetes.io/name=slurmd", **self._slurm_counts(one)}  # fmt: skip
            if (found.get("status") or {}) != values:
                self.objects.change(NODESETS, (self.scenario.namespace, one.name), {"status": values})

    def _slurm_counts(self, one: Set) -> dict[str, int]:
        mine = [n for n in self.slurm.nodes.values() if n.features[:1] == (one.name,)]
        return {
            "slurmIdle": sum(not (n.down or n.drain or n.jobs) for n in mine),
            "slurmAllocated": sum(bool(n.jobs) for n in mine),
            "slurmDown": sum(n.down for n in mine),
            "slurmDrain": sum(n.drain for n in mine),
        }

    def _count_slurm(self) -> None:
        """What Slurm does shows in the NodeSets' status as often as an operator polls it."""
        if self.objects.now() - self._counted < _POLL_S:
            return
        self._counted = self.objects.now()
        for one in self.sets.values():
            found = self.objects.get(NODESETS, self.scenario.namespace, one.name)
            counts = self._slurm_counts(one)
            if found is not None and not counts.items() <= (found.get("status") or {}).items():
                self.objects.change(NODESETS, (self.scenario.namespace, one.name), {"status": counts})


def _owner(pod: dict[str, Any]) -> str:
    """The name of the NodeSet that owns the pod, or ""."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(o["name"]) for o in owners if o.get("kind") == "NodeSet"), "")


def _hostname(pod: dict[str, Any]) -> str:
    """The name under which its slurmd registers."""
    return str((pod.get("spec") or {}).get("hostname") or pod["metadata"]["name"])
