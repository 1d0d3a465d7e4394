"""Evictions against budgets, and what goes with an owner: the two deletions that ask other objects first."""

from __future__ import annotations

import copy
from typing import Any

from slinkytui.backend.sim.objects import BY_PLURAL, RESOURCES, Name, Objects, Served


def blocked_by(objects: Objects, pod: dict[str, Any]) -> str:
    """Why no budget lets this pod go now, or ""."""
    namespace = pod["metadata"].get("namespace", "")
    for (_, name), budget in objects.all(BY_PLURAL["policy", "poddisruptionbudgets"], namespace):
        spec = budget.get("spec") or {}
        match = (spec.get("selector") or {}).get("matchLabels") or {}
        if not _matches(match, pod):
            continue
        pods = [p for _, p in objects.all(BY_PLURAL["", "pods"], namespace) if _matches(match, p)]
        healthy = sum(map(_ready, pods))
        want = _number(spec.get("minAvailable"), len(pods))
        if want is None:
            want = len(pods) - (_number(spec.get("maxUnavailable"), len(pods)) or 0)
        if healthy - want < 1:
            return f"The disruption budget {name} needs {want} healthy pods and has {healthy} currently"
    return ""


def _matches(match: dict[str, str], pod: dict[str, Any]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, v in match.items())


def _ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _number(found: Any, total: int) -> int | None:
    """An int or a percentage, rounded up as the disruption controller does."""
    if found is None:
        return None
    text = str(found)
    return -(-total * int(text[:-1]) // 100) if text.endswith("%") else int(text)


def release(objects: Objects, uid: str, *, orphan: bool) -> None:
    """The dependents of an owner that is gone: deleted, or kept without it."""
    for served, key, found in _dependents(objects, uid):
        rest = [o for o in found["metadata"]["ownerReferences"] if o.get("uid") != uid]
        if rest or orphan or found["metadata"].get("finalizers"):
            kept = copy.deepcopy(found)
            kept["metadata"]["ownerReferences"] = rest
            objects.put(served, kept)
        else:
            objects.drop(served, key)
            release(objects, found["metadata"]["uid"], orphan=False)


def _dependents(objects: Objects, uid: str) -> list[tuple[Served, Name, dict[str, Any]]]:
    return [
        (served, key, found)
        for served in RESOURCES
        for key, found in objects.all(served)
        if any(o.get("uid") == uid for o in found["metadata"].get("ownerReferences") or ())
    ]
