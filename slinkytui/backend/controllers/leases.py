"""The lease of the runtime as an object of coordination.k8s.io/v1, in the form that every other operator reads."""

from __future__ import annotations

import math
import socket
import uuid
from datetime import UTC, datetime
from typing import Any

from slinkytui.backend.controllers.runtime.lease import OPERATOR_LEASE, LeaseRecord
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import LEASES


def identity() -> str:
    """A candidate's name, of this very process: one that is started again never takes the old one's lease for its own."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def micro_time(seconds: float) -> str:
    """Unix seconds as a MicroTime, always with six digits."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix(text: Any) -> float:
    """A MicroTime in Unix seconds; 0 if it is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


class KubeLease:
    """One Lease object, through a client that no gate holds back: it is what the gate stands on."""

    def __init__(self, client: KubeClient, namespace: str, name: str = OPERATOR_LEASE) -> None:
        self._client, self._namespace, self._name = client, namespace, name

    async def read(self) -> LeaseRecord:
        return _record(await self._client.get(LEASES, self._namespace, self._name))

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        body = {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace}, "spec": _spec(record),
        }  # fmt: skip
        return _record(await self._client.create(LEASES, self._namespace, body))

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        # A patch with the version as its precondition leaves alone what others keep in the object.
        body = {"metadata": {"resourceVersion": record.version}, "spec": _spec(record)}
        return _record(await self._client.patch(LEASES, self._namespace, self._name, body))


def _spec(record: LeaseRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder, "leaseDurationSeconds": max(1, math.ceil(record.duration_s)),
        "acquireTime": micro_time(record.acquired), "renewTime": micro_time(record.renewed),
        "leaseTransitions": record.transitions,
    }  # fmt: skip


def _record(found: dict[str, Any]) -> LeaseRecord:
    spec = found.get("spec") or {}
    return LeaseRecord(
        str(spec.get("holderIdentity") or ""), float(spec.get("leaseDurationSeconds") or 0),
        unix(spec.get("acquireTime")), unix(spec.get("renewTime")), int(spec.get("leaseTransitions") or 0),
        str(found["metadata"]["resourceVersion"]),
    )  # fmt: skip
