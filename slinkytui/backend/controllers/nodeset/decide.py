"""From the world to the decision about one NodeSet. Pure: the same function plans, explains and acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from slinkytui.backend.controllers.nodeset.budget import is_healthy
from slinkytui.backend.controllers.nodeset.causes import (
    LEAVING,
    Cause,
    Record,
    adopt,
    is_older,
    is_ours,
    is_true,
    merge,
    read_record,
)
from slinkytui.backend.controllers.nodeset.choose import Choice, choose
from slinkytui.backend.controllers.nodeset.conditions import deadline_of, difference, is_occupied, wanted_conditions
from slinkytui.backend.controllers.nodeset.decision import (
    Decision,
    DeletePod,
    Drain,
    Effect,
    Finalizers,
    PatchPod,
    PatchStatus,
    PodConditions,
    Reason,
    Tell,
    Undrain,
    UpdateNode,
)
from slinkytui.backend.controllers.nodeset.drained import may_go
from slinkytui.backend.controllers.nodeset.identity import collisions, note, slurm_name
from slinkytui.backend.controllers.nodeset.reasons import drain_reason
from slinkytui.backend.controllers.nodeset.records import defunct, repair
from slinkytui.backend.controllers.nodeset.status import conditions_of, wanted_status
from slinkytui.backend.controllers.nodeset.world import (
    CAUSES,
    CORDON,
    DEADLINE,
    DRAIN_FINALIZER,
    PROTECT,
    SKIP_DRAIN,
    TOPOLOGY,
    World,
)
from slinkytui.backend.models import Pod, SlurmNode
from slinkytui.backend.slurm.states import is_down, is_drain

LOOK_S: Final = 30.0
"""Something is pending: Slurm's events wake the loop, this is for what makes no event."""
UNKNOWN_S: Final = 5.0


@dataclass
class _Parts:
    """The parts of a decision, in the order in which they are carried out."""

    creates: list[Effect] = field(default_factory=list)
    marks: dict[str, PatchPod] = field(default_factory=dict)
    drains: list[Effect] = field(default_factory=list)
    deletes: list[Effect] = field(default_factory=list)
    undrains: list[Effect] = field(default_factory=list)
    repairs: list[Effect] = field(default_factory=list)
    states: list[Effect] = field(default_factory=list)
    tells: list[Effect] = field(default_factory=list)
    why: list[Reason] = field(default_factory=list)
    going: set[str] = field(default_factory=set)
    """UIDs of pods that are deleted: nothing more is written on them."""
    hurry: bool = False
    draining: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    again: list[float] = field(default_factory=list)

    def note(self, pod: Pod, notes: Mapping[str, str | None], labels: Mapping[str, str | None] | None = None) -> None:
        """One patch a pod, whatever it says."""
        held = self.marks.get(pod.meta.uid) or PatchPod(pod)
        self.marks[pod.meta.uid] = replace(
            held, annotations={**held.annotations, **notes}, labels={**held.labels, **(labels or {})}
        )


def decide(world: World, now: float) -> Decision:
    """What to do about a NodeSet now, why, and when to look again."""
    if world.bad:
        return Decision((), (Reason("", world.bad, waits=True),))
    parts = _Parts()
    records = {p.meta.uid: _record(world, p, now) for p in world.pods}
    choice = choose(world, records, now)
    parts.creates.extend(choice.creates)
    parts.why.extend(choice.why)
    if choice.again_s is not None:
        parts.again.append(choice.again_s)
    for name, pods in collisions(world.pods, world.key.name, world.taken).items():
        parts.trouble.append(f"pods {' and '.join(pods)} share the Slurm name {name}")
    for pod in choice.ended:
        parts.deletes.append(DeletePod(pod, slurm_name(pod, world.key.name), f"it has {pod.phase.lower()}", ended=True))
        parts.tells.append(_ended(pod))
    gone = {p.meta.uid for p in choice.ended}
    for pod in world.pods:
        if pod.meta.deleted is None and pod.meta.uid not in gone:
            _worker(world, pod, records[pod.meta.uid], choice, parts, now)
    parts.repairs.extend(defunct(world, now))
    _scaling_events(choice, parts, world)
    ends = _finalizers(world)
    told = conditions_of(world, choice, parts.draining, [*parts.trouble, *([world.refused] if world.refused else [])])
    status = wanted_status(world, choice, told, now, whole=not world.refused)
    statuses: list[Effect] = [PatchStatus(status)] if status != dict(world.status) else []
    pending = bool(parts.draining or choice.creates or any(r.waits for r in parts.why) or parts.again)
    again = min(
        [*parts.again, *([LOOK_S] if pending else []), *([] if world.slurm.known else [UNKNOWN_S])], default=None
    )
    effects = (
        *ends, *parts.creates, *parts.marks.values(), *parts.drains, *parts.deletes, *parts.undrains, *parts.repairs,
        *parts.states, *parts.tells, *statuses,
    )  # fmt: skip
    return Decision(effects, tuple(parts.why), again, bool(parts.draining) or parts.hurry)


def _record(world: World, pod: Pod, now: float) -> Record:
    """What we noted on a pod, or what upstream's operator left there."""
    found = read_record(pod)
    if found is not None:
        return found
    node = world.slurm.nodes.get(slurm_name(pod, world.key.name)) if world.slurm.known else None
    kube = world.nodes.get(pod.node)
    return adopt(pod, node, kube is not None and kube.unschedulable, now)


def _worker(world: World, pod: Pod, record: Record, choice: Choice, parts: _Parts, now: float) -> None:
    """One worker: its causes on the pod, its drain in Slurm, whether it goes, and what Slurm says of it."""
    name = slurm_name(pod, world.key.name)
    node = world.slurm.nodes.get(name) if world.slurm.known and name else None
    causes = choice.causes.get(pod.meta.uid, {})
    if choice.is_held(pod):
        _hold(world, pod, node, record, causes, parts, now)
    else:
        _let(world, pod, node, record, causes, parts, now)
    if choice.leaves(pod):
        _leave(world, pod, name, causes, parts, now)
    if node is None:
        parts.hurry |= world.slurm.known and pod.phase == "Running"
        return
    if pod.meta.uid in parts.going:
        return
    if is_healthy(pod) and name not in {n for n, w in collisions((pod,), world.key.name, world.taken).items() if w}:
        mend = repair(pod, node, world, now, held=choice.is_held(pod))
        if mend is not None:
            parts.repairs.append(mend)
    _mirror(world, pod, node, parts)
    if is_healthy(pod) and is_down(node.states):
        parts.trouble.append(
            f"{pod.id.name} is ready, Slurm says {'+'.join(node.states).lower()} {node.reason}".strip()
        )


def _hold(
    world: World,
    pod: Pod,
    node: SlurmNode | None,
    record: Record,
    causes: Mapping[Cause, str],
    parts: _Parts,
    now: float,
) -> None:
    """Keep a worker from new jobs, and note why. The note comes first: a drain without one would look like nobody's."""
    marked = is_true(note(pod, CORDON))
    new = replace(merge(record, causes, now), cordon=record.cordon or not marked)
    reason = drain_reason(pod, causes, world.nodes.get(pod.node), world.propagated)
    silent = node is not None and "DOWN" in node.states and "Not responding" in node.reason
    if node is not None and not (silent and not any(c in LEAVING for c in causes)):
        if not is_drain(node.states) or "UNDRAIN" in node.states:
            new = replace(new, drain=True, foreign=False)
            parts.drains.append(Drain(pod, node.id.name, reason))
        elif not (is_ours(node.reason) and (record.drain or not node.reason)):
            # Somebody else has drained it: their words stay, and are not ours to lift.
            new = replace(new, drain=False, foreign=not is_ours(node.reason))
        elif node.reason != reason and set(record.causes) != set(causes):
            parts.drains.append(Drain(pod, node.id.name, reason))
    notes: dict[str, str | None] = {}
    if not marked:
        notes[CORDON] = "true"
    if new != read_record(pod):
        notes[CAUSES] = new.text()
    if notes:
        parts.note(pod, notes)


def _let(
    world: World,
    pod: Pod,
    node: SlurmNode | None,
    record: Record,
    causes: Mapping[Cause, str],
    parts: _Parts,
    now: float,
) -> None:
    """Withdraw what we did to a worker that nothing holds any more. A person's mark and a foreign drain stay."""
    if causes or record == Record():
        return  # chosen by a plan that is under way, or never touched
    if record.drain and not world.slurm.known:
        parts.why.append(Reason(pod.id.name, f"its drain is lifted when Slurm answers: {world.slurm.why}", waits=True))
        return
    if record.drain and node is not None and is_drain(node.states) and is_ours(node.reason) and not record.foreign:
        if is_older(node, pod) and ("DOWN" in node.states or not is_healthy(pod)):
            return  # its predecessor's drain: until this one has registered it keeps its words, which tell whose it is
        if "INVALID_REG" in node.states:
            parts.why.append(
                Reason(pod.id.name, "Slurm refuses to undrain a node whose registration is invalid", waits=True)
            )
            return
        parts.undrains.append(Undrain(pod, node.id.name))
        parts.why.append(Reason(pod.id.name, "nothing holds it any more: its drain is lifted"))
        return  # the note goes in the next pass, when the drain is seen to be gone
    notes: dict[str, str | None] = {}
    if note(pod, CAUSES):
        notes[CAUSES] = None
    if record.cordon and note(pod, CORDON):
        notes[CORDON] = None
    if notes:
        parts.note(pod, notes)


def _leave(world: World, pod: Pod, name: str, causes: Mapping[Cause, str], parts: _Parts, now: float) -> None:
    words = " and ".join(sorted(c.value for c in causes if c in LEAVING))
    if Cause.DELETION in causes and is_true(world.spec.annotations.get(SKIP_DRAIN, "")):
        parts.deletes.append(DeletePod(pod, name, "its NodeSet is deleted without drain, as asked", forced=True))
        return
    verdict = may_go(pod, world.key.name, world.slurm)
    if verdict.yes:
        parts.deletes.append(DeletePod(pod, name, f"{words}: {verdict.why}"))
        parts.going.add(pod.meta.uid)
        return
    parts.draining.append(f"{pod.id.name} ({words}): {verdict.why}")
    parts.why.append(Reason(pod.id.name, f"leaves for {words}, waits: {verdict.why}", waits=True))
    if verdict.why.endswith("to be sure"):
        parts.again.append(UNKNOWN_S)


def _mirror(world: World, pod: Pod, node: SlurmNode, parts: _Parts) -> None:
    """What Slurm says of a worker, written on its pod."""
    jobs = world.slurm.jobs.get(node.id.name, ())
    put, drop = difference(pod.conditions, wanted_conditions(node))
    if put or drop:
        parts.states.append(PodConditions(pod, put, drop))
    labels: dict[str, str | None] = {}
    protect = world.spec.protect and is_occupied(node, jobs)
    if protect != (dict(pod.meta.labels).get(PROTECT) == "true"):
        labels[PROTECT] = "true" if protect else None
    notes: dict[str, str | None] = {}
    end = deadline_of(jobs)
    if end != note(pod, DEADLINE):
        notes[DEADLINE] = end or None
    kube = world.nodes.get(pod.node)
    if kube is not None:
        topology = dict(kube.meta.annotations).get(TOPOLOGY, "")
        if topology != note(pod, TOPOLOGY):
            notes[TOPOLOGY] = topology
    if labels or notes:
        parts.note(pod, notes, labels)


def _ended(pod: Pod) -> Tell:
    if pod.phase == "Failed":
        text = f"Found failed daemon pod {pod.id} on node {pod.node}, will try to kill it"
        return Tell("FailedDaemonPod", "Info", text, warning=True, about=pod)
    return Tell(
        "SucceededDaemonPod",
        "Info",
        f"Found succeeded daemon pod {pod.id} on node {pod.node}, will try to delete it",
        about=pod,
    )


def _scaling_events(choice: Choice, parts: _Parts, world: World) -> None:
    if choice.creates:
        parts.tells.append(
            Tell(
                "ScalingUp",
                "ScaleUp",
                f"Creating {len(choice.creates)} Pod(s) to stabilize at {choice.desired} replicas",
            )
        )
    going = [e for e in parts.deletes if isinstance(e, DeletePod) and not e.ended]
    if going:
        parts.tells.append(
            Tell("ScalingDown", "ScaleDown", f"Deleting {len(going)} Pod(s) to stabilize at {choice.desired} replicas")
        )


def _finalizers(world: World) -> list[Effect]:
    """The NodeSet stays until its workers have gone one by one."""
    held = DRAIN_FINALIZER in world.finalizers
    if not world.deleting and not held:
        return [Finalizers((*world.finalizers, DRAIN_FINALIZER))]
    if world.deleting and held and not world.pods:
        return [Finalizers(tuple(f for f in world.finalizers if f != DRAIN_FINALIZER))]
    return []


__all__ = ["Decision", "UpdateNode", "decide"]
