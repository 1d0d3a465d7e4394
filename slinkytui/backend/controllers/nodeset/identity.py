"""Who a pod is: its mode, its ordinal, the node it is for, and the Slurm node that it registers as. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from slinkytui.backend.controllers.nodeset.world import DAEMON, HOSTNAME_OVERRIDE, MODE, STATEFUL, Spec
from slinkytui.backend.fleet.facts import node_name
from slinkytui.backend.models import KubeNode, Labels, Pod

_ORDINAL: Final = re.compile(r"(.*)-([0-9]+)$")
_LIMIT: Final = 2**31


def value(pairs: Labels, name: str) -> str:
    """A label's or annotation's value, or ""."""
    return next((v for k, v in pairs if k == name), "")


def label(pod: Pod, name: str) -> str:
    return value(pod.meta.labels, name)


def note(pod: Pod, name: str) -> str:
    """An annotation's value, or ""."""
    return value(pod.meta.annotations, name)


def ordinal(name: str) -> int:
    """The number at the end of a pod's name; -1 without one or beyond 32 bits."""
    found = _ORDINAL.match(name)
    return int(found[2]) if found and int(found[2]) < _LIMIT else -1


def parent(name: str) -> str:
    found = _ORDINAL.match(name)
    return found[1] if found else ""


def padded(at: int, padding: int) -> str:
    return str(at).zfill(padding)


def mode_of(pod: Pod, nodeset: str) -> str:
    """The mode that a pod was made in. Pods from before the label are known by their name or their affinity: a
    missing label is no other mode."""
    mode = label(pod, MODE)
    if mode:
        return mode
    if pod.pinned and not (parent(pod.id.name) == nodeset and ordinal(pod.id.name) >= 0):
        return DAEMON
    return STATEFUL if parent(pod.id.name) == nodeset and ordinal(pod.id.name) >= 0 else DAEMON


def slurm_name(pod: Pod, nodeset: str) -> str:
    """The one function from a pod to its Slurm node; "" while it is not known."""
    return node_name(pod, mode_of(pod, nodeset))


def target(pod: Pod) -> str:
    """The Kubernetes node that a pod runs on or is meant for."""
    return pod.node or pod.pinned


def short(host: str) -> str:
    return host.partition(".")[0]


def daemon_host(node: KubeNode) -> str:
    """The host name of a daemon pod on a node: the override, else the node's name up to its first dot."""
    return value(node.meta.annotations, HOSTNAME_OVERRIDE) or short(node.id.name)


def pod_name(nodeset: str, at: int, padding: int) -> str:
    return f"{nodeset}-{padded(at, padding)}"


def expected_host(spec: Spec, nodeset: str, at: int) -> str:
    """The host name that the pod of an ordinal gets."""
    return f"{spec.host_prefix}{padded(at, spec.padding)}" if spec.host_prefix else pod_name(nodeset, at, spec.padding)


def collisions(pods: Iterable[Pod], nodeset: str, taken: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Slurm names that more than one live pod claims: here, or here and in another NodeSet."""
    claims: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        name = slurm_name(pod, nodeset)
        if name and pod.meta.deleted is None:
            claims[name].append(pod.id.name)
    for name in claims:
        if name in taken:
            claims[name].append(taken[name])
    return {name: tuple(sorted(who)) for name, who in claims.items() if len(who) > 1}
