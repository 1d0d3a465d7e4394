"""Who a pod is: its mode, its ordinal, the node it is for, and the Slurm node that it registers as. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from slinkytui.backend.controllers.nodeset.world import (
    DAEMON,
    HASH,
    HOSTNAME_OVERRIDE,
    MODE,
    POD_HOSTNAME,
    POD_INDEX,
    POD_NAME,
    STATEFUL,
    Spec,
    World,
)
from slinkytui.backend.controllers.objects.names import host_of_ordinal, host_on_node, padded, split_name
from slinkytui.backend.fleet.facts import node_name
from slinkytui.backend.models import KubeNode, Labels, Pod


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
    return split_name(name)[1]


def is_numbered(name: str, nodeset: str) -> bool:
    """Whether a pod's name is one that a NodeSet gives to its ordinals."""
    parent, number = split_name(name)
    return parent == nodeset and number >= 0


def digits(pod: Pod) -> str:
    """The ordinal as it stands in the pod's name, with its zeros: claims are named by it."""
    return pod.id.name.rpartition("-")[2]


def mode_of(pod: Pod, nodeset: str) -> str:
    """The mode that a pod was made in: its label's, without one by what it was made like. A missing label is no other
    mode."""
    found = label(pod, MODE)
    if found in (STATEFUL, DAEMON):
        return found
    # A daemon pod's random ending may be all digits; it is then known by the one machine that it is for.
    by_chance = pod.pinned and not label(pod, POD_INDEX) and pod.hostname and not pod.hostname.endswith(digits(pod))
    return STATEFUL if is_numbered(pod.id.name, nodeset) and not by_chance else DAEMON


def slurm_name(pod: Pod, nodeset: str) -> str:
    """The one function from a pod to its Slurm node; "" while it is not known."""
    return node_name(pod, mode_of(pod, nodeset))


def is_old(pod: Pod, world: World) -> bool:
    """Whether a worker was made of something else than is wanted now."""
    return label(pod, HASH) != world.update_hash or any(note(pod, k) != v for k, v in world.config.items())


def claim_identity(pod: Pod, nodeset: str) -> str:
    """What the pod's claims are named by; "" if it cannot be known."""
    if mode_of(pod, nodeset) == STATEFUL:
        return digits(pod) if is_numbered(pod.id.name, nodeset) else ""
    return label(pod, POD_HOSTNAME) or pod.hostname


def target(pod: Pod) -> str:
    """The Kubernetes node that a pod runs on or is meant for."""
    return pod.node or pod.pinned


def daemon_host(node: KubeNode, prefix: str = "") -> str:
    """The host name of a daemon pod on a node: the override, else the node's name up to its first dot, behind the
    NodeSet's prefix."""
    return host_on_node(node.id.name, value(node.meta.annotations, HOSTNAME_OVERRIDE), prefix)


def expected_host(spec: Spec, nodeset: str, at: int) -> str:
    """The host name that the pod of an ordinal gets."""
    return host_of_ordinal(spec.host_prefix, nodeset, at, spec.padding)


def label_repairs(pod: Pod, nodeset: str) -> dict[str, str | None]:
    """The identity labels that a pod lacks or has wrong, mended in place. The padding of its name is not looked at."""
    mode = mode_of(pod, nodeset)
    wanted = {POD_NAME: pod.id.name, MODE: mode}
    if mode == STATEFUL and is_numbered(pod.id.name, nodeset) and not label(pod, POD_INDEX):
        wanted[POD_INDEX] = digits(pod)
    if pod.hostname and not label(pod, POD_HOSTNAME):
        wanted[POD_HOSTNAME] = pod.hostname
    return {k: v for k, v in wanted.items() if label(pod, k) != v}


def padding_in_use(wanted: int, names: Iterable[str], former: Iterable[int] = ()) -> int:
    """The padding that fits the ordinals in these names of pods and claims: the wanted one if it does, else one of former
    times. Another one would give new names to pods and claims, and leave the data behind."""
    known = {n.rpartition("-")[2] for n in names}
    numbers = [n for n in known if n.isascii() and n.isdigit()]
    zeros = [len(n) for n in numbers if len(n) > 1 and n.startswith("0")]
    candidates = (wanted, *former, max(zeros, default=0))
    return next((p for p in candidates if all(padded(int(n), p) == n for n in numbers)), wanted)


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
