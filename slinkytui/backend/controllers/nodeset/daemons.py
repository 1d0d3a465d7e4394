"""One worker a Kubernetes node: where one is missing, and which leave. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from slinkytui.backend.controllers.nodeset.budget import has_ended
from slinkytui.backend.controllers.nodeset.causes import Cause, Record
from slinkytui.backend.controllers.nodeset.choice import UID, Choice, create
from slinkytui.backend.controllers.nodeset.conditions import is_occupied
from slinkytui.backend.controllers.nodeset.decision import CreatePod, Reason
from slinkytui.backend.controllers.nodeset.eligible import fit
from slinkytui.backend.controllers.nodeset.identity import daemon_host, label, mode_of, slurm_name, target
from slinkytui.backend.controllers.nodeset.order import ready_since
from slinkytui.backend.controllers.nodeset.records import read_info
from slinkytui.backend.controllers.nodeset.world import DAEMON, POD_HOSTNAME, World
from slinkytui.backend.models import Pod


def daemons(world: World, mine: list[Pod], records: Mapping[UID, Record], choice: Choice, now: float) -> None:
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in world.pods:
        gone = has_ended(pod) and pod.meta.deleted is not None
        if mode_of(pod, world.key.name) == DAEMON and not gone:
            by_node[target(pod)].append(pod)
    working = {p.meta.uid for p in mine}
    for name, node in world.nodes.items():
        there, host = by_node.get(name, []), daemon_host(node, world.spec.daemon_prefix)
        found = fit(node, world.spec, create_on_cordoned=world.create_on_cordoned)
        choice.desired += found.run
        if found.run:
            choice.wanted.add(name)
        if not there and found.run:
            if found.why:
                choice.why.append(Reason(name, f"no pod is made on this node: {found.why}", waits=True))
            else:
                create(world, CreatePod(node=name), host, host, choice, now)
        live = [p for p in there if p.meta.uid in working]
        if not found.stay:
            for pod in live:
                choice.add(pod, Cause.INELIGIBLE, f"its node {name} no longer takes it: {found.why}")
            continue
        for pod in live:
            held = label(pod, POD_HOSTNAME)
            if held and held != host:
                choice.add(pod, Cause.HOSTNAME, f"its host name is {held}, its node asks for {host}")
        stay = [p for p in live if not choice.leaves(p)]
        for pod in sorted(stay, key=lambda p: _worth(world, p, records[p.meta.uid]), reverse=True)[1:]:
            choice.add(pod, Cause.DUPLICATE, f"another worker of this NodeSet runs on {name}")
    for pod in mine:
        if target(pod) and target(pod) not in world.nodes:
            _homeless(world, pod, choice)


def _homeless(world: World, pod: Pod, choice: Choice) -> None:
    """A worker whose Kubernetes node is not there. One that runs is Kubernetes' own to judge; one that still waits for
    its node would wait for ever."""
    name = target(pod)
    if world.nodes and not pod.node:
        choice.add(pod, Cause.INELIGIBLE, f"its node {name} is gone")
    else:
        choice.why.append(Reason(pod.id.name, f"its node {name} cannot be seen: it is left as it is", waits=True))


def _worth(world: World, pod: Pod, record: Record) -> tuple[bool, bool, bool, bool, float]:
    """Of two workers on one machine the busy one stays, else the registered, the ready, the older one; which of them
    goes is decided once."""
    name = slurm_name(pod, world.key.name)
    node = world.slurm.nodes.get(name)
    mine = node is not None and read_info(node.comment).get("podName") == pod.id.name
    busy = node is not None and is_occupied(node, world.slurm.jobs.get(name, ()))
    chosen = Cause.DUPLICATE in record.causes
    return not chosen, mine and busy, mine, ready_since(pod) is not None, -float(pod.meta.created or 0)
