"""From the world to the decision about one NodeSet. Pure: the same function plans, explains and acts."""

from __future__ import annotations

from typing import Final

from slinkytui.backend.controllers.nodeset.budget import has_ended
from slinkytui.backend.controllers.nodeset.causes import Cause, Record, adopt, read_record
from slinkytui.backend.controllers.nodeset.choice import Choice
from slinkytui.backend.controllers.nodeset.choose import choose
from slinkytui.backend.controllers.nodeset.decision import Decision, DeletePod, Effect, PatchStatus, Reason, Tell
from slinkytui.backend.controllers.nodeset.farewell import finalizers, left_behind, waited_for
from slinkytui.backend.controllers.nodeset.identity import collisions, slurm_name
from slinkytui.backend.controllers.nodeset.parts import Parts, said
from slinkytui.backend.controllers.nodeset.records import defunct
from slinkytui.backend.controllers.nodeset.retention import retention
from slinkytui.backend.controllers.nodeset.status import conditions_of, wanted_status
from slinkytui.backend.controllers.nodeset.tells import changes, ended
from slinkytui.backend.controllers.nodeset.worker import UNKNOWN_S, worker
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.models import Pod

LOOK_S: Final = 30.0
"""Something is pending: Slurm's events wake the loop, this is for what makes no event."""


def decide(world: World, now: float) -> Decision:
    """What to do about a NodeSet now, why, and when to look again."""
    if world.bad:
        # What cannot be read can still be deleted.
        ends = finalizers(world, now) if world.deleting else ()
        return Decision(tuple(ends), (Reason("", world.bad, waits=True),))
    parts = Parts()
    records = {p.meta.uid: _record(world, p, now) for p in world.pods}
    choice = choose(world, records, now)
    parts.creates.extend(choice.creates)
    parts.why.extend(choice.why)
    if choice.again_s is not None:
        parts.again.append(choice.again_s)
    for name, pods in collisions(world.pods, world.key.name, world.taken).items():
        parts.trouble.append(f"pods {' and '.join(pods)} share the Slurm name {name}")
    for text in choice.clashes:
        parts.trouble.append(text)
        parts.tells.append(Tell("NameCollision", "Create", text, warning=True))
    parts.trouble.extend(world.kept)
    for pod in choice.ended:
        parts.deletes.append(DeletePod(pod, slurm_name(pod, world.key.name), f"it has {pod.phase.lower()}", ended=True))
        parts.tells.append(ended(world, pod))
    for pod in world.pods:
        if pod.meta.deleted is None and not has_ended(pod):
            parts.take(_alone(world, pod, records[pod.meta.uid], choice, now))
    chosen = {p.meta.uid for p in world.pods if choice.leaves(p) and Cause.SCALE_IN in choice.causes[p.meta.uid]}
    owned = list(retention(world, chosen))
    parts.repairs.extend(defunct(world, now))
    parts.repairs.extend(left_behind(world))
    parts.tells.extend(changes(world, choice, records))
    ends = finalizers(world, now)
    waits = waited_for(world, now) if world.deleting and not world.pods else ()
    parts.why.extend(Reason(n, "its Slurm record goes before the NodeSet does", waits=True) for n in waits)
    told = conditions_of(
        world, choice, said(parts.draining), [*parts.trouble, *([world.refused] if world.refused else [])]
    )
    status = wanted_status(world, choice, told, now, whole=not world.refused)
    statuses: list[Effect] = [PatchStatus(status)] if status != dict(world.status) else []
    pending = bool(parts.draining or choice.creates or any(r.waits for r in parts.why) or parts.again)
    again = min(
        [*parts.again, *([LOOK_S] if pending else []), *([] if world.slurm.known else [UNKNOWN_S])], default=None
    )
    effects = (
        *ends, *parts.creates, *parts.marks.values(), *parts.drains, *owned, *parts.deletes, *parts.undrains, *parts.repairs,
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


def _alone(world: World, pod: Pod, record: Record, choice: Choice, now: float) -> Parts:
    """One worker's parts. Whatever goes wrong with it is its own: the others are dealt with all the same."""
    parts = Parts()
    try:
        worker(world, pod, record, choice, parts, now)
    except Exception as error:  # noqa: BLE001  # the pod's wall
        text = f"{pod.id.name} cannot be dealt with: {error!r}"[:500]
        told = Tell("Quarantined", "Sync", text, warning=True, about=pod)
        return Parts(tells=[told], trouble=[text], why=[Reason(pod.id.name, text, waits=True)])
    return parts
