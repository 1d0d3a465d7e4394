"""Who is wanted and who leaves: each worker's causes, and the workers to make. Pure.

A worker that was chosen stays chosen until its cause is withdrawn; it ranks first whenever one has to be chosen, and
counts as away in every budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slinkytui.backend.controllers.nodeset.budget import has_ended
from slinkytui.backend.controllers.nodeset.causes import CHOSEN_S, LEAVING, Cause, Record, is_true
from slinkytui.backend.controllers.nodeset.choice import UID, Choice, create
from slinkytui.backend.controllers.nodeset.daemons import daemons
from slinkytui.backend.controllers.nodeset.decision import CreatePod
from slinkytui.backend.controllers.nodeset.identity import expected_host, mode_of, note, ordinal, slurm_name
from slinkytui.backend.controllers.nodeset.order import rank
from slinkytui.backend.controllers.nodeset.replace import replace
from slinkytui.backend.controllers.nodeset.world import CORDON, DAEMON, Strategy, World
from slinkytui.backend.controllers.objects.names import padded
from slinkytui.backend.models import Pod


def choose(world: World, records: Mapping[UID, Record], now: float) -> Choice:
    """Everything that decides who stays, over one look at the world."""
    # What has ended runs no slurmd: its name is free.
    choice = Choice(names={slurm_name(p, world.key.name): p.id.name for p in world.pods if not has_ended(p)})
    live = [p for p in world.pods if p.meta.deleted is None]
    for pod in live:
        _held_by_others(world, pod, records[pod.meta.uid], choice)
    choice.ended = [p for p in live if has_ended(p)]
    working = [p for p in live if not has_ended(p)]
    if world.deleting:
        for pod in working:
            choice.add(pod, Cause.DELETION, "the NodeSet is being deleted")
        return choice
    mine = [p for p in working if mode_of(p, world.key.name) == world.spec.mode]
    others = [p for p in working if mode_of(p, world.key.name) != world.spec.mode]
    if world.spec.mode == DAEMON:
        daemons(world, mine, records, choice, now)
    else:
        choice.desired = world.spec.replicas
        _ordinals(world, choice, now)
        _scale_in(world, mine, records, choice, now)
    if world.spec.strategy is not Strategy.ON_DELETE or others:
        replace(world, mine, others, records, choice, now)
    return choice


def _held_by_others(world: World, pod: Pod, record: Record, choice: Choice) -> None:
    if is_true(note(pod, CORDON)) and not record.cordon:
        choice.add(pod, Cause.USER, "somebody cordoned the pod")
    node = world.nodes.get(pod.node)
    if node is not None and node.unschedulable:
        choice.add(pod, Cause.NODE, f"the Kubernetes node {pod.node} is cordoned")
    elif node is None and pod.node and Cause.NODE in record.causes:
        choice.add(pod, Cause.NODE, f"the Kubernetes node {pod.node} cannot be seen: it counts as cordoned as before")


def _ordinals(world: World, choice: Choice, now: float) -> None:
    """Missing workers on the lowest free ordinals. A pod that is on its way out keeps its name until it has gone."""
    have = sum(1 for p in world.pods if mode_of(p, world.key.name) == world.spec.mode)
    used = {ordinal(p.id.name) for p in world.pods}
    at, missing = 0, world.spec.replicas - have
    while missing > 0:
        if at not in used:
            host = expected_host(world.spec, world.key.name, at)
            create(world, CreatePod(ordinal=at), host, padded(at, world.spec.padding), choice, now)
            missing -= 1
        at += 1


def scale_in_order(pods: Iterable[Pod], records: Mapping[UID, Record]) -> list[Pod]:
    """In which order pods are chosen: who was chosen before or leaves anyway comes first."""

    def before(pod: Pod) -> bool:
        return any(c in LEAVING for c in records[pod.meta.uid].causes)

    return sorted(pods, key=lambda p: (not before(p), rank(p)))


def _scale_in(world: World, mine: list[Pod], records: Mapping[UID, Record], choice: Choice, now: float) -> None:
    """The surplus, those first that were chosen before or leave anyway; pods that go by themselves are not in `mine`."""
    surplus = len(mine) - world.spec.replicas

    for at, pod in enumerate(scale_in_order(mine, records)):
        chosen = records[pod.meta.uid].causes.get(Cause.SCALE_IN)
        if at < surplus:
            plan = chosen.plan if chosen is not None else ""
            choice.add(pod, Cause.SCALE_IN, f"{world.spec.replicas} replicas are wanted, {len(mine)} are there", plan)
        elif chosen is not None and chosen.plan and now - chosen.since < CHOSEN_S:
            choice.add(
                pod, Cause.SCALE_IN, f"plan {chosen.plan} chose it; its smaller size is still to come", chosen.plan
            )
            choice.waiting.add(pod.meta.uid)
            choice.later(CHOSEN_S - (now - chosen.since))
