"""What the workers of a cluster share, and the ConfigMap of one NodeSet's sshd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from slinkytui.backend.controllers.objects import marks
from slinkytui.backend.controllers.objects.conf import sshd_config
from slinkytui.backend.controllers.objects.containers import SLURMD_PORT
from slinkytui.backend.controllers.objects.names import ssh_config, worker_budget, worker_service
from slinkytui.backend.crds.nodeset import NodeSet

NEVER_MET: Final = 2**31 - 1
"""More pods than there ever are. A budget that asks for this many, by number, lets no selected pod be evicted and looks up
nobody's replicas; `maxUnavailable: 0` counts by the owners' replicas and lets pods go in DaemonSet mode and while a
NodeSet shrinks."""


def owners(namespace: str, controller: str, nodesets: Iterable[NodeSet]) -> list[dict[str, Any]]:
    """A plain reference for each NodeSet of a Controller, by name: shared objects go with the last of them."""
    ours = [n for n in nodesets if n.meta.namespace == namespace and n.spec.controller_ref.name == controller]
    return [marks.owner(n, controller=False) for n in sorted(ours, key=lambda n: n.meta.name)]


def _meta(name: str, namespace: str, controller: str, nodesets: Iterable[NodeSet]) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "ownerReferences": owners(namespace, controller, nodesets)}


def build_worker_service(namespace: str, controller: str, nodesets: Iterable[NodeSet]) -> dict[str, Any]:
    """The headless Service that gives workers their host names, ready or not."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(worker_service(controller), namespace, controller, nodesets),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {marks.APP: marks.SLURMD, marks.CLUSTER: controller},
            "ports": [{"name": marks.SLURMD, "port": SLURMD_PORT, "targetPort": marks.SLURMD, "protocol": "TCP"}],
        },
    }


def build_worker_budget(namespace: str, controller: str, nodesets: Iterable[NodeSet]) -> dict[str, Any]:
    """The budget that keeps pods with jobs from eviction."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta(worker_budget(controller), namespace, controller, nodesets),
        "spec": {
            "minAvailable": NEVER_MET,
            "selector": {"matchLabels": {marks.POD_PROTECT: "true", marks.CLUSTER: controller}},
        },
    }


def build_ssh_config(nodeset: NodeSet) -> dict[str, Any] | None:
    """The ConfigMap with sshd_config, None without ssh."""
    if not nodeset.spec.has_ssh:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": ssh_config(nodeset.meta.name),
            "namespace": nodeset.meta.namespace,
            "labels": {**nodeset.meta.labels, **marks.worker_labels(nodeset)},
            "annotations": marks.inherited(nodeset.meta.annotations),
            "ownerReferences": [marks.owner(nodeset)],
        },
        "immutable": False,
        "data": {"sshd_config": sshd_config(nodeset)},
    }
