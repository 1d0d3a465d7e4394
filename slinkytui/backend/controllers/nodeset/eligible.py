"""Which Kubernetes nodes a daemon NodeSet runs on, by labels, affinity and taints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from slinkytui.backend.controllers.nodeset.world import Spec
from slinkytui.backend.models import KubeNode

_DAEMON: Final[tuple[Mapping[str, Any], ...]] = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)
"""What every daemon pod tolerates: a machine that is cordoned or flaps keeps its worker."""
_NETWORK: Final = {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"}
WORKER_TAINT: Final = {
    "key": "nodeset.slinky.slurm.net/worker",
    "operator": "Equal",
    "value": "",
    "effect": "NoExecute",
}


class Fit(NamedTuple):
    """Whether a worker is wanted on a node, and whether one that is there may stay."""

    run: bool
    stay: bool
    why: str = ""


def fit(node: KubeNode, spec: Spec, *, create_on_cordoned: bool = False) -> Fit:
    """A cordoned node keeps its worker and counts; a new one is made there only if that is set."""
    labels = dict(node.meta.labels)
    if any(labels.get(k) != v for k, v in spec.node_selector.items()):
        return Fit(False, False, "its labels do not match the node selector")
    if spec.required_terms and not any(_matches(term, labels, node.id.name) for term in spec.required_terms):
        # A term that cannot be read proves nothing: nobody is made, and nobody leaves.
        odd = next((o for term in spec.required_terms if (o := _odd(term))), "")
        return Fit(False, bool(odd), odd or "it does not match the required node affinity")
    tolerations = (*_DAEMON, *((_NETWORK,) if spec.host_network else ()), *(spec.tolerations or (WORKER_TAINT,)))
    bad = [t for t in node.taints if not any(_tolerates(one, *_taint(t)) for one in tolerations)]
    evicting = [t for t in bad if t.endswith(":NoExecute")]
    if evicting:
        return Fit(False, False, f"taint {evicting[0]}")
    refusing = [t for t in bad if t.endswith(":NoSchedule")]
    if refusing:
        return Fit(False, True, f"taint {refusing[0]}")
    if node.unschedulable and not create_on_cordoned:
        return Fit(True, True, "cordoned")
    return Fit(True, True)


def _taint(text: str) -> tuple[str, str, str]:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return key, value, effect


def _tolerates(one: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if one.get("effect") and one["effect"] != effect:
        return False
    if one.get("key") and one["key"] != key:
        return False
    if one.get("operator") == "Exists":
        return True
    return bool(one.get("key")) and (one.get("value") or "") == value


def _matches(term: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    expressions: Iterable[Mapping[str, Any]] = term.get("matchExpressions") or ()
    fields: Iterable[Mapping[str, Any]] = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_holds(e, labels.get(str(e.get("key")))) for e in expressions) and all(
        _holds(f, name if f.get("key") == "metadata.name" else None) for f in fields
    )


def _odd(term: Mapping[str, Any]) -> str:
    """What of a term cannot be read, or ""."""
    for one in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())):
        if one.get("operator") not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
            return f"its node affinity cannot be read: operator {one.get('operator')!r}"
    return ""


def _holds(one: Mapping[str, Any], found: str | None) -> bool:
    values = [str(v) for v in one.get("values") or ()]
    match one.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" as op:
            try:
                left, right = int(found or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return left > right if op == "Gt" else left < right
        case _:
            return False
