"""Scale of a NodeSet: which pods would leave, in the operator's order, and what runs on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from slinkytui.backend.actions.registry import Scene, digest, last_end, unique
from slinkytui.backend.errors import NotFound, UsageError
from slinkytui.backend.fleet.facts import CORDON
from slinkytui.backend.models import Ask, Blast, FleetNode, FleetNodeSet, Key, Plan, PlanLine, Pod, Step, Table
from slinkytui.backend.slurm.states import node_word

COST = "nodeset.slinky.slurm.net/pod-deletion-cost"
DEADLINE = "nodeset.slinky.slurm.net/pod-deadline"
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})
_COST = re.compile(r"-?(?:0|[1-9][0-9]*)")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True)
class Worker:
    """A pod of the NodeSet and its Slurm node, when it has one."""

    pod: Pod
    node: FleetNode | None


def leave_order(pods: list[Pod]) -> list[Pod]:
    """The order in which pods leave at a scale-in: the first differing key of upstream's nine decides."""
    return sorted(pods, key=_rank)


def _rank(pod: Pod) -> tuple[float, ...]:
    notes = dict(pod.meta.annotations)
    ready = next((c for c in pod.conditions if c.type == "Ready" and c.status == "True"), None)
    return (
        1.0 if pod.node else 0.0,
        {"Unknown": 1.0, "Running": 2.0}.get(pod.phase, 0.0),
        1.0 if ready else 0.0,
        float(deletion_cost(notes.get(COST, ""))),
        deadline(notes.get(DEADLINE, "")),
        0.0 if notes.get(CORDON, "") in _TRUE else 1.0,
        -float(ordinal(pod.id.name)),
        -float(ready.since) if ready and ready.since else float("-inf"),
        -float(pod.meta.created) if pod.meta.created else float("-inf"),
    )


def deletion_cost(text: str) -> int:
    """An int32; anything else, a leading plus or zeros is 0."""
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def deadline(text: str) -> float:
    """Unix seconds of an RFC 3339 text; absent or unreadable is the earliest, so that idle pods go before busy ones."""
    try:
        return datetime.fromisoformat(text).timestamp() if _RFC3339.fullmatch(text) else float("-inf")
    except ValueError:
        return float("-inf")


def ordinal(name: str) -> int:
    found = re.search(r"-(\d+)$", name)
    return int(found[1]) if found and int(found[1]) < 2**31 else -1


def plan_scale(ask: Ask, scene: Scene) -> Plan:
    """Scaling in drains first and deletes only drained pods; no job is killed by it."""
    found = scene.nodeset(ask)
    want = _replicas(ask.settings.get("replicas", ""))
    spec = found.nodeset
    if spec.scaling_mode == "DaemonSet":
        raise UsageError(f"nodeset {found.id.name} is in DaemonSet mode: its size follows the Kubernetes nodes")
    have = spec.replicas if spec.replicas is not None else 1
    workers = _workers(found, scene)
    extra = max(0, len(workers) - want) if want < have else 0
    by_pod = {w.pod.id: w for w in workers}
    leaving = [by_pod[p.id] for p in leave_order([w.pod for w in workers])[:extra]]
    step = Step(
        f"nodeset/{found.id}", f"set replicas of {found.id.name} to {want}",
        f"PATCH /apis/slinky.slurm.net/v1beta1/namespaces/{found.id.namespace}/nodesets/{found.id.name}/scale",
        f'{{"metadata":{{"resourceVersion":"{spec.meta.version}"}},"spec":{{"replicas":{want}}}}}',
    )  # fmt: skip
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
    summary = f"{extra} of {len(workers)} pods leave" if extra else f"{max(0, want - have)} pods more"
    return Plan(
        ask=ask, title=f"Scale {found.id.name} from {have} to {want}", summary=summary, steps=(step,),
        blast=Blast(len(nodes), len(leaving), None if hidden else len(jobs), 0, unique(j.user for j in jobs),
                    None if any(g is None for g in gpus) else sum(g or 0 for g in gpus),
                    "at a time that is not known" if hidden else last_end(jobs)),
        hash=digest(ask.verb, want, found.id, spec.meta.uid, spec.replicas, [w.pod.id for w in leaving], [j.id for j in jobs]),
        made=scene.now, headers=("POD", "NODE", "STATE", "JOBS"), rows=tuple(_line(w) for w in leaving),
        notes=("the list is a forecast: the operator of this cluster chooses when it acts",) if leaving else (),
        warnings=tuple(warnings), command=f"kubectl -n {found.id.namespace} scale nodeset/{found.id.name} --replicas={want}",
        inverse="nodeset.scale", back={"replicas": str(have)}, confirm_count=len(leaving) if len(leaving) >= 10 else 0,
        refused="nothing to do: it has this size" if want == have else "", go=f"Scale to {want}",
    )  # fmt: skip


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
