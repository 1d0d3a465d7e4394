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
ROLL: Final = "tui.slinky.slurm.net/roll-on-config"
"""On a NodeSet, "true": workers with another sshd_config or sssd.conf than is wanted now are updated like those of an old
revision."""
HOST_PREFIX: Final = "tui.slinky.slurm.net/hostname-prefix"
"""On a NodeSet in DaemonSet mode: what stands before the host names of its workers, so that two NodeSets on one machine, or
machines whose names begin alike, do not share a Slurm node."""
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


def host_prefix(nodeset: NodeSet) -> str:
    """What stands before the host names of daemon pods. On their hosts' network they have the machines' own names."""
    return "" if nodeset.spec.host_network else nodeset.meta.annotations.get(HOST_PREFIX, "")


def inherited(annotations: Mapping[str, str]) -> dict[str, str]:
    """A resource's annotations that go to what is made of it: not the books that other tools keep on the resource."""
    return {k: v for k, v in annotations.items() if not k.startswith(_BOOKS)}


def owner(nodeset: NodeSet, *, controller: bool = True) -> dict[str, Any]:
    """The owner reference to a NodeSet; what several NodeSets share has no controller."""
    return owner_named(nodeset.meta.name, nodeset.meta.uid, controller=controller)


def owner_named(name: str, uid: str, *, controller: bool = True) -> dict[str, Any]:
    """The same by the NodeSet's name and UID."""
    found = {"apiVersion": API_VERSION, "kind": "NodeSet", "name": name, "uid": uid}
    return {**found, **({"controller": True} if controller else {}), "blockOwnerDeletion": True}
