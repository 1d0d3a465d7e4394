"""Who is wanted and who leaves: each worker's causes, and the workers to make. Pure.

A worker that was chosen stays chosen until its cause is withdrawn; it ranks first whenever one has to be chosen, and
counts as away in every budget.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slinkytui.backend.controllers.nodeset.budget import is_available, is_healthy, most_away
from slinkytui.backend.controllers.nodeset.causes import CHOSEN_S, LEAVING, Cause, Record, is_true
from slinkytui.backend.controllers.nodeset.decision import CreatePod, Reason
from slinkytui.backend.controllers.nodeset.eligible import fit
from slinkytui.backend.controllers.nodeset.identity import (
    daemon_host,
    expected_host,
    label,
    mode_of,
    note,
    ordinal,
    slurm_name,
    target,
)
from slinkytui.backend.controllers.nodeset.order import rank, ready_since
from slinkytui.backend.controllers.nodeset.world import CORDON, DAEMON, HASH, POD_HOSTNAME, Strategy, World
from slinkytui.backend.models import Pod
from slinkytui.backend.slurm.states import is_busy

UID = str


@dataclass
class Choice:
    """Per pod UID the causes that hold now, each with its plan's hash or ""; `waiting` are chosen by a plan whose
    smaller size is still to come. `desired` is how many workers there should be."""

    causes: dict[UID, dict[Cause, str]] = field(default_factory=lambda: defaultdict(dict))
    waiting: set[UID] = field(default_factory=set)
    creates: list[CreatePod] = field(default_factory=list)
    ended: list[Pod] = field(default_factory=list)
    why: list[Reason] = field(default_factory=list)
    desired: int = 0
    again_s: float | None = None

    def add(self, pod: Pod, cause: Cause, why: str, plan: str = "") -> None:
        self.causes[pod.meta.uid][cause] = plan
        self.why.append(Reason(pod.id.name, why))

    def leaves(self, pod: Pod) -> bool:
        return any(c in LEAVING for c in self.causes.get(pod.meta.uid, ())) and pod.meta.uid not in self.waiting

    def is_held(self, pod: Pod) -> bool:
        """Whether it has any cause that acts now."""
        held = self.causes.get(pod.meta.uid)
        return bool(held) and not (set(held or ()) == {Cause.SCALE_IN} and pod.meta.uid in self.waiting)

    def later(self, seconds: float) -> None:
        self.again_s = seconds if self.again_s is None else min(self.again_s, seconds)


def choose(world: World, records: Mapping[UID, Record], now: float) -> Choice:
    """Everything that decides who stays, over one look at the world."""
    choice = Choice()
    live = [p for p in world.pods if p.meta.deleted is None]
    for pod in live:
        _held_by_others(world, pod, records[pod.meta.uid], choice)
    choice.ended = [p for p in live if p.phase in ("Failed", "Succeeded")]
    working = [p for p in live if p.phase not in ("Failed", "Succeeded")]
    if world.deleting:
        for pod in working:
            choice.add(pod, Cause.DELETION, "the NodeSet is being deleted")
        return choice
    mine = [p for p in working if mode_of(p, world.key.name) == world.spec.mode]
    others = [p for p in working if mode_of(p, world.key.name) != world.spec.mode]
    if world.spec.mode == DAEMON:
        _daemons(world, mine, choice, now)
    else:
        choice.desired = world.spec.replicas
        _ordinals(world, choice, now)
        _scale_in(world, mine, records, choice, now)
    if world.spec.strategy is not Strategy.ON_DELETE or others:
        _replace(world, mine, others, records, choice, now)
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
            _create(world, CreatePod(ordinal=at), expected_host(world.spec, world.key.name, at), choice, now)
            missing -= 1
        at += 1


def _create(world: World, new: CreatePod, host: str, choice: Choice, now: float) -> None:
    subject = new.node or f"ordinal {new.ordinal}"
    until = world.backoff.get(new.slot, 0.0)
    holder = world.taken.get(host) or next((p.id.name for p in world.pods if slurm_name(p, world.key.name) == host), "")
    if world.refused:
        choice.why.append(Reason(subject, f"no pod is made: {world.refused}", waits=True))
    elif holder:
        choice.why.append(
            Reason(subject, f"no pod is made: the Slurm name {host} belongs to pod {holder} already", waits=True)
        )
    elif until > now:
        choice.why.append(Reason(subject, f"its last pod failed; made again in {until - now:.0f} s", waits=True))
        choice.later(until - now)
    else:
        choice.creates.append(new)


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


def _daemons(world: World, mine: list[Pod], choice: Choice, now: float) -> None:
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in world.pods:
        ended = pod.phase in ("Failed", "Succeeded") and pod.meta.deleted is not None
        if mode_of(pod, world.key.name) == DAEMON and not ended:
            by_node[target(pod)].append(pod)
    working = {p.meta.uid for p in mine}
    for name, node in world.nodes.items():
        there = by_node.get(name, [])
        found = fit(node, world.spec, create_on_cordoned=world.create_on_cordoned)
        choice.desired += found.run
        if not there and found.run:
            if found.why:
                choice.why.append(Reason(name, f"no pod is made on this node: {found.why}", waits=True))
            else:
                _create(world, CreatePod(node=name), daemon_host(node), choice, now)
        live = [p for p in there if p.meta.uid in working]
        if not found.stay:
            for pod in live:
                choice.add(pod, Cause.INELIGIBLE, f"its node {name} no longer takes it: {found.why}")
            continue
        for pod in live:
            host = label(pod, POD_HOSTNAME)
            if host and host != daemon_host(node):
                choice.add(pod, Cause.HOSTNAME, f"its host name is {host}, its node asks for {daemon_host(node)}")
        stay = [p for p in live if not choice.leaves(p)]
        for pod in sorted(stay, key=lambda p: _worth(world, p), reverse=True)[1:]:
            choice.add(pod, Cause.DUPLICATE, f"another worker of this NodeSet runs on {name}")


def _worth(world: World, pod: Pod) -> tuple[bool, bool, bool, float]:
    """Of two workers on one machine the busy one stays, else the registered, the ready, the older one."""
    name = slurm_name(pod, world.key.name)
    node = world.slurm.nodes.get(name)
    mine = node is not None and f'"{pod.id.name}"' in node.comment
    busy = node is not None and is_busy(node.states)
    return mine and busy, mine, ready_since(pod) is not None, -float(pod.meta.created or 0)


def _replace(
    world: World, mine: list[Pod], others: list[Pod], records: Mapping[UID, Record], choice: Choice, now: float
) -> None:
    """Workers of an old revision or another mode, as many at a time as may be away."""
    rolling = world.spec.strategy is not Strategy.ON_DELETE and world.update_hash
    old = [(p, Cause.UPDATE) for p in mine if rolling and label(p, HASH) != world.update_hash]
    # Workers of the old mode go when nothing of the new mode is missing: they hold the machines that it needs.
    old += [(p, Cause.MODE) for p in others]
    before = [(p, c) for p, c in old if c in records[p.meta.uid].causes and not choice.leaves(p)]
    for pod, cause in before:
        choice.add(pod, cause, _words(cause, world))
    rest = [(p, c) for p, c in old if not choice.leaves(p)]
    if not rest:
        return
    if not world.slurm.known:
        choice.why.append(Reason("", f"{len(rest)} old pods wait: {world.slurm.why}", world.slurm.since, waits=True))
        return
    # An old pod that is not healthy serves nobody: replacing it costs no budget, but it is drained all the same.
    for pod, cause in [(p, c) for p, c in rest if not is_healthy(p)]:
        choice.add(pod, cause, f"{_words(cause, world)}; it is not healthy")
    total = choice.desired
    limit = most_away(world.spec.max_unavailable, total)
    away = total - sum(1 for p in (*mine, *others) if _serves(world, p, choice, now))
    healthy = sorted(((p, c) for p, c in rest if is_healthy(p)), key=lambda pc: rank(pc[0]))
    # What is away anyway costs nothing more.
    for pod, cause in healthy:
        cost = int(_serves(world, pod, choice, now))
        if max(0, away) + cost > limit:
            continue
        away += cost
        choice.add(pod, cause, _words(cause, world))
    left = [p for p, _ in healthy if not choice.leaves(p)]
    if left:
        text = f"{len(left)} old pods wait: {max(0, away)} of {total} are away, {limit} may be"
        choice.why.append(Reason("", text, waits=True))


def _serves(world: World, pod: Pod, choice: Choice, now: float) -> bool:
    available = is_available(pod, world.key.name, world.slurm, world.spec.min_ready_s, now)
    return available and not choice.is_held(pod)


def _words(cause: Cause, world: World) -> str:
    if cause is Cause.MODE:
        return f"it was made in another scaling mode than {world.spec.mode}"
    return f"its revision is not {world.update_hash}"


def left_out(pods: Iterable[Pod], choice: Choice) -> list[Pod]:
    """The pods that stay."""
    return [p for p in pods if not choice.leaves(p)]
