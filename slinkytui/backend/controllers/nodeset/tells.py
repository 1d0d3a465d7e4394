"""Events about a NodeSet: each when something changes, not as long as it lasts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from slinkytui.backend.controllers.nodeset.budget import is_healthy
from slinkytui.backend.controllers.nodeset.causes import Cause, Record
from slinkytui.backend.controllers.nodeset.choice import UID, Choice
from slinkytui.backend.controllers.nodeset.decision import Tell
from slinkytui.backend.controllers.nodeset.identity import daemon_host, label, mode_of, target
from slinkytui.backend.controllers.nodeset.world import DAEMON, POD_HOSTNAME, Strategy, World
from slinkytui.backend.models import Pod


def ended(world: World, pod: Pod) -> Tell:
    failed, where = pod.phase == "Failed", f"pod {pod.id} on node {pod.node}"
    kind = "daemon " if mode_of(pod, world.key.name) == DAEMON else ""
    reason = f"{'Failed' if failed else 'Succeeded'}{'Daemon' if kind else 'NodeSet'}Pod"
    text = f"Found {pod.phase.lower()} {kind}{where}, will try to {'kill' if failed else 'delete'} it"
    return Tell(reason, "Info", text, warning=failed, about=pod)


def changes(world: World, choice: Choice, records: Mapping[UID, Record]) -> Iterator[Tell]:
    """What is made, and what workers are held for that was not held against them before."""
    kind = "daemon " if world.spec.mode == DAEMON else ""
    size = "" if kind else f" to stabilize at {choice.desired} replicas"
    if choice.creates:
        yield Tell("ScalingUp", "ScaleUp", f"Creating {len(choice.creates)} {kind}Pod(s){size}")
    new: dict[Cause, list[Pod]] = {}
    for pod in world.pods:
        for cause in choice.causes.get(pod.meta.uid, ()):
            if cause not in records[pod.meta.uid].causes and pod.meta.uid not in choice.waiting:
                new.setdefault(cause, []).append(pod)
    leaving = [*new.get(Cause.SCALE_IN, ()), *new.get(Cause.INELIGIBLE, ()), *new.get(Cause.DUPLICATE, ())]
    if leaving:
        yield Tell("ScalingDown", "ScaleDown", f"Deleting {len(leaving)} {kind}Pod(s){size}")
    for pod in new.get(Cause.NODE, ()):
        text = f"Cordoning Pod {pod.id}: Kubernetes node {pod.node} was cordoned"
        yield Tell("NodeCordon", "Cordon", text, about=pod)
    for pod in new.get(Cause.HOSTNAME, ()):
        node = world.nodes[target(pod)]
        hosts = f'from "{label(pod, POD_HOSTNAME)}" to "{daemon_host(node, world.spec.daemon_prefix)}"'
        yield Tell("HostnameMismatch", "Info", f"Recreating daemon pod {pod.id}: hostname changed {hosts}", about=pod)
    yield from _updates(world, new.get(Cause.UPDATE, ()))


def _updates(world: World, pods: Iterable[Pod]) -> Iterator[Tell]:
    scheduled = world.spec.strategy is Strategy.SCHEDULED
    reason, action = ("Scheduled Update", "ScheduledUpdate") if scheduled else ("RollingUpdate", "RollingUpdate")
    words = "Scheduled update" if scheduled else "Rolling update"
    sick = [p for p in pods if not is_healthy(p)]
    well = [p for p in pods if is_healthy(p)]
    if sick:
        yield Tell(reason, action, f"{words}: deleting {len(sick)} unhealthy old pod(s)")
    if well:
        yield Tell(reason, action, f"{words}: replacing {len(well)} old pod(s) with updated revision")
