"""What was chosen so far, and whether a worker can be made. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from slinkytui.backend.controllers.nodeset.causes import LEAVING, Cause
from slinkytui.backend.controllers.nodeset.decision import CreatePod, Reason
from slinkytui.backend.controllers.nodeset.identity import target
from slinkytui.backend.controllers.nodeset.retention import lost_claim
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.models import Pod

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
    names: dict[str, str] = field(default_factory=dict)
    """The Slurm names of all pods, with the pods' names."""
    hosts: dict[str, str] = field(default_factory=dict)
    """The Slurm names of the workers to make, with their ordinal or node."""
    clashes: list[str] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)
    """With one pod a node: the Kubernetes nodes that a worker is wanted on."""

    def clash(self, subject: str, text: str) -> None:
        """A worker that is not made because of a Slurm name that another one has."""
        self.clashes.append(f"{subject}: {text}")
        self.why.append(Reason(subject, text, waits=True))

    def add(self, pod: Pod, cause: Cause, why: str, plan: str = "") -> None:
        self.causes[pod.meta.uid][cause] = plan
        self.why.append(Reason(pod.id.name, why))

    def leaves(self, pod: Pod) -> bool:
        return any(c in LEAVING for c in self.causes.get(pod.meta.uid, ())) and pod.meta.uid not in self.waiting

    def is_held(self, pod: Pod) -> bool:
        """Whether it has any cause that acts now."""
        held = self.causes.get(pod.meta.uid)
        return bool(held) and not (set(held or ()) == {Cause.SCALE_IN} and pod.meta.uid in self.waiting)

    def counts(self, pod: Pod) -> bool:
        """Whether it stands where a worker is wanted; who stands elsewhere makes up for nobody."""
        return not self.wanted or target(pod) in self.wanted

    def later(self, seconds: float) -> None:
        self.again_s = seconds if self.again_s is None else min(self.again_s, seconds)


def create(world: World, new: CreatePod, host: str, identity: str, choice: Choice, now: float) -> None:
    """`identity` is what its claims are named by."""
    subject = new.node or f"ordinal {new.ordinal}"
    until = world.backoff.get(new.slot, 0.0)
    holder = world.taken.get(host) or choice.names.get(host)
    twin = choice.hosts.get(host)
    lost = lost_claim(world, identity)
    if world.refused:
        choice.why.append(Reason(subject, f"no pod is made: {world.refused}", waits=True))
    elif holder:
        choice.clash(subject, f"no pod is made: the Slurm name {host} belongs to pod {holder} already")
    elif twin is not None:
        choice.clash(subject, f"no pod is made: {twin} gives the Slurm name {host}, too")
    elif lost:
        choice.why.append(Reason(subject, f"no pod is made: {lost}", waits=True))
    elif until > now:
        choice.why.append(Reason(subject, f"its last pod failed; made again in {until - now:.0f} s", waits=True))
        choice.later(until - now)
    else:
        choice.hosts[host] = subject
        choice.creates.append(new)
