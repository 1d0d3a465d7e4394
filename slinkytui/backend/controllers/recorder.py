"""The events of the runtime as objects of events.k8s.io/v1."""

from __future__ import annotations

from typing import Any, Final

from slinkytui.backend.controllers.leases import micro_time
from slinkytui.backend.controllers.runtime.events import WORD, Event, Ref
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import Resource

EVENTS: Final = Resource("events", "Event", "events.k8s.io")
CLUSTER_NAMESPACE: Final = "default"
"""Where events about objects without a namespace are kept."""


class KubeEvents:
    """`controller` is a qualified name such as nodeset-controller, `instance` names this process."""

    def __init__(self, client: KubeClient, controller: str, instance: str) -> None:
        self._client, self._controller, self._instance = client, controller, instance[:WORD]

    async def create(self, event: Event) -> None:
        namespace = event.regarding.namespace or CLUSTER_NAMESPACE
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": event.name, "namespace": namespace},
            "eventTime": micro_time(event.at), "reportingController": self._controller,
            "reportingInstance": self._instance, "type": event.type, "reason": event.reason, "action": event.action,
            "note": event.note, "regarding": _reference(event.regarding),
        }  # fmt: skip
        if event.related is not None:
            body["related"] = _reference(event.related)
        if event.count > 1:
            body["series"] = _series(event)
        await self._client.create(EVENTS, namespace, body)

    async def count(self, event: Event) -> None:
        namespace = event.regarding.namespace or CLUSTER_NAMESPACE
        await self._client.patch(EVENTS, namespace, event.name, {"series": _series(event)})


def _reference(ref: Ref) -> dict[str, str]:
    found = {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "uid": ref.uid,
    }
    return {key: value for key, value in found.items() if value}


def _series(event: Event) -> dict[str, Any]:
    return {"count": event.count, "lastObservedTime": micro_time(event.last)}
