"""Evictions against budgets, and what goes with an owner: the two deletions that ask other objects first."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from slinkytui.backend.sim.objects import BY_PLURAL, RESOURCES, Name, Objects, Served


def blocked_by(objects: Objects, pod: dict[str, Any]) -> str:
    """Why no budget lets this pod go now, or ""."""
    namespace = pod["metadata"].get("namespace", "")
    for (_, name), budget in objects.all(BY_PLURAL["policy", "poddisruptionbudgets"], namespace):
        if _matches((budget.get("spec") or {}).get("selector"), pod):
            found = counted(objects, budget)
            if found["disruptionsAllowed"] < 1:
                return f"The disruption budget {name} needs {found['desiredHealthy']} healthy pods and has {found['currentHealthy']} currently"
    return ""


def counted(objects: Objects, budget: dict[str, Any]) -> dict[str, int]:
    """A budget's status: pods, healthy ones, how many must be and how many may go."""
    spec = budget.get("spec") or {}
    namespace = budget["metadata"].get("namespace", "")
    pods = [p for _, p in objects.all(BY_PLURAL["", "pods"], namespace) if _matches(spec.get("selector"), p)]
    healthy = sum(map(_ready, pods))
    want = _number(spec.get("minAvailable"), len(pods))
    if want is None:
        want = max(0, len(pods) - (_number(spec.get("maxUnavailable"), len(pods)) or 0))
    return {
        "expectedPods": len(pods),
        "currentHealthy": healthy,
        "desiredHealthy": want,
        "disruptionsAllowed": max(0, healthy - want),
    }


def _matches(selector: dict[str, Any] | None, pod: dict[str, Any]) -> bool:
    """An empty selector of policy/v1 chooses every pod of the namespace, none at all chooses nothing."""
    if selector is None:
        return False
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, v in (selector.get("matchLabels") or {}).items()) and all(
        _expressed(e, labels) for e in selector.get("matchExpressions") or ()
    )


def _expressed(term: dict[str, Any], labels: dict[str, str]) -> bool:
    key, values = term["key"], term.get("values") or ()
    match term["operator"]:
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "In":
            return labels.get(key) in values
    return labels.get(key) not in values


def _ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _number(found: Any, total: int) -> int | None:
    """An int or a percentage, rounded up as the disruption controller does."""
    if found is None:
        return None
    text = str(found)
    return -(-total * int(text[:-1]) // 100) if text.endswith("%") else int(text)


def release(objects: Objects, uid: str, *, orphan: bool, among: Iterable[Served] = RESOURCES) -> None:
    """The dependents of an owner that is gone: deleted, or kept without it. `among` is where they are looked for."""
    for served, key, found in _dependents(objects, uid, among):
        rest = [o for o in found["metadata"]["ownerReferences"] if o.get("uid") != uid]
        if rest or orphan or found["metadata"].get("finalizers"):
            kept = copy.deepcopy(found)
            kept["metadata"]["ownerReferences"] = rest
            objects.put(served, kept)
        else:
            objects.drop(served, key)
            release(objects, found["metadata"]["uid"], orphan=False)


def _dependents(objects: Objects, uid: str, among: Iterable[Served]) -> list[tuple[Served, Name, dict[str, Any]]]:
    return [
        (served, key, found)
        for served in among
        for key, found in objects.all(served)
        if any(o.get("uid") == uid for o in found["metadata"].get("ownerReferences") or ())
    ]
