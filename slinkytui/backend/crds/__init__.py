"""The custom resource definitions of `slinky.slurm.net/v1beta1`: names, scopes, subresources and printer columns as
the Slinky operator defines them. The schemas are open: a field of theirs is kept, none is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import yaml

GROUP: Final = "slinky.slurm.net"


@dataclass(frozen=True)
class Definition:
    kind: str
    plural: str
    short: tuple[str, ...]
    columns: tuple[tuple[str, str, str, int], ...] = ()
    """Title, JSON path, type, priority."""
    scale: bool = False


DEFINITIONS: Final = (
    Definition("Controller", "controllers", ("slurmctld",)),
    Definition("Accounting", "accountings", ("slurmdbd",)),
    Definition("RestApi", "restapis", ("slurmrestd",)),
    Definition("LoginSet", "loginsets", ("loginsets", "lss", "sackd"), (("REPLICAS", ".status.replicas", "integer", 0),), scale=True),
    Definition(
        "NodeSet", "nodesets", ("nodesets", "nss", "slurmd"),
        (
            ("DESIRED", ".status.desired", "integer", 0), ("REPLICAS", ".status.replicas", "integer", 0),
            ("UPDATED", ".status.updatedReplicas", "integer", 0), ("READY", ".status.readyReplicas", "integer", 0),
            ("IDLE", ".status.slurmIdle", "integer", 1), ("ALLOCATED", ".status.slurmAllocated", "integer", 1),
            ("DOWN", ".status.slurmDown", "integer", 1), ("DRAIN", ".status.slurmDrain", "integer", 1),
        ),
        scale=True,
    ),
    Definition("Token", "tokens", ("tokens", "jwt"), (("USER", ".spec.username", "string", 0), ("IAT", ".status.issuedAt", "date", 0))),
)  # fmt: skip


def document(d: Definition) -> dict[str, Any]:
    """One CustomResourceDefinition."""
    columns = [*d.columns, ("AGE", ".metadata.creationTimestamp", "date", 0)]
    subresources: dict[str, Any] = {"status": {}}
    if d.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector",
        }  # fmt: skip
    open_object: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec: dict[str, Any] = dict(open_object)
    if d.scale:
        spec["properties"] = {"replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1}}
    names = {
        "kind": d.kind,
        "listKind": f"{d.kind}List",
        "plural": d.plural,
        "singular": d.kind.lower(),
        "shortNames": list(d.short),
    }
    version = {
        "name": "v1beta1", "served": True, "storage": True, "subresources": subresources,
        "additionalPrinterColumns": [
            {"name": n, "jsonPath": p, "type": t, **({"priority": q} if q else {})} for n, p, t, q in columns
        ],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "spec": spec, "status": dict(open_object),
        }}},
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{d.plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }  # fmt: skip


def documents() -> str:
    """All of them as one YAML stream, for kubectl apply."""
    return yaml.safe_dump_all([document(d) for d in DEFINITIONS], sort_keys=False)
