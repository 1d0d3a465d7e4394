"""The worker pod."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slinkytui.backend.controllers.objects import marks, merge
from slinkytui.backend.controllers.objects.claims import with_claims
from slinkytui.backend.controllers.objects.conf import (
    projected,
    ssh_volumes,
    sshd_config,
    with_topology,
)
from slinkytui.backend.controllers.objects.containers import logfile, slurmd
from slinkytui.backend.controllers.objects.names import (
    host_of_ordinal,
    host_on_node,
    host_problem,
    padded,
    pod_name,
    search_domain,
    worker_service,
)
from slinkytui.backend.controllers.objects.placement import apart, on_node
from slinkytui.backend.crds.controller import Controller
from slinkytui.backend.crds.nodeset import NodeSet


class Unbuildable(ValueError):
    """No worker pod can be made of this; the text says why."""


@dataclass(frozen=True, slots=True)
class OnNode:
    """The place of a daemon pod: a Kubernetes node and its annotations."""

    name: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a worker needs from elsewhere. `sssd` is the SHA-256 of sssd.conf, "" while its Secret is away; `pin` the node
    that the ordinal is pinned to."""

    domain: str = "cluster.local"
    sssd: str = ""
    flat: bool = False
    """Whether it is known that no machine has a topology."""
    pin: str = ""


def host_of(nodeset: NodeSet, place: OnNode) -> str:
    """The host name of the daemon pod at a place."""
    override = place.annotations.get(marks.HOSTNAME_OVERRIDE, "")
    return host_on_node(place.name, override, marks.host_prefix(nodeset))


def build_worker(
    nodeset: NodeSet, controller: Controller, place: int | OnNode, revision_hash: str, extras: Extras
) -> dict[str, Any]:
    """The pod for an ordinal (StatefulSet mode) or a node (DaemonSet mode), ready to be created. Raises Unbuildable."""
    return placed(nodeset, build_template(nodeset, controller, extras), place, revision_hash, extras.pin)


def placed(
    nodeset: NodeSet, template: Mapping[str, Any], place: int | OnNode, revision_hash: str, pin: str = ""
) -> dict[str, Any]:
    """One pod of a template; many of them share its parts, and nobody writes into them. Raises Unbuildable."""
    name, padding = nodeset.meta.name, nodeset.spec.ordinal_padding
    host = (
        host_of(nodeset, place)
        if isinstance(place, OnNode)
        else host_of_ordinal(nodeset.spec.host_prefix, name, place, padding)
    )
    problem = host_problem(host)
    if problem:
        raise Unbuildable(problem)
    meta: dict[str, Any] = {**template["metadata"], "generateName": f"{name}-"}
    spec: dict[str, Any] = {k: v for k, v in template["spec"].items() if k != "nodeName"}
    affinity: Mapping[str, Any] = spec.get("affinity") or {}
    if not nodeset.spec.oversubscribe_node:
        affinity = apart(affinity)
    if isinstance(place, OnNode):
        identity = host
        labels = {marks.POD_NAME: "", marks.SCALING_MODE: "DaemonSet"}
        topology = place.annotations.get(marks.TOPOLOGY, "")
        meta["annotations"] = {**meta["annotations"], marks.TOPOLOGY: topology}
        affinity = on_node(affinity, place.name)
        spec["containers"] = _with_topology(spec["containers"], topology)
    else:
        identity = padded(place, padding)
        meta["name"] = pod_name(name, place, padding)
        labels = {marks.POD_NAME: meta["name"], marks.POD_INDEX: identity, marks.SCALING_MODE: "StatefulSet"}
        if pin and nodeset.spec.pin_to_node:
            affinity = on_node(affinity, pin)
    if revision_hash:
        labels[marks.HASH] = revision_hash
    meta["labels"] = {**meta["labels"], **labels, marks.POD_HOSTNAME: host}
    spec["hostname"] = host
    spec["volumes"] = with_claims(nodeset, identity, spec["volumes"])
    if affinity:
        spec["affinity"] = affinity
    return {**template, "metadata": meta, "spec": spec}


def _with_topology(containers: list[dict[str, Any]], topology: str) -> list[dict[str, Any]]:
    """With slurmd's arguments for a machine of this topology, "" for none."""
    main, *others = containers
    return [{**main, "args": with_topology(main["args"], topology)}, *others]


def build_template(nodeset: NodeSet, controller: Controller, extras: Extras) -> dict[str, Any]:
    """What all workers of a NodeSet have in common. Raises Unbuildable."""
    key = controller.spec.slurm_key_ref
    if key is None or not key.name:
        raise Unbuildable(f"Controller {controller.meta.name} has no slurmKeyRef; a worker needs the cluster's key")
    template = nodeset.spec.template
    service = worker_service(nodeset.spec.controller_ref.name)
    files, _ = ssh_volumes(nodeset)
    base = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "subdomain": service,
        "dnsConfig": {
            "searches": [search_domain(nodeset.spec.controller_ref.name, nodeset.meta.namespace, extras.domain)]
        },
        "tolerations": [{"key": marks.WORKER_TAINT, "operator": "Equal", "effect": "NoExecute"}],
        "initContainers": [merge.container(logfile(), nodeset.spec.logfile)],
        "containers": [merge.container(slurmd(nodeset, controller.conf_server), nodeset.spec.slurmd)],
        "volumes": [
            projected("slurm-etc", {"secret": {"name": key.name, "items": [{"key": key.key, "path": "slurm.key"}]}}),
            {"name": "slurm-logfile", "emptyDir": {"medium": "Memory"}},
            *files,
        ],
    }
    annotations = {
        **marks.inherited(nodeset.meta.annotations),
        **template["metadata"].get("annotations", {}),
        **config_hashes(nodeset, extras),
        marks.DEFAULT_CONTAINER: marks.SLURMD,
    }
    labels = {**nodeset.meta.labels, **template["metadata"].get("labels", {}), **marks.worker_labels(nodeset)}
    spec = merge.pod_spec(base, template["spec"])
    if extras.flat:
        spec["containers"] = _with_topology(spec["containers"], "")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": nodeset.meta.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [marks.owner(nodeset)],
        },
        "spec": spec,
    }


def config_hashes(nodeset: NodeSet, extras: Extras) -> dict[str, str]:
    """Annotations with the SHA-256 of the ssh files as they are wanted; of nothing where there is none."""
    return {
        marks.SSHD_HASH: hashlib.sha256(sshd_config(nodeset).encode()).hexdigest(),
        marks.SSSD_HASH: (extras.sssd if nodeset.spec.has_ssh else "") or hashlib.sha256(b"").hexdigest(),
    }
