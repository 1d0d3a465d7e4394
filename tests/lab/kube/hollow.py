"""Nodes without a kubelet and pods that only say that they run: as much as an API client can see of both."""

from __future__ import annotations

import json
import time
from typing import Any, Protocol


class Call(Protocol):
    def __call__(
        self, method: str, url: str, body: Any = None, kind: str = ..., token: str = ...
    ) -> tuple[int, bytes]: ...


MERGE = "application/merge-patch+json"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _done(answer: tuple[int, bytes]) -> dict[str, Any]:
    status, body = answer
    if status >= 300 and status != 409:
        raise RuntimeError(f"{status} {body[:500].decode()}")
    return dict(json.loads(body))


def nodes(call: Call, count: int, *, gpus: int = 0) -> None:
    """`hollow-0` and on: Ready, untainted, with room for pods."""
    capacity = {"cpu": "64", "memory": "500Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    for at in range(count):
        name = f"hollow-{at}"
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
        _done(call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}}))
        # Admission adds the not-ready taint, and no node controller is there to take it away.
        _done(call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE))
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now(),
                 "lastTransitionTime": _now()}  # fmt: skip
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        _done(call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, MERGE))


def run_pods(call: Call, namespace: str) -> int:
    """Bind what is pending, in turn over the hollow nodes, and report it Running and Ready."""
    names = [n["metadata"]["name"] for n in _done(call("GET", "/api/v1/nodes"))["items"]]
    pods = _done(call("GET", f"/api/v1/namespaces/{namespace}/pods"))["items"]
    started = 0
    for at, pod in enumerate(p for p in pods if p.get("status", {}).get("phase") == "Pending"):
        url = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}"
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": names[at % len(names)]}
            _done(call("POST", f"{url}/binding", {"metadata": {"name": pod["metadata"]["name"]}, "target": target}))
        _done(call("PATCH", f"{url}/status", {"status": _running(pod, at)}, MERGE))
        started += 1
    return started


def _running(pod: dict[str, Any], at: int) -> dict[str, Any]:
    address, now = f"10.{at >> 16 & 255}.{at >> 8 & 255}.{at & 255}", _now()
    conditions = [
        {"type": t, "status": "True", "lastTransitionTime": now}
        for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    containers = [
        {"name": c["name"], "ready": True, "started": True, "restartCount": 0, "image": c["image"], "imageID": "x",
         "state": {"running": {"startedAt": now}}}
        for c in pod["spec"]["containers"]
    ]  # fmt: skip
    return {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": now,
            "conditions": conditions, "containerStatuses": containers}  # fmt: skip
