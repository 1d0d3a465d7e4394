"""The custom resource definitions of `slinky.slurm.net/v1beta1`: names, scopes, subresources, printer columns and
schemas as the Slinky operator defines them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import yaml

from slinkytui.backend.crds.accounting import AccountingSpec
from slinkytui.backend.crds.controller import ControllerSpec
from slinkytui.backend.crds.loginset import LoginSetSpec, LoginSetStatus
from slinkytui.backend.crds.nodeset import NodeSetSpec, NodeSetStatus
from slinkytui.backend.crds.restapi import RestApiSpec
from slinkytui.backend.crds.schema import Shape, made
from slinkytui.backend.crds.shared import PlainStatus
from slinkytui.backend.crds.token import TokenSpec, TokenStatus

GROUP: Final = "slinky.slurm.net"
ABOUT: Final = {
    "Controller": "A slurmctld, in Kubernetes or outside of it: a Slurm cluster.", "Accounting": "A slurmdbd.", "RestApi": "A slurmrestd.",
    "LoginSet": "A set of login pods.", "NodeSet": "A set of worker pods, each one Slurm node.", "Token": "A JWT for Slurm, kept in a Secret.",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A printer column; `path` is a JSON path."""

    title: str
    path: str
    type: str
    description: str = ""
    priority: int = 0


AGE: Final = Column("AGE", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True)
class Definition:
    kind: str
    plural: str
    short: tuple[str, ...]
    spec: type[Shape]
    status: type[Shape] = PlainStatus
    columns: tuple[Column, ...] = ()
    scale: bool = False


def _count(title: str, field: str, about: str, priority: int = 0) -> Column:
    return Column(title, f".status.{field}", "integer", about, priority)


DEFINITIONS: Final = (
    Definition("Controller", "controllers", ("slurmctld",), ControllerSpec),
    Definition("Accounting", "accountings", ("slurmdbd",), AccountingSpec),
    Definition("RestApi", "restapis", ("slurmrestd",), RestApiSpec),
    Definition("LoginSet", "loginsets", ("loginsets", "lss", "sackd"), LoginSetSpec, LoginSetStatus,
               (_count("REPLICAS", "replicas", "How many pods there are."),), scale=True),
    Definition(
        "NodeSet", "nodesets", ("nodesets", "nss", "slurmd"), NodeSetSpec, NodeSetStatus,
        (
            _count("DESIRED", "desired", "How many pods there shall be."), _count("REPLICAS", "replicas", "How many pods there are."),
            _count("UPDATED", "updatedReplicas", "How many pods are of the newest revision."),
            _count("READY", "readyReplicas", "How many pods are ready."), _count("IDLE", "slurmIdle", "How many Slurm nodes are idle.", 1),
            _count("ALLOCATED", "slurmAllocated", "How many Slurm nodes are allocated or mixed.", 1),
            _count("DOWN", "slurmDown", "How many Slurm nodes are down.", 1), _count("DRAIN", "slurmDrain", "How many Slurm nodes are drained.", 1),
        ),
        scale=True,
    ),
    Definition("Token", "tokens", ("tokens", "jwt"), TokenSpec, TokenStatus, (
        Column("USER", ".spec.username", "string", "Whose token it is."), Column("IAT", ".status.issuedAt", "date", "When it was issued."),
    )),
)  # fmt: skip


def _column(c: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"name": c.title, "jsonPath": c.path, "type": c.type}
    if c.description:
        out["description"] = c.description
    return {**out, "priority": c.priority} if c.priority else out


def document(d: Definition) -> dict[str, Any]:
    """One CustomResourceDefinition."""
    subresources: dict[str, Any] = {"status": {}}
    if d.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector",
        }  # fmt: skip
    names: dict[str, Any] = {
        "kind": d.kind, "listKind": f"{d.kind}List", "plural": d.plural, "singular": d.kind.lower(), "shortNames": list(d.short),
    }  # fmt: skip
    spec = {"description": f"What the {d.kind} shall be.", **made(d.spec)}
    status = {"description": "What was seen of it.", **made(d.status)}
    version = {
        "name": "v1beta1", "served": True, "storage": True, "subresources": subresources,
        "additionalPrinterColumns": [_column(c) for c in (*d.columns, AGE)],
        "schema": {"openAPIV3Schema": {"type": "object", "description": ABOUT[d.kind], "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}, "spec": spec, "status": status,
        }}},
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{d.plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }  # fmt: skip


class _Plain(yaml.SafeDumper):
    """YAML without anchors: what is shared by two fields is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def documents() -> str:
    """All of them as one YAML stream, for kubectl apply."""
    return "---\n".join(yaml.dump(document(d), Dumper=_Plain, sort_keys=False) for d in DEFINITIONS)
