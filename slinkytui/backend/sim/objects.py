"""The objects of the simulated API server: one resourceVersion counter, a log of changes for watches, encoded bytes
kept until an object changes.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

LOG: Final = 50_000
"""Changes kept for watches; an older resourceVersion is answered with 410."""


_COUNTED: Final = ("apps", "policy", "apiextensions.k8s.io", "slinky.slurm.net")


@dataclass(frozen=True)
class Served:
    """A resource that is served."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subs: tuple[str, ...] = ("status",)

    @property
    def stored(self) -> str:
        """The table that holds it: events of both groups are the same objects."""
        return "/events" if self.plural == "events" else f"{self.group}/{self.plural}"

    @property
    def counted(self) -> bool:
        """Whether changes of its spec are counted in metadata.generation."""
        return self.plural == "pods" or (self.group in _COUNTED and "status" in self.subs)

    @property
    def api(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


SLINKY: Final = "slinky.slurm.net"
RBAC: Final = "rbac.authorization.k8s.io"
_SCALED: Final = ("status", "scale")
RESOURCES: Final = (
    Served("", "v1", "pods", "Pod", short=("po",), subs=("status", "eviction", "log", "binding", "exec")),
    Served("", "v1", "nodes", "Node", False, ("no",)),
    Served("", "v1", "namespaces", "Namespace", False, ("ns",)),
    Served("", "v1", "events", "Event", short=("ev",), subs=()),
    Served("", "v1", "secrets", "Secret", subs=()),
    Served("", "v1", "services", "Service", short=("svc",), subs=("status", "proxy")),
    Served("", "v1", "configmaps", "ConfigMap", short=("cm",), subs=()),
    Served("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",), subs=()),
    Served("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",)),
    Served("apps", "v1", "deployments", "Deployment", short=("deploy",), subs=_SCALED),
    Served("apps", "v1", "statefulsets", "StatefulSet", short=("sts",), subs=_SCALED),
    Served("apps", "v1", "daemonsets", "DaemonSet", short=("ds",)),
    Served("apps", "v1", "replicasets", "ReplicaSet", short=("rs",), subs=_SCALED),
    Served("apps", "v1", "controllerrevisions", "ControllerRevision", subs=()),
    Served("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",)),
    Served("coordination.k8s.io", "v1", "leases", "Lease", subs=()),
    Served("events.k8s.io", "v1", "events", "Event", short=("ev",), subs=()),
    Served(RBAC, "v1", "roles", "Role", subs=()),
    Served(RBAC, "v1", "rolebindings", "RoleBinding", subs=()),
    Served(RBAC, "v1", "clusterroles", "ClusterRole", False, subs=()),
    Served(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False, subs=()),
    Served(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("crd", "crds")
    ),
    Served(SLINKY, "v1beta1", "nodesets", "NodeSet", short=("nodesets", "nss", "slurmd"), subs=_SCALED),
    Served(SLINKY, "v1beta1", "controllers", "Controller", short=("slurmctld",)),
    Served(SLINKY, "v1beta1", "loginsets", "LoginSet", short=("loginsets", "lss", "sackd"), subs=_SCALED),
    Served(SLINKY, "v1beta1", "restapis", "RestApi", short=("slurmrestd",)),
    Served(SLINKY, "v1beta1", "accountings", "Accounting", short=("slurmdbd",)),
    Served(SLINKY, "v1beta1", "tokens", "Token", short=("tokens", "jwt")),
)
BY_PLURAL: Final = {(r.group, r.plural): r for r in RESOURCES}
Name = tuple[str, str]


def rfc3339(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Change:
    version: int
    type: str
    served: Served
    name: Name
    line: bytes
    found: dict[str, Any]
    old: dict[str, Any] | None = None


@dataclass
class Objects:
    """`now` gives the cluster's time. `wait` wakes the watches."""

    now: Callable[[], float]
    version: int = 1_000
    oldest: int = 0
    log: list[Change] = field(default_factory=list)
    tables: dict[str, dict[Name, dict[str, Any]]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _bytes: dict[tuple[Served, Name], tuple[str, bytes]] = field(default_factory=dict)
    _order: dict[Served, tuple[int, dict[Name, None]]] = field(default_factory=dict)

    def table(self, served: Served) -> dict[Name, dict[str, Any]]:
        return self.tables.setdefault(served.stored, {})

    def get(self, served: Served, namespace: str, name: str) -> dict[str, Any] | None:
        return self.table(served).get((namespace, name))

    def all(self, served: Served, namespace: str = "") -> Iterator[tuple[Name, dict[str, Any]]]:
        table = self.table(served)
        held = self._order.get(served)
        if held is None or held[0] != len(table) or held[1].keys() != table.keys():
            held = (len(table), dict.fromkeys(sorted(table)))
            self._order[served] = held
        for key in held[1]:
            if not namespace or key[0] == namespace:
                yield key, table[key]

    def encoded(self, served: Served, name: Name, found: dict[str, Any]) -> bytes:
        version = found["metadata"]["resourceVersion"]
        held = self._bytes.get((served, name))
        if held is None or held[0] != version:
            held = (version, msgspec.json.encode(found))
            self._bytes[served, name] = held
        return held[1]

    def put(self, served: Served, found: dict[str, Any], *, spec_changed: bool = False) -> dict[str, Any]:
        """Store a new or changed object; sets what a server sets."""
        meta = found["metadata"]
        name = (meta.get("namespace", "") if served.namespaced else "", meta["name"])
        old = self.table(served).get(name)
        if old is None:
            meta.setdefault("uid", str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", rfc3339(self.now()))
            if served.counted:
                meta.setdefault("generation", 1)
        elif spec_changed and served.counted:
            meta["generation"] = int(old["metadata"].get("generation", 1)) + 1
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        found = {
            "apiVersion": served.api,
            "kind": served.kind,
            **{k: v for k, v in found.items() if k not in ("apiVersion", "kind")},
        }
        if (
            old is not None
            and meta.get("deletionTimestamp")
            and not meta.get("finalizers")
            and not _grace(served, found)
        ):
            return self.drop(served, name)
        self.table(served)[name] = found
        self._note("MODIFIED" if old is not None else "ADDED", served, name, found, old)
        return found

    def change(self, served: Served, key: Name, patch: dict[str, dict[str, Any]]) -> None:
        """Set fields of parts such as status, if the object is there."""
        found = copy.deepcopy(self.get(served, *key))
        if found is not None:
            for part, values in patch.items():
                found[part] = {**(found.get(part) or {}), **values}
            self.put(served, found, spec_changed="spec" in patch)

    def drop(self, served: Served, name: Name) -> dict[str, Any]:
        found = self.table(served).pop(name)
        self.version += 1
        found = copy.deepcopy(found)
        found["metadata"]["resourceVersion"] = str(self.version)
        self._note("DELETED", served, name, found)
        self._bytes.pop((served, name), None)
        return found

    def compact(self) -> None:
        """Forget all changes so far: watches from before are answered with 410."""
        self.oldest = self.version
        self.log.clear()

    def _note(
        self, kind: str, served: Served, name: Name, found: dict[str, Any], old: dict[str, Any] | None = None
    ) -> None:
        body = self.encoded(served, name, found) if kind != "DELETED" else msgspec.json.encode(found)
        self.log.append(
            Change(
                self.version,
                kind,
                served,
                name,
                b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n",
                found,
                old,
            )
        )
        if len(self.log) > LOG:
            del self.log[: LOG // 2]
            self.oldest = self.log[0].version - 1
        self.changed.set()
        self.changed = asyncio.Event()


def _grace(served: Served, found: dict[str, Any]) -> bool:
    """A pod that runs on a node leaves when its kubelet says so."""
    return served.plural == "pods" and bool((found.get("spec") or {}).get("nodeName"))
