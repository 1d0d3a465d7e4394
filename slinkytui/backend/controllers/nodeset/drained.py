"""Whether a worker may go: yes, no or unknown, with the words that say why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from slinkytui.backend.controllers.nodeset.identity import slurm_name
from slinkytui.backend.controllers.nodeset.records import read_info
from slinkytui.backend.controllers.nodeset.world import SlurmSide
from slinkytui.backend.models import Job, Pod, SlurmNode
from slinkytui.backend.slurm.states import holds_node, is_busy, is_drain, node_word

_QUIET: Final = frozenset({"SUSPENDED", "STOPPED"})
APART_S: Final = 5.0
"""Two complete lists that lack a node must be this far apart before it counts as absent."""


class Answer(Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    answer: Answer
    why: str

    @property
    def yes(self) -> bool:
        return self.answer is Answer.YES


def yes(why: str) -> Verdict:
    return Verdict(Answer.YES, why)


def no(why: str) -> Verdict:
    return Verdict(Answer.NO, why)


def unknown(why: str) -> Verdict:
    return Verdict(Answer.UNKNOWN, why)


def may_go(pod: Pod, nodeset: str, slurm: SlurmSide) -> Verdict:
    """Whether deleting this pod ends no job.

    A pod that never got a node or has ended cannot run one. Otherwise its Slurm node must be seen drained and without a
    job, or proven absent; what could not be read is unknown.
    """
    if pod.phase in ("Succeeded", "Failed"):
        return yes(f"the pod has {pod.phase.lower()}")
    if not pod.node:
        return yes("it has no Kubernetes node: nothing runs")
    if not slurm.expected:
        return unknown("the Controller is gone: nobody can say what runs here")
    if not slurm.known:
        return unknown(slurm.why)
    name = slurm_name(pod, nodeset)
    if not name:
        return unknown("its Slurm node name is not known")
    node = slurm.nodes.get(name)
    if node is None:
        return _absent(pod, name, slurm)
    return judge(node, slurm.jobs.get(name, ()), pod)


def judge(node: SlurmNode, jobs: Sequence[Job], pod: Pod) -> Verdict:
    """The verdict over one record and the jobs on its node, both read after the drain was set."""
    if node.flagged:
        return unknown(f"the record of {node.id.name} could only be read in part: {node.flagged}")
    other = _other_pod(node.comment, pod)
    if other:
        return unknown(f"the Slurm node {node.id.name} belongs to {other}")
    mine = [j for j in jobs if holds_node(j.states)]
    # A job that runs shows in the state of its node; where it no longer does, the list of jobs is the older one. Only
    # suspended and stopped jobs hide behind an idle node. Whoever deletes looks at both again.
    if mine and (is_busy(node.states) or any(_QUIET & set(j.states) for j in mine)):
        return no(
            f"{_count(len(mine), 'job')} on it: {', '.join(str(j.id) for j in mine[:3])}{' …' if mine[3:] else ''}"
        )
    if is_busy(node.states):
        return no(f"Slurm says {node_word(node.states)}")
    if "UNDRAIN" in node.states or not is_drain(node.states):
        return no("not drained yet")
    if not any(base in node.states for base in ("IDLE", "DOWN")):
        return unknown(f"Slurm says {'+'.join(node.states).lower()}")
    return yes("drained, and no job on it")


def _absent(pod: Pod, name: str, slurm: SlurmSide) -> Verdict:
    if not any(c.state in ("running", "terminated") or c.restarts for c in pod.containers if not c.init):
        return yes("its slurmd has never run")
    if not slurm.nodes:
        return unknown("Slurm lists no node at all")
    since = slurm.absent.get(name)
    if since is None or slurm.listed is None or slurm.listed - since < APART_S:
        return unknown(f"Slurm does not list {name}; asked again to be sure")
    return yes(f"Slurm does not know {name}")


def _other_pod(comment: str, pod: Pod) -> str:
    """The pod that the operator's note on a record names, if it is another one."""
    found = read_info(comment)
    if not found.get("podName"):
        return ""
    owner = f"{found.get('namespace')}/{found['podName']}"
    # A daemon pod that was replaced on the same machine has a new name, its record still the old one.
    same = owner == str(pod.id) or (found.get("node") == pod.node and found.get("namespace") == pod.id.namespace)
    return "" if same else owner


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
