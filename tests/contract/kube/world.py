"""The two API servers that the cases run against: the simulator's core and the lab's real one."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from slinkytui.backend.http import CoreTransport, Query, Request, Transport
from slinkytui.backend.kube.access import load
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.transport import KubeTransport
from slinkytui.backend.sim.kube import KubeSim
from slinkytui.backend.sim.objects import BY_PLURAL, Objects
from tests.lab.kube import KubeLab

JSON, MERGE = "application/json", "application/merge-patch+json"
STRATEGIC, PATCH, APPLY = (
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
_serial = itertools.count()


class World(Protocol):
    name: str

    def transport(self, user: str = "admin") -> Transport: ...

    def namespace(self) -> str: ...

    def compact(self) -> None: ...


class SimWorld:
    name = "sim"

    def __init__(self) -> None:
        self.objects = Objects(time.time)
        self.sim = KubeSim(self.objects, {"a": "admin", "r": "reader"})
        self.objects.put(BY_PLURAL["", "namespaces"], {"metadata": {"name": "default"}})

    def transport(self, user: str = "admin") -> Transport:
        return CoreTransport(self.sim.handle, {"authorization": f"Bearer {user[0]}"})

    def namespace(self) -> str:
        name = f"c{next(_serial)}"
        self.objects.put(BY_PLURAL["", "namespaces"], {"metadata": {"name": name}, "status": {"phase": "Active"}})
        return name

    def compact(self) -> None:
        self.objects.compact()


class RealWorld:
    name = "real"

    def __init__(self, lab: KubeLab) -> None:
        self.lab = lab

    def transport(self, user: str = "admin") -> Transport:
        return KubeTransport(load(str(self.lab.kubeconfig), user))

    def namespace(self) -> str:
        return self.lab.namespace(f"c{next(_serial)}")

    def compact(self) -> None:
        self.lab.compact()


@dataclass
class Hand:
    """A user at a server, in a namespace of the test's own."""

    world: World
    space: str
    wire: Transport

    @property
    def client(self) -> KubeClient:
        return KubeClient(self.wire)

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.space}/pods"

    @property
    def maps(self) -> str:
        return f"/api/v1/namespaces/{self.space}/configmaps"

    @property
    def sets(self) -> str:
        return f"/apis/slinky.slurm.net/v1beta1/namespaces/{self.space}/nodesets"

    async def ask(
        self, method: str, path: str, body: Any = None, *, kind: str = JSON, accept: str = JSON, query: Query = ()
    ) -> tuple[int, dict[str, Any]]:
        """The status and the decoded answer."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"accept": accept, **({"content-type": kind} if data else {})}
        async with self.wire.send(Request(method, path, query, headers, data), timeout_s=20) as answer:
            found = await answer.read()
        try:
            return answer.status, dict(json.loads(found))
        except ValueError:
            return answer.status, {"text": found.decode()}

    async def make(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        status, found = await self.ask("POST", path, body)
        assert status == 201, found
        return found

    async def events(self, path: str, version: str, until: Callable[[list[dict[str, Any]]], bool], *, seconds: int = 5,
                     query: Query = ()) -> list[dict[str, Any]]:  # fmt: skip
        """What a watch says until enough was heard or the server ends it."""
        asked: Query = (("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", str(seconds)), *query)
        heard: list[dict[str, Any]] = []
        rest = b""
        async with self.wire.send(Request("GET", path, asked, {"accept": JSON}), timeout_s=20) as answer:
            async for chunk in answer.chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                heard += [json.loads(line) for line in lines if line]
                if until(heard):
                    break
            else:
                if rest.strip():
                    heard.append(json.loads(rest))
        return heard


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "slurmd", "image": "slurmd:26.05"}], "terminationGracePeriodSeconds": 0}}  # fmt: skip


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def nodeset(name: str, replicas: int = 2) -> dict[str, Any]:
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "controllerRef": {"name": "slurm"}, "extraConf": "Gres=gpu:8"}}  # fmt: skip


async def becomes(check: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until the awaitable that `check` makes is true."""
    until = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < until, "it never became so"
        await asyncio.sleep(0.1)
