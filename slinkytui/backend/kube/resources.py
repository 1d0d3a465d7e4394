"""The resources that we read: one row each, with the wire struct and the table it feeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from slinkytui.backend.kube import wire
from slinkytui.backend.models import Row, Table

SLINKY: Final = "slinky.slurm.net"


@dataclass(frozen=True)
class Resource:
    """A served resource. `table` is None for those that are only fetched singly."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    table: Table | None = None
    struct: type[Any] | None = None
    row: Callable[[Any], Row] | None = None
    fields: str = ""
    """A field selector: only these objects are looked at."""
    labels: str = ""
    """A label selector, likewise."""
    optional: bool = False
    """Nice to have: a server that has it not or refuses it is no problem."""

    @property
    def base(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """The URL path of the list, of an object or of its subresource; names are quoted here."""
        parts = [self.base]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{quote(namespace, safe='')}")
        parts.append(self.plural)
        parts += [p for p in (quote(name, safe=""), sub) if p]
        return "/".join(parts)


PODS: Final = Resource("pods", "Pod", table=Table.PODS, struct=wire.WirePod, row=wire.pod_row)
NODES: Final = Resource(
    "nodes", "Node", namespaced=False, table=Table.KUBENODES, struct=wire.WireKubeNode, row=wire.kubenode_row
)
EVENTS: Final = Resource("events", "Event", table=Table.EVENTS, struct=wire.WireEvent, row=wire.event_row)
NODESETS: Final = Resource(
    "nodesets", "NodeSet", SLINKY, "v1beta1", table=Table.NODESETS, struct=wire.WireNodeSet, row=wire.nodeset_row
)
CONTROLLERS: Final = Resource(
    "controllers",
    "Controller",
    SLINKY,
    "v1beta1",
    table=Table.CONTROLLERS,
    struct=wire.WireController,
    row=wire.controller_row,
)
LOGINSETS: Final = Resource(
    "loginsets", "LoginSet", SLINKY, "v1beta1", table=Table.LOGINSETS, struct=wire.WireMember, row=wire.loginset_row
)
RESTAPIS: Final = Resource(
    "restapis", "RestApi", SLINKY, "v1beta1", table=Table.RESTAPIS, struct=wire.WireMember, row=wire.restapi_row
)
ACCOUNTINGS: Final = Resource(
    "accountings", "Accounting", SLINKY, "v1beta1", table=Table.ACCOUNTINGS, struct=wire.WireAccounting,
    row=wire.accounting_row, optional=True,
)  # fmt: skip
TOKENS: Final = Resource(
    "tokens", "Token", SLINKY, "v1beta1", table=Table.TOKENS, struct=wire.WireToken, row=wire.token_row, optional=True
)
NAMESPACES: Final = Resource(
    "namespaces", "Namespace", namespaced=False, table=Table.NAMESPACES, struct=wire.WireNamespace,
    row=wire.namespace_row, optional=True,
)  # fmt: skip
LEASES: Final = Resource(
    "leases", "Lease", "coordination.k8s.io", table=Table.OPERATORS, struct=wire.WireLease, row=wire.operator_row,
    fields="metadata.name=slurm-operator", optional=True,
)  # fmt: skip
"""Only the operator's own lock: every node has a lease too, and renews it."""
SECRETS: Final = Resource("secrets", "Secret", table=Table.SECRETS, struct=wire.WireSecret, row=wire.secret_row)


def _whole(plural: str, kind: str, table: Table, group: str = "", version: str = "v1", labels: str = "") -> Resource:
    return Resource(plural, kind, group, version, table=table, struct=msgspec.Raw, row=wire.manifest_row, labels=labels)


NODESET_OBJECTS: Final = _whole("nodesets", "NodeSet", Table.NODESET_OBJECTS, SLINKY, "v1beta1")
CONTROLLER_OBJECTS: Final = _whole("controllers", "Controller", Table.CONTROLLER_OBJECTS, SLINKY, "v1beta1")
REVISIONS: Final = _whole("controllerrevisions", "ControllerRevision", Table.REVISIONS, "apps")
_WORKERS: Final = "app.kubernetes.io/name=slurmd"
CLAIMS: Final = _whole("persistentvolumeclaims", "PersistentVolumeClaim", Table.CLAIMS, labels=_WORKERS)
SERVICES: Final = _whole("services", "Service", Table.SERVICES)
BUDGETS: Final = _whole("poddisruptionbudgets", "PodDisruptionBudget", Table.BUDGETS, "policy")
CONFIGMAPS: Final = _whole("configmaps", "ConfigMap", Table.CONFIGMAPS, labels=_WORKERS)
OPERATED: Final = (NODESET_OBJECTS, CONTROLLER_OBJECTS, REVISIONS, CLAIMS, SERVICES, BUDGETS, CONFIGMAPS)
"""What the operator reads whole, besides the rows that every engine reads."""
WATCHED: Final = (
    CONTROLLERS,
    RESTAPIS,
    NODESETS,
    LOGINSETS,
    PODS,
    NODES,
    EVENTS,
    ACCOUNTINGS,
    TOKENS,
    NAMESPACES,
    LEASES,
)
BY_TABLE: Final = {r.table: r for r in WATCHED}
DECODERS: Final = {
    r.table: msgspec.json.Decoder(r.struct) for r in (*WATCHED, *OPERATED, SECRETS) if r.struct is not None
}
