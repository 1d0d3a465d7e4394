"""What the clients saw, as one frozen look for the join. Unknown sources are said, not read as empty."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slinkytui.backend.models import (
    Controller,
    Job,
    JobId,
    Key,
    KubeNode,
    NodeId,
    NodeSet,
    Pod,
    SlurmNode,
    Source,
)
from slinkytui.backend.slurm.gres import GPU, parse_gres
from slinkytui.backend.slurm.hostlist import HostlistError, expand
from slinkytui.backend.slurm.states import holds_node

CORDON = "nodeset.slinky.slurm.net/pod-cordon"
SCALING_MODE = "nodeset.slinky.slurm.net/scaling-mode"


@dataclass(frozen=True)
class Facts:
    """`quiet` names the sources that do not answer now ("kubernetes/pods"); their rows are old, not gone."""

    nodes: Mapping[NodeId, SlurmNode] = field(default_factory=dict)
    jobs: Mapping[JobId, Job] = field(default_factory=dict)
    pods: Mapping[Key, Pod] = field(default_factory=dict)
    kubenodes: Mapping[Key, KubeNode] = field(default_factory=dict)
    nodesets: Mapping[Key, NodeSet] = field(default_factory=dict)
    controllers: Mapping[Key, Controller] = field(default_factory=dict)
    sources: Mapping[Key, Source] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Rows that a join looks at."""
        return len(self.nodes) + len(self.jobs) + len(self.pods)

    def held(self) -> Facts:
        """The same facts, which stay as they are while the clients go on."""
        return Facts(
            dict(self.nodes), dict(self.jobs), dict(self.pods), dict(self.kubenodes), dict(self.nodesets),
            dict(self.controllers), dict(self.sources), self.clusters,
        )  # fmt: skip

    def live(self, name: str) -> bool:
        """Whether a source answers now; a source that was never heard of does not."""
        source = self.sources.get(Key("", name))
        return source is not None and source.state == "live"

    def cluster_of(self, nodeset: NodeSet) -> str:
        """The Slurm cluster of a NodeSet: its Controller's, or the only one there is."""
        controller = self.controllers.get(nodeset.controller)
        if controller is not None:
            return controller.cluster_name
        return self.clusters[0] if len(self.clusters) == 1 else ""


@dataclass(frozen=True)
class Placement:
    """A job on a node: `devices` are its GPU indexes there, None where Slurm gives none, `gpus` how many."""

    job: Job
    gpus: int = 0
    devices: tuple[int, ...] | None = None


def place(jobs: Iterable[Job]) -> dict[NodeId, list[Placement]]:
    """Which jobs hold which nodes. A node list that cannot be read places nothing (the node itself says it is busy)."""
    out: dict[NodeId, list[Placement]] = defaultdict(list)
    for job in jobs:
        if not job.nodes or not holds_node(job.states):
            continue
        try:
            hosts = expand(job.nodes, limit=100_000)
        except HostlistError:
            continue
        for at, host in enumerate(hosts):
            detail = job.gres_detail[at] if at < len(job.gres_detail) else ""
            out[NodeId(job.id.cluster, host)].append(_placement(job, detail, len(hosts)))
    return out


def _placement(job: Job, detail: str, hosts: int) -> Placement:
    try:
        entries = [e for e in parse_gres(detail) if e.name == GPU]
    except ValueError:
        entries = []
    if not entries:
        return Placement(job, (job.gpus or 0) // hosts)
    indices = [i for e in entries for i in e.indices or ()]
    return Placement(job, sum(e.count for e in entries), tuple(indices) if indices else None)


def node_name(pod: Pod, mode: str) -> str:
    """The Slurm node name that a worker pod registers under ("" while it is not known). On its host's network that is the
    machine's name, which slurmd cuts at its first dot."""
    if mode == "StatefulSet":
        return pod.node.partition(".")[0] if pod.host_network else pod.hostname or pod.id.name
    return pod.hostname


def pod_of_comment(comment: str) -> Key | None:
    """The pod that the operator wrote into a Slurm node's comment."""
    if not comment.startswith("{"):
        return None
    try:
        found = json.loads(comment)
    except (ValueError, RecursionError):
        return None
    namespace, name = (found.get("namespace"), found.get("podName")) if isinstance(found, dict) else (None, None)
    return Key(namespace, name) if isinstance(namespace, str) and isinstance(name, str) and name else None


@dataclass(frozen=True)
class Match:
    """Worker pods by Slurm node and how they were found; `loose` are workers without a Slurm node."""

    by_node: dict[NodeId, tuple[Pod, NodeSet, str]]
    loose: dict[NodeId, tuple[Pod, NodeSet, str]]
    unclear: dict[NodeId, str]


def match(facts: Facts) -> Match:
    """Join over the recorded link (comment) first, then over the name that the pod registers under; never by prefix.

    Two pods that claim one node are shown as unmatched on both sides, unless the comment decides.
    """
    by_uid = {n.meta.uid: n for n in facts.nodesets.values()}
    recorded = {i: key for i, n in facts.nodes.items() if (key := pod_of_comment(n.comment)) is not None}
    claims: dict[NodeId, list[tuple[Pod, NodeSet]]] = defaultdict(list)
    for pod in facts.pods.values():
        nodeset = by_uid.get(pod.meta.owner_uid) if pod.meta.owner_kind == "NodeSet" else None
        if nodeset is None:
            continue
        mode = dict(pod.meta.labels).get(SCALING_MODE, nodeset.scaling_mode)
        name = node_name(pod, mode)
        if name:
            claims[NodeId(facts.cluster_of(nodeset), name)].append((pod, nodeset))
    by_node: dict[NodeId, tuple[Pod, NodeSet, str]] = {}
    loose: dict[NodeId, tuple[Pod, NodeSet, str]] = {}
    unclear: dict[NodeId, str] = {}
    for node_id, found in claims.items():
        chosen = [c for c in found if c[0].id == recorded.get(node_id)]
        alive = chosen or [c for c in found if c[0].meta.deleted is None] or found
        if len(alive) > 1:
            unclear[node_id] = f"{len(alive)} pods claim it: {', '.join(str(p.id) for p, _ in alive[:3])}"
            continue
        pod, nodeset = alive[0]
        how = "comment" if chosen else "host network" if pod.host_network else "hostname"
        (by_node if node_id in facts.nodes else loose)[node_id] = (pod, nodeset, how)
    return Match(by_node, loose, unclear)
