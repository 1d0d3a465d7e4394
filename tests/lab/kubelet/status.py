"""What a kubelet reports: probes' verdicts and the status of a pod, as functions of what was seen and when."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]
EAGER_S: Final = 0.1
"""How often is asked what has not passed yet; its failures count once a period all the same."""


@dataclass
class Probe:
    """A probe's thresholds over time. `passing` is its verdict; `broken` says that the container should be restarted."""

    spec: Object
    since: float
    passing: bool = False
    broken: bool = False
    _successes: int = 0
    _failures: int = 0
    _counted: float = -1e9
    _next: float = 0.0

    def __post_init__(self) -> None:
        self._next = self.since + float(self.spec.get("initialDelaySeconds", 0))

    @property
    def period(self) -> float:
        return float(self.spec.get("periodSeconds", 10))

    def due(self, now: float) -> bool:
        return now >= self._next

    def note(self, ok: bool, now: float) -> None:
        """Take an answer in."""
        if ok:
            self._successes, self._failures = self._successes + 1, 0
            if self._successes >= self.spec.get("successThreshold", 1):
                self.passing = True
        else:
            self._successes = 0
            if now - self._counted >= self.period:
                self._failures, self._counted = self._failures + 1, now
            if self._failures >= self.spec.get("failureThreshold", 3):
                self.passing, self.broken = False, True
        self._next = now + (self.period if self.passing else min(self.period, EAGER_S))


@dataclass
class Seen:
    """One container as it is now. Times are seconds since the epoch."""

    name: str
    image: str
    started_at: float | None = None
    started: bool = False
    ready: bool = False
    restarts: int = 0
    code: int | None = None
    ended_at: float | None = None
    waiting: str = "ContainerCreating"
    message: str = ""
    last: Object = field(default_factory=dict)

    @property
    def running(self) -> bool:
        return self.started_at is not None and self.code is None


def stamp(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def state(seen: Seen) -> Object:
    """`state` of a container status."""
    if seen.running and seen.started_at is not None:
        return {"running": {"startedAt": stamp(seen.started_at)}}
    if seen.code is not None and not seen.waiting:
        return {"terminated": ended(seen)}
    return {"waiting": {"reason": seen.waiting, **({"message": seen.message} if seen.message else {})}}


def ended(seen: Seen) -> Object:
    """How a container's last run ended."""
    return {
        "exitCode": seen.code, "reason": "Completed" if seen.code == 0 else "Error",
        "startedAt": stamp(seen.started_at or 0), "finishedAt": stamp(seen.ended_at or 0),
    }  # fmt: skip


def container_status(seen: Seen) -> Object:
    return {
        "name": seen.name, "image": seen.image, "imageID": seen.image, "containerID": f"process://{seen.name}-{seen.restarts}",
        "restartCount": seen.restarts, "ready": seen.running and seen.ready, "started": seen.running and seen.started,
        "state": state(seen), "lastState": {"terminated": seen.last} if seen.last else {},
    }  # fmt: skip


def exit_phase(seen: Sequence[Seen]) -> str:
    """The phase of a pod whose containers have all ended for good."""
    return "Succeeded" if all(s.code == 0 for s in seen) else "Failed"


def pod_status(
    old: Object,
    init: Sequence[Seen],
    main: Sequence[Seen],
    initialized: bool,
    address: str,
    host: str,
    now: float,
    final: bool,
) -> Object:
    """The parts of a pod's status that a kubelet owns. `old` is the former status: unchanged conditions keep their times."""
    ready = bool(main) and all(s.running and s.ready for s in main)
    begun = any(s.started_at is not None for s in main)
    phase = exit_phase(main) if final else "Running" if begun else "Pending"
    not_ready = sorted(s.name for s in main if not (s.running and s.ready))
    blocked = (
        {} if ready else {"reason": "ContainersNotReady", "message": f"containers with unready status: {not_ready}"}
    )
    conditions = [
        _condition(old, "PodReadyToStartContainers", bool(address) and not final, now, {}),
        _condition(old, "Initialized", initialized, now, {}),
        _condition(old, "ContainersReady", ready, now, blocked),
        _condition(old, "Ready", ready, now, blocked),
    ]
    return {
        "phase": phase, "conditions": conditions, "hostIP": host, "hostIPs": [{"ip": host}],
        "startTime": old.get("startTime") or stamp(now),
        **({"podIP": address, "podIPs": [{"ip": address}]} if address else {}),
        "initContainerStatuses": [container_status(s) for s in init],
        "containerStatuses": [container_status(s) for s in main],
    }  # fmt: skip


def _condition(old: Object, kind: str, true: bool, now: float, why: Object) -> Object:
    status = "True" if true else "False"
    was: Object = next((c for c in old.get("conditions") or [] if c["type"] == kind), {})
    since = was["lastTransitionTime"] if was.get("status") == status and "lastTransitionTime" in was else stamp(now)
    # A reason that no longer holds has to be named to be taken away.
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": why.get("reason"),
        "message": why.get("message"),
    }


def restart_delay(restarts: int, scale: float) -> float:
    """Seconds until the next start: at once the first time, then 10, 20 … 300, times `scale`."""
    return 0.0 if restarts == 0 else float(min(10 * 2 ** (restarts - 1), 300)) * scale
