"""What an operator would do about a NodeSet, a worker or a Slurm node now, why, since when and until when. Pure.

It is `decide` that speaks: nothing is explained by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from slinkytui.backend.controllers.nodeset.causes import LEAVING, is_true, read_record
from slinkytui.backend.controllers.nodeset.conditions import deadline_of
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import (
    Adopt,
    Apply,
    CreatePod,
    Decision,
    DeletePod,
    DeleteRecord,
    Drain,
    Effect,
    Finalizers,
    ForgetRevision,
    OwnClaim,
    PatchPod,
    PatchStatus,
    PodConditions,
    RankRevision,
    Tell,
    Undrain,
    UpdateNode,
)
from slinkytui.backend.controllers.nodeset.drained import may_go
from slinkytui.backend.controllers.nodeset.identity import is_old, label, mode_of, note, slurm_name
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.controllers.nodeset.order import ready_since
from slinkytui.backend.controllers.nodeset.world import CORDON, HASH, PROTECT, World
from slinkytui.backend.errors import NotFound
from slinkytui.backend.models import Because, Decided, Did, Explained, ExplainedLine, Job, Key, Pod
from slinkytui.backend.slurm.states import node_word


def explained(observer: Observer, key: Key, subject: str, now: float) -> Explained:
    """`subject` is a pod's name, or "" for the NodeSet. Raises NotFound."""
    world, _, more = observer.observe(key)
    if world is None:
        raise NotFound(f"nodeset {key} not found")
    decision = decide(world, now)
    return explain(world, replace(decision, effects=(*more, *decision.effects)), subject, now)


def would(observer: Observer, key: Key, now: float) -> Decided | None:
    """What an operator would do about a NodeSet now, as a row; None when it is gone."""
    world, _, more = observer.observe(key)
    if world is None:
        return None
    decision = decide(world, now)
    did = tuple(Did(f"would {text}") for e in _weightiest((*more, *decision.effects)) if (text := act_words(e)[0]))
    why = tuple(Because(r.subject, r.text, r.since, r.waits) for r in decision.why)
    return Decided(key, "nodeset", now, did, why, decision.after, acted=now if did else None)


def explain(world: World, decision: Decision, subject: str, now: float) -> Explained:
    """`subject` is a pod's name, or "" for the NodeSet itself."""
    pod = next((p for p in world.pods if p.id.name == subject), None)
    if pod is not None:
        return Explained(f"pod/{pod.id}", tuple(_pod(world, decision, pod)), _acts(decision, pod.id.name))
    return Explained(f"nodeset/{world.key}", tuple(_nodeset(world, decision, now)), _acts(decision, ""))


def _nodeset(world: World, decision: Decision, now: float) -> Iterable[ExplainedLine]:
    spec = world.spec
    ready = sum(ready_since(p) is not None for p in world.pods)
    yield ExplainedLine("is", f"{len(world.pods)} pods, {ready} ready; {spec.mode}, {spec.replicas} replicas wanted")
    yield ExplainedLine("revision", _revisions(world))
    if world.bad:
        yield ExplainedLine("refused", world.bad)
    if world.deleting:
        yield ExplainedLine("deletion", "the NodeSet is being deleted: its workers leave one by one as they get idle")
    if not world.slurm.known:
        since = f" since {_time(world.slurm.since)}" if world.slurm.since else ""
        yield ExplainedLine("Slurm", f"unknown{since}: {world.slurm.why}; nothing is deleted or undrained")
    else:
        yield ExplainedLine("Slurm", f"cluster {world.slurm.cluster} answers")
    for pod in world.pods:
        record = read_record(pod)
        if record is not None and record.causes:
            causes = ", ".join(f"{c.value} since {_time(w.since)}" for c, w in sorted(record.causes.items()))
            yield ExplainedLine("held", f"{pod.id.name}: {causes}{_until(_jobs(world, pod))}")
    for reason in decision.why:
        word = "waits" if reason.waits else "because"
        since = f" (since {_time(reason.since)})" if reason.since else ""
        yield ExplainedLine(word, f"{reason.subject + ': ' if reason.subject else ''}{reason.text}{since}")
    if decision.after is not None:
        yield ExplainedLine("looks again", f"when something changes, in {decision.after:.0f} s at the latest")


def _pod(world: World, decision: Decision, pod: Pod) -> Iterable[ExplainedLine]:
    name = slurm_name(pod, world.key.name)
    yield ExplainedLine(
        "NodeSet", f"{world.key}, made in {mode_of(pod, world.key.name)} mode, revision {label(pod, HASH) or '–'}"
    )
    yield ExplainedLine(
        "Kubernetes",
        f"{pod.phase or '–'} on {pod.node or 'no node'}, {'ready' if ready_since(pod) is not None else 'not ready'}",
    )
    node = world.slurm.nodes.get(name)
    if node is None:
        yield ExplainedLine("Slurm node", f"{name or 'not known'}: Slurm does not list it")
    else:
        reason = f": {node.reason}" if node.reason else ""
        yield ExplainedLine("Slurm node", f"{name} is {node_word(node.states)}{reason}")
    jobs = _jobs(world, pod)
    if jobs:
        yield ExplainedLine(
            "jobs", f"{', '.join(f'{j.id} ({j.user})' for j in jobs[:6])}{' …' if jobs[6:] else ''}{_until(jobs)}"
        )
    record = read_record(pod)
    if record is not None:
        for cause, why in sorted(record.causes.items()):
            by = f", chosen by plan {why.plan}" if why.plan else ""
            end = "the pod goes when it is drained" if cause in LEAVING else "it is lifted by whoever set it"
            yield ExplainedLine("held", f"{cause.value} since {_time(why.since)}{by}; {end}")
        if record.foreign:
            yield ExplainedLine("drain", "somebody else had drained its node: that drain is not ours to lift")
    elif is_true(note(pod, CORDON)):
        yield ExplainedLine("held", "somebody cordoned the pod; whoever removes the annotation lifts it")
    if dict(pod.meta.labels).get(PROTECT) == "true":
        yield ExplainedLine("eviction", "refused while it is busy (pod-protect)")
    verdict = may_go(pod, world.key.name, world.slurm)
    yield ExplainedLine("may it go", f"{verdict.answer.value}: {verdict.why}")
    for said in decision.why:
        if said.subject == pod.id.name:
            yield ExplainedLine("waits" if said.waits else "because", said.text)


def _revisions(world: World) -> str:
    old = sum(is_old(p, world) for p in world.pods)
    return (
        f"{world.update_hash or '–'}; {old} pods are of another one" if old else f"{world.update_hash or '–'}, all pods"
    )


def _jobs(world: World, pod: Pod) -> Sequence[Job]:
    return world.slurm.jobs.get(slurm_name(pod, world.key.name), ())


def _until(jobs: Sequence[Job]) -> str:
    end = deadline_of(jobs)
    if not end:
        return ""
    return (
        "; a job has no limit"
        if any(j.time_limit_min in (None, float("inf")) for j in jobs)
        else f"; until {end} at the latest"
    )


def _acts(decision: Decision, subject: str) -> tuple[str, ...]:
    """What would be done now, in words; for one pod only what concerns it."""
    out = []
    for effect in _weightiest(decision.effects):
        text, about = act_words(effect)
        if text and (not subject or about == subject):
            out.append(text)
    return tuple(out)


def _weightiest(effects: Iterable[Effect]) -> list[Effect]:
    """In the order of a reader: first what touches that which runs. A page that is full cuts off the end."""
    return sorted(effects, key=lambda e: not isinstance(e, DeletePod | Drain | Undrain))


def act_words(effect: Effect) -> tuple[str, str]:
    """An effect in words, and the pod that it concerns."""
    match effect:
        case CreatePod():
            return f"create a pod for {effect.node or f'ordinal {effect.ordinal}'}", ""
        case PatchPod():
            names = [k.rpartition("/")[2] for k in (*effect.annotations, *effect.labels)]
            return f"mark pod {effect.pod.id.name}: {', '.join(names)}", effect.pod.id.name
        case Drain():
            return f"drain {effect.node}: {effect.reason}", effect.pod.id.name
        case Undrain():
            return f"undrain {effect.node}", effect.pod.id.name
        case DeletePod():
            return f"delete pod {effect.pod.id.name}: {effect.why}", effect.pod.id.name
        case UpdateNode():
            return f"update Slurm node {effect.node}: {effect.what}", effect.node
        case DeleteRecord():
            return f"remove the Slurm record {effect.node}: {effect.why}", ""
        case PodConditions():
            words = [t for t, _ in effect.wanted] + [f"no {t}" for t in effect.drop]
            return f"conditions of pod {effect.pod.id.name}: {', '.join(words)}", effect.pod.id.name
        case Finalizers():
            return f"finalizers: {', '.join(effect.names) or 'none'}", ""
        case Apply():
            return f"{'mend' if effect.exists else 'create'} {effect.plural} {effect.body['metadata']['name']}", ""
        case OwnClaim():
            owner = next((str(o.get("kind")) for o in effect.owners if o.get("controller")), "nobody")
            return f"claim {effect.name} goes with: {owner}", effect.pod.id.name
        case Adopt():
            return f"adopt {effect.plural} {effect.name}", effect.name
        case RankRevision():
            return f"revision {effect.name} becomes the newest again", ""
        case ForgetRevision():
            return f"delete revision {effect.name}", ""
        case PatchStatus():
            return "write the status", ""
        case Tell():
            return "", ""


def _time(at: float | None) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else "–"
