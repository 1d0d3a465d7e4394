"""Many pods on a real API server, quickly."""

from __future__ import annotations

import asyncio

from slinkytui.backend.kube.access import load
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.transport import KubeTransport

LABELS = ("blue", "green", "red", "white")


async def make(kubeconfig: str, namespace: str, count: int) -> None:
    """`count` pods with a label `tint` of LABELS in turn, over a few connections that stay open."""
    client = KubeClient(KubeTransport(load(kubeconfig)))
    slots = asyncio.Semaphore(24)

    async def one(at: int) -> None:
        meta = {"name": f"pod-{at:05}", "labels": {"tint": LABELS[at % len(LABELS)]}}
        spec = {
            "containers": [
                {"name": "c", "image": "registry.invalid/worker:1", "env": [{"name": "AT", "value": str(at)}]}
            ]
        }
        async with slots:
            await client.call(
                "POST", f"/api/v1/namespaces/{namespace}/pods", "pod", body={"metadata": meta, "spec": spec}
            )

    try:
        await asyncio.gather(*(one(at) for at in range(count)))
    finally:
        await client.close()
