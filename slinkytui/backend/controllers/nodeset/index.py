"""The facts of all clusters, arranged by what a NodeSet's pass asks for. Kept between passes; made anew when they change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from slinkytui.backend.controllers.nodeset.adoption import is_orphan_of, nodeset_name
from slinkytui.backend.controllers.nodeset.identity import label, slurm_name
from slinkytui.backend.controllers.nodeset.world import SlurmSide
from slinkytui.backend.controllers.objects.marks import CLUSTER
from slinkytui.backend.fleet.facts import place
from slinkytui.backend.models import Job, JobId, Key, NodeId, Pod, RowId, SlurmNode, Source, Table
from slinkytui.backend.slurm.hostlist import HostlistError, expand
from slinkytui.backend.slurm.states import holds_node
from slinkytui.backend.store import Store

SLINKY_OWNER: Final = "NodeSet"
_WATCHED: Final = (Table.PODS, Table.NODES, Table.JOBS)


class Index:
    """What has changed since it was asked last is made anew, once: an answer is never older than the facts."""

    def __init__(self, facts: Store) -> None:
        self._facts = facts
        self._changes = facts.watch(_WATCHED)
        self._stale: set[Table] = set(_WATCHED)
        self._by_owner: dict[str, dict[Key, Pod]] = {}
        self._names: dict[str, dict[str, tuple[Pod, str]]] = {}
        """Slurm names by namespace: the pod, and its NodeSet's name."""
        self._orphans: dict[Key, list[Pod]] = {}
        self._nodes: dict[str, dict[str, SlurmNode]] = {}
        self._jobs: dict[str, dict[str, tuple[Job, ...]]] = {}
        self._absent: dict[str, dict[str, float]] = defaultdict(dict)
        self._listed: dict[str, float] = {}

    def _follow(self) -> None:
        self._stale.update(self._changes.take())

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        self._fresh_pods()
        return tuple(self._by_owner.get(owner_uid, {}).values())

    def taken(self, namespace: str, besides_uid: str, controller: str) -> dict[str, str]:
        """Slurm names that live workers of others hold in the cluster of a Controller, with the pod's name."""
        self._fresh_pods()
        return {
            name: pod.id.name for name, (pod, _) in self._names.get(namespace, {}).items()
            if pod.meta.owner_uid != besides_uid and pod.meta.deleted is None and label(pod, CLUSTER) in ("", controller)
        }  # fmt: skip

    def orphans_of(self, nodeset: Key) -> tuple[Pod, ...]:
        """Pods of no controller that a NodeSet has made."""
        self._fresh_pods()
        return tuple(self._orphans.get(nodeset, ()))

    def nodeset_of(self, node: NodeId, clusters: Mapping[str, tuple[str, ...]]) -> list[Key]:
        """The NodeSets with a pod of this Slurm name; `clusters` gives the namespaces of each cluster."""
        self._fresh_pods()
        out = []
        for namespace in clusters.get(node.cluster, ()):
            found = self._names.get(namespace, {}).get(node.name)
            if found is not None:
                out.append(Key(namespace, found[1]))
        return out

    def _fresh_pods(self) -> None:
        self._follow()
        if Table.PODS not in self._stale:
            return
        self._stale.discard(Table.PODS)
        by_owner: dict[str, dict[Key, Pod]] = defaultdict(dict)
        names: dict[str, dict[str, tuple[Pod, str]]] = defaultdict(dict)
        orphans: dict[Key, list[Pod]] = defaultdict(list)
        for pod in self._facts.rows(Table.PODS).values():
            if not isinstance(pod, Pod):
                continue
            made_by = nodeset_name(pod)
            if pod.meta.owner_kind == SLINKY_OWNER:
                by_owner[pod.meta.owner_uid][pod.id] = pod
            elif made_by and is_orphan_of(pod, made_by):
                orphans[Key(pod.id.namespace, made_by)].append(pod)
            name = slurm_name(pod, made_by) if made_by else ""
            if name:
                names[pod.id.namespace][name] = (pod, made_by)
        self._by_owner, self._names, self._orphans = dict(by_owner), dict(names), dict(orphans)

    def slurm(self, cluster: str, *, expected: bool, why: str, wanted: Iterable[str]) -> SlurmSide:
        """A cluster as it was last seen. `why`: it has no client, for this reason; `wanted` are names that are missed."""
        self._follow()
        if Table.NODES in self._stale:
            self._stale.discard(Table.NODES)
            nodes: dict[str, dict[str, SlurmNode]] = defaultdict(dict)
            for row_id, row in self._facts.rows(Table.NODES).items():
                if isinstance(row_id, NodeId) and isinstance(row, SlurmNode):
                    nodes[row_id.cluster][row_id.name] = row
            self._nodes = dict(nodes)
        if Table.JOBS in self._stale:
            self._stale.discard(Table.JOBS)
            self._jobs = self._placed()
        listed, trouble, since = self._sources(cluster)
        mine = self._nodes.get(cluster, {})
        if listed is not None and listed != self._listed.get(cluster):
            self._listed[cluster] = listed
            held = self._absent[cluster]
            self._absent[cluster] = {n: held.get(n, listed) for n in (*held, *wanted) if n not in mine}
        else:
            for name in wanted:
                if name not in mine and listed is not None:
                    self._absent[cluster].setdefault(name, listed)
        return SlurmSide(
            cluster=cluster, nodes=mine, jobs=self._jobs.get(cluster, {}), why=why or trouble, since=since,
            absent=self._absent[cluster], expected=expected, listed=listed,
        )  # fmt: skip

    def _placed(self) -> dict[str, dict[str, tuple[Job, ...]]]:
        out: dict[str, dict[str, tuple[Job, ...]]] = defaultdict(dict)
        rows = self._facts.rows(Table.JOBS).values()
        for node, placements in place(r for r in rows if isinstance(r, Job)).items():
            out[node.cluster][node.name] = tuple(p.job for p in placements)
        return dict(out)

    def _sources(self, cluster: str) -> tuple[float | None, str, float | None]:
        """When the last whole list of nodes was read, what is wrong with the sources, and since when."""
        held = {
            t: s for t in ("nodes", "jobs")
            if isinstance(s := self._facts.get(Table.SOURCES, Key("", f"slurm/{cluster}/{t}")), Source)
        }  # fmt: skip
        for table in ("nodes", "jobs"):
            source = held.get(table)
            if source is None or source.last_success is None:
                return None, f"the {table} of Slurm cluster {cluster or '?'} have not been read yet", None
            if source.state != "live":
                return held["nodes"].last_success, f"slurm/{cluster}/{table}: {source.error}", source.last_success
            if source.error:
                # Records that could not be read: a list with holes proves nobody's absence.
                return None, "", None
        return held["nodes"].last_success, "", None


def nodes_of_jobs(facts: Store, changed: Iterable[RowId]) -> set[NodeId]:
    """The nodes of jobs that have changed."""
    out: set[NodeId] = set()
    for row_id in changed:
        job = facts.get(Table.JOBS, row_id) if isinstance(row_id, JobId) else None
        if isinstance(job, Job) and job.nodes and holds_node(job.states):
            try:
                out.update(NodeId(job.id.cluster, name) for name in expand(job.nodes, limit=100_000))
            except HostlistError:
                continue
    return out
