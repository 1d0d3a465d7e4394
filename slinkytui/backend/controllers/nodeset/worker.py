"""One worker: its causes on the pod, its drain in Slurm, whether it goes, and what Slurm says of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from slinkytui.backend.controllers.nodeset.budget import is_healthy
from slinkytui.backend.controllers.nodeset.causes import (
    LEAVING,
    Cause,
    Record,
    is_older,
    is_our_drain,
    is_ours,
    is_true,
    merge,
    read_record,
)
from slinkytui.backend.controllers.nodeset.choice import Choice
from slinkytui.backend.controllers.nodeset.conditions import deadline_of, difference, is_occupied, wanted_conditions
from slinkytui.backend.controllers.nodeset.decision import DeletePod, Drain, PodConditions, Reason, Tell, Undrain
from slinkytui.backend.controllers.nodeset.drained import may_go
from slinkytui.backend.controllers.nodeset.identity import collisions, label_repairs, note, slurm_name
from slinkytui.backend.controllers.nodeset.parts import Draining, Parts
from slinkytui.backend.controllers.nodeset.reasons import drain_reason
from slinkytui.backend.controllers.nodeset.records import repair
from slinkytui.backend.controllers.nodeset.world import CAUSES, CORDON, DEADLINE, PROTECT, SKIP_DRAIN, TOPOLOGY, World
from slinkytui.backend.models import Pod, SlurmNode
from slinkytui.backend.slurm.states import is_down, is_drain

UNKNOWN_S: Final = 5.0
"""Something could not be known: asked again so soon."""


def worker(world: World, pod: Pod, record: Record, choice: Choice, parts: Parts, now: float) -> None:
    """One worker: its causes on the pod, its drain in Slurm, whether it goes, and what Slurm says of it."""
    name = slurm_name(pod, world.key.name)
    node = world.slurm.nodes.get(name) if world.slurm.known and name else None
    causes = choice.causes.get(pod.meta.uid, {})
    if choice.is_held(pod):
        _hold(world, pod, node, record, causes, parts, now)
    else:
        _let(world, pod, name, node, record, causes, parts)
    if choice.leaves(pod):
        _leave(world, pod, name, record, causes, parts)
    mended = label_repairs(pod, world.key.name)
    if mended and pod.meta.uid not in parts.going:
        parts.note(pod, {}, mended)
    if node is None:
        parts.hurry |= world.slurm.known and pod.phase == "Running"
        return
    if pod.meta.uid in parts.going:
        return
    if (
        Cause.DUPLICATE not in causes
        and is_healthy(pod)
        and name not in {n for n, w in collisions((pod,), world.key.name, world.taken).items() if w}
    ):
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
    parts: Parts,
    now: float,
) -> None:
    """Keep a worker from new jobs, and note why. The note comes first: a drain without one would look like nobody's."""
    marked = is_true(note(pod, CORDON))
    if marked and not world.slurm.known and not read_record(pod) and not any(c in LEAVING for c in causes):
        return  # a mark without a note: whose it is can be told when Slurm answers
    new = replace(merge(record, causes, now), cordon=record.cordon or not marked)
    reason = drain_reason(pod, causes, world.nodes.get(pod.node), world.propagated)
    if node is not None and pod.node and not (_is_silent(node) and not any(c in LEAVING for c in causes)):
        if not is_drain(node.states) or "UNDRAIN" in node.states:
            new = replace(new, drain=True, foreign=False)
            parts.drains.append(Drain(pod, node.id.name, reason))
        elif not is_our_drain(node, record):
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


def _is_silent(node: SlurmNode) -> bool:
    """Slurm does not reach it: no job starts there, and the words are Slurm's own."""
    return "DOWN" in node.states and "Not responding" in node.reason


def _let(
    world: World,
    pod: Pod,
    name: str,
    node: SlurmNode | None,
    record: Record,
    causes: Mapping[Cause, str],
    parts: Parts,
) -> None:
    """Withdraw what we did to a worker that nothing holds any more. A person's mark and a foreign drain stay."""
    if causes or record == Record():
        return  # chosen by a plan that is under way, or never touched
    if record.drain and not world.slurm.known:
        parts.why.append(Reason(pod.id.name, f"its drain is lifted when Slurm answers: {world.slurm.why}", waits=True))
        return
    if record.drain and node is None and name and pod.phase == "Running":
        # Without the note nobody could tell whose drain it is when it is back.
        parts.why.append(Reason(pod.id.name, f"its drain is lifted when Slurm lists {name} again", waits=True))
        return
    if node is not None and is_drain(node.states) and is_our_drain(node, record):
        wait = _why_drained(world, pod, name, node)
        if wait:
            parts.why.append(Reason(pod.id.name, wait, waits=True))
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


def _why_drained(world: World, pod: Pod, name: str, node: SlurmNode) -> str:
    """Why a drain that is ours is not lifted yet; "" if it is lifted now."""
    if is_older(node, pod) and ("DOWN" in node.states or not is_healthy(pod)):
        # Its predecessor's drain. Until this one has registered it keeps its words, which tell whose it is.
        return "the drain of its predecessor is lifted when it has registered"
    if "INVALID_REG" in node.states:
        return "Slurm refuses to undrain a node whose registration is invalid"
    if any(p.meta.uid != pod.meta.uid and slurm_name(p, world.key.name) == name for p in world.pods):
        return f"another worker of the name {name} has to go first"
    return ""


def _leave(world: World, pod: Pod, name: str, record: Record, causes: Mapping[Cause, str], parts: Parts) -> None:
    words = " and ".join(sorted(c.value for c in causes if c in LEAVING))
    unasked = _needs_no_drain(world, causes)
    if unasked:
        parts.deletes.append(DeletePod(pod, name, unasked, forced=True))
        if not world.slurm.expected:
            parts.tells.append(Tell("DeletedUndrained", "Delete", f"Deleting Pod {pod.id}: {unasked}", True, pod))
        return
    verdict = may_go(pod, world.key.name, world.slurm)
    if verdict.yes:
        parts.deletes.append(DeletePod(pod, name, f"{words}: {verdict.why}"))
        parts.going.add(pod.meta.uid)
        return
    since = min((w.since for c, w in record.causes.items() if c in LEAVING), default=None)
    end = deadline_of(world.slurm.jobs.get(name, ()))
    parts.draining.append(Draining(f"{pod.id.name} ({words}): {verdict.why}", since, end))
    parts.why.append(Reason(pod.id.name, f"leaves for {words}, waits: {verdict.why}", since, waits=True))
    if verdict.why.endswith("to be sure"):
        parts.again.append(UNKNOWN_S)


def _needs_no_drain(world: World, causes: Mapping[Cause, str]) -> str:
    """Why a worker goes at once whatever runs on it; "" as good as always."""
    if Cause.DELETION not in causes:
        return ""
    if is_true(world.spec.annotations.get(SKIP_DRAIN, "")):
        return "its NodeSet is deleted without drain, as asked"
    return "" if world.slurm.expected else "its NodeSet is deleted, and its Controller is gone: nobody is left to ask"


def _mirror(world: World, pod: Pod, node: SlurmNode, parts: Parts) -> None:
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
