"""Labels, annotations and fixed words of the objects that belong to a NodeSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinkytui.backend.crds.nodeset import NodeSet

API_VERSION: Final = "slinky.slurm.net/v1beta1"
NODESET: Final = "nodeset.slinky.slurm.net"
POD_NAME: Final = f"{NODESET}/pod-name"
POD_INDEX: Final = f"{NODESET}/pod-index"
POD_HOSTNAME: Final = f"{NODESET}/pod-hostname"
POD_PROTECT: Final = f"{NODESET}/pod-protect"
SCALING_MODE: Final = f"{NODESET}/scaling-mode"
HOSTNAME_OVERRIDE: Final = f"{NODESET}/hostname-override"
WORKER_TAINT: Final = f"{NODESET}/worker"
CLUSTER: Final = "slinky.slurm.net/cluster"
SSHD_HASH: Final = "slinky.slurm.net/sshd-conf-hash"
SSSD_HASH: Final = "slinky.slurm.net/sssd-conf-hash"
TOPOLOGY: Final = "topology.slinky.slurm.net/spec"
HASH: Final = "controller.kubernetes.io/hash"
APP: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
COMPONENT: Final = "app.kubernetes.io/component"
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
SLURMD: Final = "slurmd"
_BOOKS: Final = ("kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/")


def selector(nodeset: str) -> dict[str, str]:
    """The labels that a NodeSet's pods are found by."""
    return {APP: SLURMD, INSTANCE: nodeset}


def selector_text(nodeset: str) -> str:
    """The same as `status.selector` writes it."""
    return ",".join(f"{k}={v}" for k, v in sorted(selector(nodeset).items()))


def worker_labels(nodeset: NodeSet) -> dict[str, str]:
    """The labels of every object of a NodeSet."""
    return {**selector(nodeset.meta.name), COMPONENT: "worker", CLUSTER: nodeset.spec.controller_ref.name}


def inherited(annotations: Mapping[str, str]) -> dict[str, str]:
    """A resource's annotations that go to what is made of it: not the books that other tools keep on the resource."""
    return {k: v for k, v in annotations.items() if not k.startswith(_BOOKS)}


def owner(nodeset: NodeSet, *, controller: bool = True) -> dict[str, Any]:
    """The owner reference to a NodeSet; what several NodeSets share has no controller."""
    found = {"apiVersion": API_VERSION, "kind": "NodeSet", "name": nodeset.meta.name, "uid": nodeset.meta.uid}
    return {**found, **({"controller": True} if controller else {}), "blockOwnerDeletion": True}
