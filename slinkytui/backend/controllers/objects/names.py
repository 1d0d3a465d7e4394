"""Names: of pods, their hosts, the Slurm nodes that they register as, their claims, and of what a cluster's workers share."""

from __future__ import annotations

import re
from typing import Final

_ORDINAL: Final = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL)
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LIMIT: Final = 2**31
LONGEST_HOST: Final = 63


def padded(ordinal: int, padding: int) -> str:
    """The ordinal with zeros up to `padding` digits."""
    return str(ordinal).zfill(padding)


def pod_name(nodeset: str, ordinal: int, padding: int) -> str:
    return f"{nodeset}-{padded(ordinal, padding)}"


def split_name(name: str) -> tuple[str, int]:
    """A pod's name as (NodeSet, ordinal): ("", -1) without an ordinal, -1 for one beyond 32 bits."""
    found = _ORDINAL.fullmatch(name)
    if not found:
        return "", -1
    return found[1], int(found[2]) if int(found[2]) < _LIMIT else -1


def host_of_ordinal(prefix: str, nodeset: str, ordinal: int, padding: int) -> str:
    """`prefix` is the template's hostname: it stands before the padded ordinal. Without one the pod's name."""
    return f"{prefix}{padded(ordinal, padding)}" if prefix else pod_name(nodeset, ordinal, padding)


def host_on_node(node: str, override: str = "", prefix: str = "") -> str:
    """The host name of the daemon pod on a Kubernetes node: the node's override, else its name up to the first dot behind
    the NodeSet's prefix."""
    return override or (f"{prefix}{node.partition('.')[0]}" if node else "")


def host_problem(host: str) -> str:
    """Why no pod can have this host name, or ""."""
    if len(host) > LONGEST_HOST:
        return f"host name {host} has more than {LONGEST_HOST} letters"
    return "" if _HOST.fullmatch(host) else f"host name {host!r} is no DNS label"


def claim_name(template: str, nodeset: str, identity: str) -> str:
    """`identity` is the padded ordinal, in DaemonSet mode the pod's host name."""
    return f"{template}-{nodeset}-{identity}"


def worker_service(controller: str) -> str:
    """The headless Service of all workers of a Controller."""
    return f"slurm-workers-{controller}"


def worker_budget(controller: str) -> str:
    return f"slurm-workers-pdb-{controller}"


def ssh_config(nodeset: str) -> str:
    """The ConfigMap with sshd_config."""
    return f"{nodeset}-ssh-config"


def search_domain(controller: str, namespace: str, domain: str) -> str:
    """Where the workers' host names resolve."""
    return f"{worker_service(controller)}.{namespace}.svc.{domain}"


def cluster_domain(resolv_conf: str) -> str:
    """The cluster's domain by the text of a pod's resolv.conf, cluster.local if it does not say."""
    for line in resolv_conf.splitlines():
        words = line.split()
        if words[:1] == ["search"]:
            for entry in words[1:]:
                if entry.startswith("svc.") and len(entry) > 4:
                    return entry.removeprefix("svc.").rstrip(".")
    return "cluster.local"
