"""Joins both worlds: NodeSet ▸ pod ▸ Slurm node ▸ GPU ▸ job, and where they disagree. Pure, but for the memory of
since when something is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinkytui.backend.fleet.facts import CORDON, Facts, Match, Placement, match, place
from slinkytui.backend.models import (
    FleetNode,
    FleetNodeSet,
    Gpu,
    GpuId,
    Key,
    KubeNode,
    NodeId,
    NodeSet,
    Pod,
    Problem,
    Severity,
    SlurmNode,
    Table,
)
from slinkytui.backend.slurm.gres import GPU
from slinkytui.backend.slurm.states import is_busy, is_down, is_drain, is_drained, is_draining, is_usable, node_word

_BOTH: Final = frozenset((Table.NODES, Table.PODS, Table.KUBENODES, Table.NODESETS, Table.CONTROLLERS))
MADE_OF: Final[Mapping[Table, frozenset[Table]]] = {
    Table.NODES: _BOTH,
    Table.NODESETS: _BOTH,
    Table.GPUS: _BOTH | {Table.JOBS},
    Table.PROBLEMS: frozenset(Table),
    Table.DECISIONS: frozenset(Table),
}
"""What joined rows are made of. Jobs on nodes and NodeSets are named by the columns that show them: they are by far the
largest table."""


@dataclass(frozen=True)
class Picture:
    nodes: list[FleetNode] = field(default_factory=list)
    nodesets: list[FleetNodeSet] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def join(facts: Facts, now: float, since: dict[str, float]) -> Picture:
    """The picture now. `since` remembers when each problem was first seen and is brought up to date."""
    placed, matched = place(facts.jobs.values()), match(facts)
    both = facts.live("kubernetes/pods")
    seen: dict[str, float] = {}

    def first_seen(key: str) -> float:
        return seen.setdefault(key, since.get(key, now))

    nodes = [_node(facts, i, n, matched, placed, both, first_seen) for i, n in facts.nodes.items()]
    nodes += [_loose(facts, i, pod, ns, how, both, first_seen) for i, (pod, ns, how) in matched.loose.items()]
    nodesets = _nodesets(facts, nodes)
    problems = _problems(facts, nodes, first_seen)
    since.clear()
    since.update(seen)
    return Picture(nodes, nodesets, problems)


def _kube_side(facts: Facts, pod: Pod | None) -> tuple[str, int | None, bool | None, bool | None, str]:
    """The Kubernetes side in a word or two, since when, pod ready, cordoned, node name."""
    if pod is None:
        return "", None, None, None, ""
    ready = next((c for c in pod.conditions if c.type == "Ready"), None)
    is_ready = ready.status == "True" if ready is not None else False
    knode = facts.kubenodes.get(Key("", pod.node)) if pod.node else None
    cordoned = _cordoned(pod, knode)
    if pod.meta.deleted is not None:
        return "Terminating", pod.meta.deleted, is_ready, cordoned, pod.node
    if cordoned:
        return "cordoned", None, is_ready, True, pod.node
    if is_ready:
        return "Ready", ready.since if ready else None, True, cordoned, pod.node
    word = next((c.reason for c in pod.containers if c.reason and c.state == "waiting"), "") or (
        "NotReady" if pod.phase == "Running" else pod.phase or "unknown"
    )
    return word, ready.since if ready else pod.meta.created, False, cordoned, pod.node


def _cordoned(pod: Pod, knode: KubeNode | None) -> bool | None:
    if dict(pod.meta.annotations).get(CORDON) == "true":
        return True
    return None if knode is None else knode.unschedulable


def gpu_cells(node: SlurmNode) -> tuple[int, int | None, str, str]:
    """Devices, used devices, a letter each (u used, f free, s shared, ? unknown), and the type."""
    have = [g for g in node.gres if g.name == GPU]
    total = sum(g.count for g in have)
    kind = "+".join(dict.fromkeys(g.type for g in have if g.type))
    if node.gres_used is None:
        return total, None, "?" * total, kind
    used = [g for g in node.gres_used if g.name == GPU]
    count = sum(g.count for g in used)
    indices = {i for g in used for i in g.indices or ()}
    if len(indices) == count:
        cells = ["u" if i in indices else "f" for i in range(total)]
    else:
        cells = ["u" if i < count else "f" for i in range(total)]
    for shared in (g for g in node.gres_used if g.name in ("shard", "mps")):
        for i, (taken, _) in enumerate(shared.per_device[:total]):
            if taken > 0:
                cells[i] = "s"
    return total, count, "".join(cells), kind


def _node(facts: Facts, node_id: NodeId, node: SlurmNode, matched: Match, placed: dict[NodeId, list[Placement]],
          both: bool, first_seen: Callable[[str], float]) -> FleetNode:  # fmt: skip
    pod, nodeset, how = matched.by_node.get(node_id, (None, None, ""))
    k8s, k8s_since, ready, cordoned, kubenode = _kube_side(facts, pod)
    total, used, cells, kind = gpu_cells(node)
    on_it = placed.get(node_id, [])
    # Jobs may be hidden from this token: a busy node without visible jobs has an unknown number of them.
    jobs = None if (is_busy(node.states) and not on_it) else tuple(p.job.id for p in on_it)
    unmatched = matched.unclear.get(node_id, "")
    differs = _disagreement(node, pod, ready, cordoned, unmatched, bool(facts.nodesets)) if both else ""
    return FleetNode(
        node_id, node, pod.id if pod else None, nodeset.id if nodeset else None, kubenode, k8s, k8s_since, ready, cordoned,
        pod is not None and pod.meta.deleted is not None, kind, total, used, cells, jobs,
        tuple(dict.fromkeys(p.job.user for p in on_it)), differs, first_seen(f"differs/{node_id.cluster}/{node_id.name}") if differs else None,
        how, unmatched,
    )  # fmt: skip


def _loose(
    facts: Facts, node_id: NodeId, pod: Pod, nodeset: NodeSet, how: str, both: bool, first_seen: Callable[[str], float]
) -> FleetNode:
    k8s, k8s_since, ready, cordoned, kubenode = _kube_side(facts, pod)
    known = facts.live(f"slurm/{node_id.cluster}/nodes")
    differs = "pod Ready, but Slurm does not know the node" if ready and known else ""
    return FleetNode(
        node_id, None, pod.id, nodeset.id, kubenode, k8s, k8s_since, ready, cordoned, pod.meta.deleted is not None,
        jobs=None, disagreement=differs, match=how,
        disagrees_since=first_seen(f"differs/{node_id.cluster}/{node_id.name}") if differs else None,
        unmatched="" if known else "Slurm does not answer",
    )  # fmt: skip


def _disagreement(
    node: SlurmNode, pod: Pod | None, ready: bool | None, cordoned: bool | None, unmatched: str, has_sets: bool
) -> str:
    if unmatched:
        return unmatched
    if pod is None:
        return "in Slurm, but no pod of a NodeSet carries it" if has_sets and "DYNAMIC_NORM" in node.states else ""
    if ready and is_down(node.states):
        return f"pod Ready, Slurm says {node_word(node.states)}"
    if cordoned and not is_drain(node.states):
        return "cordoned in Kubernetes, not drained in Slurm"
    if ready is False and is_usable(node.states):
        return f"pod not Ready, Slurm says {node_word(node.states)}"
    return ""


def _nodesets(facts: Facts, nodes: Sequence[FleetNode]) -> list[FleetNodeSet]:
    members: dict[Key, list[FleetNode]] = defaultdict(list)
    for node in nodes:
        if node.nodeset is not None:
            members[node.nodeset].append(node)
    return [_nodeset(facts, ns, members[ns.id]) for ns in facts.nodesets.values()]


def _nodeset(facts: Facts, ns: NodeSet, members: list[FleetNode]) -> FleetNodeSet:
    cluster = facts.cluster_of(ns)
    known = [n for n in members if n.slurm is not None]
    want = ns.replicas if ns.scaling_mode == "StatefulSet" else ns.status_desired
    have = sum(1 for n in members if n.pod is not None)
    ready = sum(1 for n in members if n.pod_ready and not n.deleting)
    if Key("", f"slurm/{cluster}/nodes") not in facts.sources:
        return FleetNodeSet(ns.id, ns, cluster, want, have, ready)
    states = [n.slurm.states for n in known if n.slurm is not None]
    jobs = {j for n in known for j in n.jobs or ()}
    free = [n for n in known if n.slurm is not None and is_usable(n.slurm.states)]
    differs = sum(1 for n in members if n.disagreement)
    total, used = sum(n.gpus_total or 0 for n in known), [n.gpus_used for n in known]
    return FleetNodeSet(
        ns.id, ns, cluster, want, have, ready, len(known), sum("IDLE" in s and is_usable(s) for s in states),
        sum("MIXED" in s and is_usable(s) for s in states), sum("ALLOCATED" in s and is_usable(s) for s in states),
        sum(is_draining(s) for s in states), sum(is_drained(s) for s in states), sum(is_down(s) for s in states),
        None if any(n.jobs is None for n in known) else len(jobs), total,
        None if any(u is None for u in used) else sum(u or 0 for u in used),
        None if any(n.gpus_used is None for n in free) else sum((n.gpus_total or 0) - (n.gpus_used or 0) for n in free),
        sum(1 for n in free if n.gpus_used == 0 and n.jobs == ()), "", "" if not differs else "1 node differs" if differs == 1 else f"{differs} nodes differ",
    )  # fmt: skip


def _problems(facts: Facts, nodes: Sequence[FleetNode], first_seen: Callable[[str], float]) -> list[Problem]:
    out: list[Problem] = []
    for source in facts.sources.values():
        if source.state in ("stale", "refused"):
            key = f"source/{source.name}"
            out.append(
                Problem(
                    key, Severity.ERROR, "source", f"{source.name}: {source.error}", first_seen(key), source=source.name
                )
            )
    for node in nodes:
        where = f"{node.id.cluster}/{node.id.name}"
        if node.disagreement:
            out.append(Problem(f"differs/{where}", Severity.WARNING, "differs", f"{node.id.name}: {node.disagreement}",
                               node.disagrees_since, node.id, node.pod, node.nodeset))  # fmt: skip
        if node.slurm is not None and is_down(node.slurm.states):
            reason = node.slurm.reason or "no reason given"
            key = f"down/{where}"
            out.append(Problem(key, Severity.ERROR, "node down", f"{node.id.name} {node_word(node.slurm.states)}: {reason}",
                               node.slurm.reason_time or first_seen(key), node.id, node.pod, node.nodeset))  # fmt: skip
    bad = {"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "OOMKilled", "Error"}
    for pod in facts.pods.values():
        reason = next((c.reason for c in pod.containers if c.reason in bad and not c.ready), "")
        if reason:
            key = f"pod/{pod.id}"
            out.append(Problem(key, Severity.ERROR, "pod", f"pod {pod.id}: {reason}", first_seen(key), pod=pod.id))
    return out


def gpu_rows(nodes: Sequence[FleetNode], placed: dict[NodeId, list[Placement]]) -> list[Gpu]:
    """One row a device. Where Slurm gives no index, devices are given to jobs by count and marked so."""
    return [gpu for node in nodes for gpu in _gpus(node, placed.get(node.id, []))]


def _gpus(node: FleetNode, on_it: list[Placement]) -> list[Gpu]:
    if node.slurm is None or not node.gpus_total:
        return []
    owner: dict[int, tuple[Placement, bool]] = {}
    for placement in on_it:
        for device in placement.devices or ():
            owner[device] = (placement, False)
    for placement in on_it:
        if placement.devices is None:
            free = [i for i in range(node.gpus_total) if i not in owner][: placement.gpus]
            owner.update(dict.fromkeys(free, (placement, True)))
    states = node.slurm.states
    types = [g.type for g in node.slurm.gres if g.name == GPU for _ in range(g.count)]
    word = node_word(states)
    rows = []
    for device, cell in enumerate(node.gpu_cells):
        found = owner.get(device)
        state = {"u": "used", "f": "free", "s": "shared"}.get(cell, "unknown")
        if found is not None:
            state = "used"
        elif state == "free" and is_down(states):
            state = "down"
        elif state == "free" and is_drain(states):
            state = "drained"
        rows.append(Gpu(
            GpuId(node.id.cluster, node.id.name, device), types[device] if device < len(types) else "", state,
            found[0].job.id if found else None, found[0].job.user if found else "", found[1] if found else False,
            node.nodeset, word,
        ))  # fmt: skip
    return rows
