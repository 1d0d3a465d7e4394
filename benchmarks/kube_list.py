"""How much less a list of pods costs as rows than as the client library's typed models. Prints times and their ratio."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any, Final

import msgspec

from slinkytui.backend.clock import RealClock
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import PODS
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import Table
from slinkytui.backend.store import Store

COUNT: Final = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
TYPED: Final = 500
"""The typed models are slow: a part of the pods tells."""


def pod(at: int) -> dict[str, Any]:
    """A worker's pod with about the fields that a real one has."""
    now, name = "2026-01-01T00:00:00Z", f"gpu-{at}"
    conditions = [
        {"type": t, "status": "True", "lastTransitionTime": now, "lastProbeTime": None}
        for t in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    mounts = [{"name": f"v{i}", "mountPath": f"/mnt/{i}"} for i in range(6)]
    env = [{"name": f"SLURM_{i}", "value": "x" * 20} for i in range(8)]
    owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "gpu", "uid": "u", "controller": True}
    fields = {"f:metadata": {"f:labels": {f"f:app-{i}": {} for i in range(20)}}, "f:spec": {"f:containers": {}}}
    return {
        "metadata": {
            "name": name, "namespace": "slurm", "uid": f"uid-{at}", "resourceVersion": str(at), "creationTimestamp": now,
            "labels": {f"app-{i}": "slurmd" for i in range(8)}, "ownerReferences": [owner],
            "managedFields": [{"manager": "operator", "operation": "Update", "fieldsV1": fields, "time": now}],
        },
        "spec": {
            "nodeName": f"node-{at}", "hostname": name,
            "containers": [{"name": "slurmd", "image": "slurmd:26.05", "env": env, "volumeMounts": mounts}],
            "volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(6)],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "hostIP": "10.1.0.1", "startTime": now, "conditions": conditions,
            "containerStatuses": [{"name": "slurmd", "ready": True, "restartCount": 0, "image": "slurmd:26.05", "imageID": "i",
                                   "state": {"running": {"startedAt": now}}}],
        },
    }  # fmt: skip


async def rows(bodies: list[bytes]) -> float:
    """Seconds from the first request to rows in a store."""

    async def handle(request: Request) -> Response:
        at = int(request.first("continue") or 0)
        if request.first("watch"):
            await asyncio.Event().wait()
        return Response(body=bodies[at])

    store, began = Store(), time.perf_counter()
    task = asyncio.create_task(Watcher(KubeClient(CoreTransport(handle)), PODS, store, RealClock()).run())
    while len(store.rows(Table.PODS)) < COUNT:
        await asyncio.sleep(0.001)
    took = time.perf_counter() - began
    task.cancel()
    return took


def typed(body: bytes) -> float:
    """Seconds for json.loads and the typed models of TYPED pods."""
    from kubernetes.client import ApiClient

    client = ApiClient()
    began = time.perf_counter()
    deserialize = getattr(client, "_ApiClient__deserialize")  # noqa: B009  # the part of the library that is compared
    deserialize(json.loads(body), "V1PodList")
    return time.perf_counter() - began


def main() -> None:
    page = 500
    bodies: list[bytes] = []
    for at in range(0, COUNT, page):
        more = str(len(bodies) + 1) if at + page < COUNT else ""
        items = [pod(i) for i in range(at, min(at + page, COUNT))]
        meta = {"resourceVersion": "1", "continue": more}
        bodies.append(msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}))
    ours = min(asyncio.run(rows(bodies)) for _ in range(3))
    theirs = typed(bodies[0]) * COUNT / min(COUNT, page)
    print(f"{COUNT} pods, {sum(map(len, bodies)) / 1e6:.1f} MB: rows in a store {ours * 1000:.0f} ms, "
          f"typed models {theirs * 1000:.0f} ms (from {TYPED}), ratio 1/{theirs / ours:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
