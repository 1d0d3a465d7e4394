"""Worlds written small: pods, nodes, Slurm records and jobs for tables of cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slinkytui.backend.controllers.nodeset.decision import Decision
from slinkytui.backend.controllers.nodeset.world import (
    CAUSES,
    CORDON,
    HASH,
    MODE,
    POD_HOSTNAME,
    POD_INDEX,
    POD_NAME,
    SlurmSide,
    Spec,
    World,
)
from slinkytui.backend.models import Condition, ContainerState, Job, JobId, Key, KubeNode, Meta, NodeId, Pod, SlurmNode

NOW = 1_800_000_000.0
SET = Key("slurm", "gpu")
HASH_NOW = "new"


def pairs(found: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(found.items()))


def pod(
    at: int | str, *, node: str | None = None, ready: bool = True, phase: str = "Running", hash: str = HASH_NOW, cost: str = "",
    cordon: bool = False, causes: str = "", notes: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None,
    deleted: bool = False, mode: str = "StatefulSet", created: float = NOW - 9_000, conditions: Iterable[Condition] = (),
    started: bool = True, pinned: str = "", host: str = "", drop_labels: Iterable[str] = (), ready_since: float | None = None,
) -> Pod:  # fmt: skip
    """A worker `gpu-<at>` on node `n<at>`, whose Slurm name is its own."""
    name = f"gpu-{at}"
    annotations = dict(notes or {})
    if cost:
        annotations["nodeset.slinky.slurm.net/pod-deletion-cost"] = cost
    if cordon:
        annotations[CORDON] = "true"
    if causes:
        annotations[CAUSES] = causes
    marks = {HASH: hash, MODE: mode, POD_NAME: name, POD_HOSTNAME: host or name, **(labels or {})}
    if mode == "StatefulSet":
        marks[POD_INDEX] = str(at)
    for drop in drop_labels:
        marks.pop(drop)
    since = ready_since if ready_since is not None else created + 60
    states = [Condition("Ready", "True" if ready else "False", since=int(since)), *conditions]
    container = ContainerState("slurmd", ready, 0, "running" if started else "waiting")
    return Pod(
        SET._replace(name=name), Meta(f"uid-{name}", "7", created=int(created), deleted=int(NOW) if deleted else None, labels=pairs(marks),
                                      annotations=pairs(annotations), owner_kind="NodeSet", owner_name="gpu", owner_uid="set"),
        phase, node=f"n{at}" if node is None else node, hostname=host or name, conditions=tuple(states), containers=(container,),
        pinned=pinned,
    )  # fmt: skip


def kube(name: str, *, cordoned: bool = False, taints: tuple[str, ...] = (), notes: Mapping[str, str] | None = None,
         labels: Mapping[str, str] | None = None, conditions: tuple[Condition, ...] = ()) -> KubeNode:  # fmt: skip
    meta = Meta(name, "1", labels=pairs(labels or {}), annotations=pairs(notes or {}))
    if cordoned:
        taints = (*taints, "node.kubernetes.io/unschedulable:NoSchedule")
    return KubeNode(Key("", name), meta, cordoned, taints, conditions)


def info(at: int | str, node: str | None = None) -> str:
    where = f"n{at}" if node is None else node
    return f'{{"namespace":"slurm","podName":"gpu-{at}","node":"{where}","nodeSetName":"gpu","nodeSetUID":"set"}}'


def record(
    at: int | str, *states: str, reason: str = "", comment: str | None = None, time: float = NOW - 100, **more: Any
) -> SlurmNode:
    name = f"gpu-{at}"
    return SlurmNode(NodeId("c", name), states or ("IDLE", "DYNAMIC_NORM"), reason, reason_time=int(time),
                     comment=info(at) if comment is None else comment, **more)  # fmt: skip


def job(number: int, *states: str, nodes: str = "", limit_min: float | None = 60.0) -> Job:
    return Job(
        JobId("c", number),
        number,
        states or ("RUNNING",),
        user="ada",
        nodes=nodes,
        start_time=int(NOW - 600),
        time_limit_min=limit_min,
    )


def slurm(
    *records: SlurmNode, jobs: Mapping[int | str, tuple[Job, ...]] | None = None, why: str = "", **more: Any
) -> SlurmSide:
    held = {f"gpu-{at}": found for at, found in (jobs or {}).items()}
    return SlurmSide(cluster="c", nodes={r.id.name: r for r in records}, jobs=held, why=why, listed=NOW, **more)


def world(
    *pods: Pod,
    replicas: int | None = None,
    slurm_side: SlurmSide | None = None,
    nodes: Iterable[KubeNode] = (),
    **more: Any,
) -> World:
    """A NodeSet `gpu` whose pods stand on nodes of their own and are idle in Slurm, unless said otherwise."""
    spec = more.pop("spec", {})
    side = slurm_side or slurm(*(record(p.id.name.removeprefix("gpu-")) for p in pods))
    there = {n.id.name: n for n in nodes}
    for one in pods:
        if one.node:
            there.setdefault(one.node, kube(one.node))
    settled = Spec(replicas=len(pods) if replicas is None else replicas, **spec)
    more.setdefault("finalizers", ("tui.slinky.slurm.net/drain",))
    return World(
        key=SET, uid="set", generation=3, spec=settled, pods=pods, nodes=there, update_hash=HASH_NOW, slurm=side, **more
    )


def did(decision: Decision) -> list[str]:
    """The effects of a decision in short words, those on conditions, comments and status left out."""
    out: list[str] = []
    for effect in decision.effects:
        kind = type(effect).__name__
        match kind:
            case "CreatePod":
                out.append(f"create {effect.slot}")  # type: ignore[union-attr]
            case "PatchPod":
                cut = {k.split("/")[-1]: v for k, v in {**effect.annotations, **effect.labels}.items()}  # type: ignore[union-attr]
                words = ",".join(f"{k}={'…' if k == 'causes' and v else v}" for k, v in sorted(cut.items()))
                out.append(f"mark {effect.pod.id.name} {words}")  # type: ignore[union-attr]
            case "Drain":
                out.append(f"drain {effect.node}: {effect.reason}")  # type: ignore[union-attr]
            case "Undrain":
                out.append(f"undrain {effect.node}")  # type: ignore[union-attr]
            case "DeletePod":
                out.append(f"delete {effect.pod.id.name}")  # type: ignore[union-attr]
            case "DeleteRecord":
                out.append(f"forget {effect.node}")  # type: ignore[union-attr]
            case "UpdateNode":
                out.append(f"update {effect.node} {sorted(effect.body)}")  # type: ignore[union-attr]
            case "Finalizers":
                out.append(f"finalizers {','.join(effect.names)}")  # type: ignore[union-attr]
            case _:
                continue
    return out
