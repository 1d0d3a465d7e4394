"""Events, as the parts of a cluster record them: the same event again is counted, the oldest are forgotten."""

from __future__ import annotations

import copy
import uuid
from typing import Any, Final

from slinkytui.backend.sim.objects import BY_PLURAL, Objects, rfc3339

_EVENTS: Final = BY_PLURAL["", "events"]
_KEPT: Final = 1_000
_SCHEDULER: Final = "default-scheduler"


class Recorder:
    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._known: dict[tuple[str, str, str], tuple[str, str]] = {}

    def say(self, about: dict[str, Any], reason: str, message: str, *, by: str, warning: bool = False) -> None:
        """`about` is a stored object; `by` the component that speaks."""
        meta, now = about["metadata"], rfc3339(self.objects.now())
        key = (meta["uid"], reason, message)
        held = self.objects.get(_EVENTS, *self._known[key]) if key in self._known else None
        if held is not None:
            again = copy.deepcopy(held)
            again["count"], again["lastTimestamp"] = again["count"] + 1, now
            self.objects.put(_EVENTS, again)
            return
        space = meta.get("namespace") or "default"
        name = f"{meta['name']}.{uuid.uuid4().hex[:16]}"
        involved = {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": meta["name"], "uid": meta["uid"],
                    "resourceVersion": meta["resourceVersion"], **({"namespace": meta["namespace"]} if meta.get("namespace") else {})}  # fmt: skip
        host = (about.get("spec") or {}).get("nodeName", "") if by == "kubelet" else ""
        self.objects.put(_EVENTS, {
            "metadata": {"name": name, "namespace": space}, "involvedObject": involved, "reason": reason, "message": message,
            "type": "Warning" if warning else "Normal", "count": 1, "firstTimestamp": now, "lastTimestamp": now, "eventTime": None,
            "source": {"component": by, **({"host": host} if host else {})}, "reportingComponent": by, "reportingInstance": host,
        })  # fmt: skip
        self._known[key] = (space, name)
        while len(self._known) > _KEPT:
            oldest = self._known.pop(next(iter(self._known)))
            if self.objects.get(_EVENTS, *oldest) is not None:
                self.objects.drop(_EVENTS, oldest)

    def bound(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        text = f"Successfully assigned {meta['namespace']}/{meta['name']} to {pod['spec']['nodeName']}"
        self.say(pod, "Scheduled", text, by=_SCHEDULER)

    def unschedulable(self, pod: dict[str, Any], why: str) -> None:
        self.say(pod, "FailedScheduling", why, by=_SCHEDULER, warning=True)

    def started(self, pod: dict[str, Any]) -> None:
        for c in pod["spec"]["containers"]:
            self.say(pod, "Pulled", f'Container image "{c.get("image", "")}" already present on machine', by="kubelet")
            self.say(pod, "Created", f"Created container: {c['name']}", by="kubelet")
            self.say(pod, "Started", f"Started container {c['name']}", by="kubelet")

    def killing(self, pod: dict[str, Any]) -> None:
        for c in pod["spec"]["containers"]:
            self.say(pod, "Killing", f"Stopping container {c['name']}", by="kubelet")
