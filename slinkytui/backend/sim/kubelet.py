"""Just enough of scheduler, kubelet and controllers: pods get a node, run, budgets are counted, namespaces get an account.

Only what has changed since the last step is looked at: a step over 10,000 quiet pods costs nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

from slinkytui.backend.sim.evict import counted
from slinkytui.backend.sim.objects import BY_PLURAL, Name, Objects, rfc3339
from slinkytui.backend.sim.recorder import Recorder
from slinkytui.backend.sim.watches import since

Object = dict[str, Any]
_PODS: Final = BY_PLURAL["", "pods"]
_NODES: Final = BY_PLURAL["", "nodes"]
_BUDGETS: Final = BY_PLURAL["policy", "poddisruptionbudgets"]
_SPACES: Final = BY_PLURAL["", "namespaces"]
_ACCOUNTS: Final = BY_PLURAL["", "serviceaccounts"]
_START_S: Final = 1.0


class Kubelet:
    """Runs the pods that no NodeSet owns. Those of NodeSets are noted in `workers` when they are on a node."""

    def __init__(self, objects: Objects, recorder: Recorder) -> None:
        self.objects, self.recorder = objects, recorder
        self._seen = objects.version
        self._starting: dict[Name, float] = {}
        self._waiting: set[Name] = set()
        self.workers: set[Name] = set()
        self.delay_s = 0.0
        """Pods get ready that much later."""
        for _, name in objects.table(_SPACES):
            self._account(name)

    def step(self, now: float) -> None:
        changed = self._changed()
        for (_, name), kind in sorted(changed):
            if kind == _SPACES.stored:
                self._account(name)
        pods = {k for k, kind in changed if kind == _PODS.stored} | self._waiting
        for key in sorted(pods):
            pod = self.objects.get(_PODS, *key)
            if pod is None or pod["metadata"].get("deletionTimestamp"):
                self._waiting.discard(key)
            elif not pod["spec"].get("nodeName"):
                self._place(key, pod)
            elif "containerStatuses" not in (pod.get("status") or {}):
                if owned(pod):
                    self.workers.add(key)
                else:
                    self._starting.setdefault(key, now + _START_S + self.delay_s)
        for key, at in list(self._starting.items()):
            if now >= at:
                del self._starting[key]
                self._run(key)
        if any(kind in (_PODS.stored, _BUDGETS.stored) for _, kind in changed):
            self._count()

    def _changed(self) -> set[tuple[Name, str]]:
        """What has changed since the last step; everything when the log does not reach back so far."""
        if self._seen < self.objects.oldest:
            found = {(k, s.stored) for s in (_PODS, _BUDGETS, _SPACES) for k in self.objects.table(s)}
        else:
            found = {(c.name, c.served.stored) for c in since(self.objects.log, self._seen)}
        self._seen = self.objects.version
        return found

    def _account(self, namespace: str) -> None:
        """Every namespace has its default service account."""
        if self.objects.get(_SPACES, "", namespace) and not self.objects.get(_ACCOUNTS, namespace, "default"):
            self.objects.put(_ACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})

    def _place(self, key: Name, pod: Object) -> None:
        host = next((node["metadata"]["name"] for node in self._candidates(pod) if fits(pod, node)), "")
        bound = copy.deepcopy(pod)
        if not host:
            self._waiting.add(key)
            total = len(self.objects.table(_NODES))
            why = f"0/{total} nodes are available: {total} node(s) didn't match Pod's node affinity/selector or were unschedulable."
            wait = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
            if any(
                {**wait, "lastTransitionTime": c.get("lastTransitionTime")} == c
                for c in (pod.get("status") or {}).get("conditions") or ()
            ):
                return
            bound.setdefault("status", {})["conditions"] = [{**wait, "lastTransitionTime": rfc3339(self.objects.now())}]
            self.recorder.unschedulable(self.objects.put(_PODS, bound), why)
            return
        self._waiting.discard(key)
        bound["spec"]["nodeName"] = host
        self.recorder.bound(self.objects.put(_PODS, bound))

    def _candidates(self, pod: Object) -> Iterable[Object]:
        named = (pod["spec"].get("nodeSelector") or {}).get("kubernetes.io/hostname", "")
        one = self.objects.get(_NODES, "", named)
        return [one] if one is not None else (node for _, node in self.objects.all(_NODES))

    def _run(self, key: Name) -> None:
        pod = copy.deepcopy(self.objects.get(_PODS, *key))
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        pod["status"] = {
            **(pod.get("status") or {}),
            **running(pod, rfc3339(self.objects.now()), host_ip(self.objects, pod)),
        }
        self.recorder.started(self.objects.put(_PODS, pod))

    def _count(self) -> None:
        for _, budget in list(self.objects.all(_BUDGETS)):
            status = {**counted(self.objects, budget), "observedGeneration": budget["metadata"].get("generation", 1)}
            if (budget.get("status") or {}) != status:
                self.objects.put(_BUDGETS, {**copy.deepcopy(budget), "status": status})


def owned(pod: Object) -> bool:
    """Whether a NodeSet made the pod."""
    return any(o.get("kind") == "NodeSet" for o in pod["metadata"].get("ownerReferences") or ())


def fits(pod: Object, node: Object) -> bool:
    """Whether the scheduler may put the pod there: cordon, readiness, selector and untolerated taints are looked at."""
    spec, labels = node.get("spec") or {}, node["metadata"].get("labels") or {}
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in (node.get("status") or {}).get("conditions") or ()
    )
    if spec.get("unschedulable") or not ready:
        return False
    tolerated = {t.get("key") for t in pod["spec"].get("tolerations") or ()}
    if any(
        t.get("effect") in ("NoSchedule", "NoExecute") and t.get("key") not in tolerated
        for t in spec.get("taints") or ()
    ):
        return False
    return all(labels.get(k) == v for k, v in (pod["spec"].get("nodeSelector") or {}).items())


def host_ip(objects: Objects, pod: Object) -> str:
    """The address of the pod's node."""
    node = objects.get(_NODES, "", pod["spec"].get("nodeName", "")) or {}
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(a["address"]) for a in addresses if a["type"] == "InternalIP"), "")


def running(pod: Object, stamp: str, host: str) -> Object:
    """The status of a pod whose containers all run since `stamp`."""
    ip = address(pod["spec"].get("nodeName", ""), pod["metadata"]["uid"])
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    states = [
        {"name": c["name"], "ready": True, "started": True, "restartCount": 0, "image": c.get("image", ""), "imageID": c.get("image", ""),
         "containerID": f"sim://{pod['metadata']['uid']}-{c['name']}", "state": {"running": {"startedAt": stamp}}}
        for c in pod["spec"]["containers"]
    ]  # fmt: skip
    return {
        "phase": "Running", "hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}], "startTime": stamp, "qosClass": "BestEffort", "containerStatuses": states,
        "conditions": [{"type": t, "status": "True", "lastTransitionTime": stamp} for t in kinds],
    }  # fmt: skip


def address(host: str, uid: str) -> str:
    """An address in the pods' network, the same for the same pod."""
    number = int(uid.replace("-", "")[:8] or "0", 16) if host else 0
    return f"10.244.{number >> 8 & 255}.{number % 254 + 1}"
