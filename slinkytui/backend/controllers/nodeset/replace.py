"""Workers of an old revision or another mode: which of them go now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinkytui.backend.controllers.nodeset.budget import is_available, is_healthy, most_away
from slinkytui.backend.controllers.nodeset.causes import Cause, Record
from slinkytui.backend.controllers.nodeset.choice import UID, Choice
from slinkytui.backend.controllers.nodeset.decision import Reason
from slinkytui.backend.controllers.nodeset.identity import is_old, slurm_name
from slinkytui.backend.controllers.nodeset.order import rank
from slinkytui.backend.controllers.nodeset.world import Strategy, World
from slinkytui.backend.models import Pod
from slinkytui.backend.slurm.states import is_drain

RESERVATION: Final = "SlurmOperatorMaint-"
"""What the names of our maintenance reservations begin with."""


def replace(
    world: World, mine: list[Pod], others: list[Pod], records: Mapping[UID, Record], choice: Choice, now: float
) -> None:
    """Workers of an old revision or another mode, as many at a time as may be away."""
    rolling = world.spec.strategy is not Strategy.ON_DELETE and world.update_hash
    old = [(p, Cause.UPDATE) for p in mine if rolling and is_old(p, world)]
    # Workers of the old mode go when nothing of the new mode is missing: they hold the machines that it needs.
    old += [(p, Cause.MODE) for p in others]
    before = [(p, c) for p, c in old if c in records[p.meta.uid].causes and not choice.leaves(p)]
    for pod, cause in before:
        choice.add(pod, cause, _words(cause, world))
    rest = [(p, c) for p, c in old if not choice.leaves(p) and _may_roll(world, p, c)]
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
    away = total - sum(1 for p in (*mine, *others) if choice.counts(p) and _serves(world, p, choice, now))
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


def _may_roll(world: World, pod: Pod, cause: Cause) -> bool:
    """With scheduled updates a healthy worker waits for the maintenance of its node under our own reservation."""
    if world.spec.strategy is not Strategy.SCHEDULED or cause is not Cause.UPDATE or not is_healthy(pod):
        return True
    node = world.slurm.nodes.get(slurm_name(pod, world.key.name))
    return node is not None and "MAINTENANCE" in node.states and node.reservation == f"{RESERVATION}{world.key.name}"


def _serves(world: World, pod: Pod, choice: Choice, now: float) -> bool:
    available = is_available(pod, world.key.name, world.slurm, world.spec.min_ready_s, now)
    node = world.slurm.nodes.get(slurm_name(pod, world.key.name))
    # Whoever drained it, no job starts there.
    return available and not choice.is_held(pod) and node is not None and not is_drain(node.states)


def _words(cause: Cause, world: World) -> str:
    if cause is Cause.MODE:
        return f"it was made in another scaling mode than {world.spec.mode}"
    return f"its revision is not {world.update_hash}" + (
        ", or its files are not the present ones" if world.config else ""
    )
