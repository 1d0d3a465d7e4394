"""Scale of a NodeSet: which pods leave, by the operator's own choice over the present picture, and what runs on them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from slinkytui.backend.actions.registry import Scene, digest, last_end, unique
from slinkytui.backend.controllers.nodeset.causes import Cause, Record, merge, read_record
from slinkytui.backend.controllers.nodeset.choose import choose, scale_in_order
from slinkytui.backend.controllers.nodeset.world import CAUSES, SlurmSide, Spec, Strategy, World
from slinkytui.backend.errors import NotFound, UsageError
from slinkytui.backend.models import (
    Ask,
    Blast,
    FleetNode,
    FleetNodeSet,
    Key,
    KubeNode,
    Operator,
    Plan,
    PlanLine,
    Pod,
    Step,
    Table,
)
from slinkytui.backend.slurm.states import node_word


@dataclass(frozen=True)
class Worker:
    """A pod of the NodeSet and its Slurm node, when it has one."""

    pod: Pod
    node: FleetNode | None


def plan_scale(ask: Ask, scene: Scene) -> Plan:
    """Scaling in drains first and deletes only drained pods; no job is killed by it.

    Where our operator runs, the chosen pods are marked before the size changes, and it takes exactly those.
    """
    found = scene.nodeset(ask)
    want = _replicas(ask.settings.get("replicas", ""))
    spec = found.nodeset
    if spec.scaling_mode == "DaemonSet":
        raise UsageError(f"nodeset {found.id.name} is in DaemonSet mode: its size follows the Kubernetes nodes")
    have = spec.replicas if spec.replicas is not None else 1
    workers = _workers(found, scene)
    leaving = _leaving(found, workers, want, scene) if want < have else []
    nodes = [w.node for w in leaving if w.node is not None]
    hidden = any(w.node is None or w.node.jobs is None for w in leaving)
    jobs = scene.jobs_on(nodes)
    warnings = [
        f"job {j.id} has no time limit: its node may stay for ever" for j in jobs if j.time_limit_min == float("inf")
    ]
    warnings += [
        f"{w.pod.id.name}: what runs on it is not known" for w in leaving if w.node is None or w.node.jobs is None
    ]
    gpus = [n.gpus_total for n in nodes]
    summary = f"{len(leaving)} of {len(workers)} pods leave" if leaving else f"{max(0, want - have)} pods more"
    ours = _ours(scene)
    hashed = digest(
        ask.verb, want, found.id, spec.meta.uid, spec.replicas, [w.pod.id for w in leaving], [j.id for j in jobs], ours
    )
    scale = Step(
        f"nodeset/{found.id}", f"set replicas of {found.id.name} to {want}",
        f"PATCH /apis/slinky.slurm.net/v1beta1/namespaces/{found.id.namespace}/nodesets/{found.id.name}/scale",
        f'{{"metadata":{{"resourceVersion":"{spec.meta.version}"}},"spec":{{"replicas":{want}}}}}',
    )  # fmt: skip
    marks = tuple(_mark(w.pod, hashed, scene.now) for w in leaving) if ours else ()
    note = (
        "the operator takes exactly these"
        if ours
        else "the list is a forecast: the operator of this cluster chooses when it acts"
    )
    return Plan(
        ask=ask, title=f"Scale {found.id.name} from {have} to {want}", summary=summary, steps=(*marks, scale),
        blast=Blast(len(nodes), len(leaving), None if hidden else len(jobs), 0, unique(j.user for j in jobs),
                    None if any(g is None for g in gpus) else sum(g or 0 for g in gpus),
                    "at a time that is not known" if hidden else last_end(jobs)),
        hash=hashed, made=scene.now, headers=("POD", "NODE", "STATE", "JOBS"), rows=tuple(_line(w) for w in leaving),
        notes=(note,) if leaving else (),
        warnings=tuple(warnings), command=f"kubectl -n {found.id.namespace} scale nodeset/{found.id.name} --replicas={want}",
        inverse="nodeset.scale", back={"replicas": str(have)}, confirm_count=len(leaving) if len(leaving) >= 10 else 0,
        refused="nothing to do: it has this size" if want == have else "", go=f"Scale to {want}", last_waits=True,
    )  # fmt: skip


def _leaving(found: FleetNodeSet, workers: list[Worker], want: int, scene: Scene) -> list[Worker]:
    """The pods that the operator would choose for this size, in the order in which it chooses."""
    pods = tuple(w.pod for w in workers)
    nodes = {n.id.name: n for n in scene.rows(Table.KUBENODES, KubeNode)}
    slurm = {w.node.id.name: w.node.slurm for w in workers if w.node is not None and w.node.slurm is not None}
    world = World(
        key=found.id, uid=found.nodeset.meta.uid, pods=pods, nodes=nodes,
        spec=Spec(replicas=want, mode=found.nodeset.scaling_mode, strategy=Strategy.ON_DELETE, host_network=found.nodeset.host_network),
        slurm=SlurmSide(cluster=found.cluster, nodes=slurm, why=""),
    )  # fmt: skip
    records = {p.meta.uid: read_record(p) or Record() for p in pods}
    chosen = choose(world, records, scene.now).causes
    by_uid = {w.pod.meta.uid: w for w in workers}
    order = (p.meta.uid for p in scale_in_order(pods, records))
    return [by_uid[uid] for uid in order if Cause.SCALE_IN in chosen.get(uid, {})]


def _ours(scene: Scene) -> bool:
    """Whether our own operator holds the lease now."""
    return any(
        o.holder.startswith("slinkytui") and o.renewed is not None and scene.now < o.renewed + (o.duration_s or 0)
        for o in scene.rows(Table.OPERATORS, Operator)
    )


def _mark(pod: Pod, plan: str, now: float) -> Step:
    """Note on a pod that this plan chose it. The operator acts on it once the smaller size is there."""
    record = read_record(pod) or Record()
    kept = {cause: why.plan for cause, why in record.causes.items()}
    text = merge(record, {**kept, Cause.SCALE_IN: plan}, now).text()
    meta = {"uid": pod.meta.uid, "resourceVersion": pod.meta.version, "annotations": {CAUSES: text}}
    path = f"/api/v1/namespaces/{pod.id.namespace}/pods/{pod.id.name}"
    return Step(
        f"pod/{pod.id}", f"note on {pod.id.name} that it leaves", f"PATCH {path}", json.dumps({"metadata": meta})
    )


def _replicas(text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"replicas must be a whole number, not {text!r}", hint="--set replicas=N")
    return int(text)


def _workers(found: FleetNodeSet, scene: Scene) -> list[Worker]:
    if not scene.store.rows(Table.PODS) and found.have:
        raise NotFound(f"the pods of {found.id.name} are not known yet")
    by_pod: dict[Key, FleetNode] = {n.pod: n for n in scene.rows(Table.NODES, FleetNode) if n.pod is not None}
    pods = [p for p in scene.rows(Table.PODS, Pod) if p.meta.owner_uid == found.nodeset.meta.uid]
    return [Worker(p, by_pod.get(p.id)) for p in pods]


def _line(worker: Worker) -> PlanLine:
    node = worker.node
    state = node_word(node.slurm.states) if node and node.slurm else "–"
    jobs = "?" if node is None or node.jobs is None else " ".join(map(str, node.jobs[:4])) or "–"
    return PlanLine((worker.pod.id.name, node.id.name if node else "–", state, jobs))
