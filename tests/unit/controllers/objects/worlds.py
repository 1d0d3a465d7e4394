"""Small NodeSets, Controllers and pods."""

from __future__ import annotations

from typing import Any

from slinkytui.backend.crds.controller import Controller, parse_controller
from slinkytui.backend.crds.nodeset import NodeSet, parse_nodeset

KEYS = {"slurmKeyRef": {"name": "auth", "key": "slurm.key"}, "jwtKeyRef": {"name": "jwt", "key": "jwt.key"}}


def nodeset(name: str = "gpu", *, namespace: str = "ns1", meta: dict[str, Any] | None = None, **spec: Any) -> NodeSet:
    """`spec` in the spelling of the resource."""
    raw = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", **(meta or {})},
        "spec": {"controllerRef": {"name": "c1"}, "slurmd": {"image": "slurmd"}, "logfile": {"image": "tail"}, **spec},
    }
    found = parse_nodeset(raw)
    assert isinstance(found, NodeSet), found
    return found


def controller(**spec: Any) -> Controller:
    found = parse_controller({"metadata": {"name": "c1", "namespace": "ns1"}, "spec": {**KEYS, **spec}})
    assert isinstance(found, Controller), found
    return found


def pod(
    name: str, *, labels: dict[str, str] | None = None, meta: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod as the API server gives it; `spec` in its spelling."""
    metadata = {"name": name, "namespace": "ns1", "uid": f"uid-{name}", "labels": labels or {}, **(meta or {})}
    return {"metadata": metadata, "spec": spec}


def required_node(node: str) -> dict[str, Any]:
    """The affinity to one node by name."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
