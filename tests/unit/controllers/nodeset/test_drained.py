"""Whether a worker may go: yes, no, or not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slinkytui.backend.controllers.nodeset.causes import is_ours
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Drain
from slinkytui.backend.controllers.nodeset.drained import Answer, judge, may_go
from slinkytui.backend.controllers.nodeset.world import SlurmSide
from slinkytui.backend.models import Job, Pod, SlurmNode
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import NOW, info, job, pod, record, slurm, world

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN

STATES = [
    case("L7 L8", "idle", record(0, "IDLE"), NO),
    case("L8", "mixed", record(0, "MIXED"), NO),
    case("L8", "down", record(0, "DOWN"), NO),
    case("L8", "idle and completing", record(0, "IDLE", "COMPLETING"), NO),
    case("L7 L8 X10", "idle and drained", record(0, "IDLE", "DRAIN"), YES),
    case("L8", "down and drained", record(0, "DOWN", "DRAIN"), YES),
    case("L8 X10", "mixed and drained", record(0, "MIXED", "DRAIN"), NO),
    case("L8", "allocated and drained", record(0, "ALLOCATED", "DRAIN"), NO),
    case("L8 X10", "drained and completing", record(0, "IDLE", "DRAIN", "COMPLETING"), NO),
    case("L8", "a drain that is being lifted", record(0, "IDLE", "DRAIN", "UNDRAIN"), NO),
    case("W1", "an unknown base state", record(0, "FUTURE", "DRAIN"), UNKNOWN),
    case("W1", "a record that could be read in part only", record(0, "IDLE", "DRAIN", flagged="state"), UNKNOWN),
    case("W35", "a record of another pod", record(0, "IDLE", "DRAIN", comment=info(7, "n7")), UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("node", "answer"), STATES)
def test_a_record_alone(node: SlurmNode, answer: Answer) -> None:
    assert judge(node, (), pod(0)).answer is answer


JOBS = [
    case("W55", "suspended", "SUSPENDED", NO), case("W55", "stopped", "STOPPED", NO),
    case("W55", "ended", "COMPLETED", YES),
    case("W54", "one that ended though the older list still has it running", "RUNNING", YES),
]  # fmt: skip


@pytest.mark.parametrize(("state", "answer"), JOBS)
def test_jobs_behind_a_drained_idle_node(state: str, answer: Answer) -> None:
    jobs: tuple[Job, ...] = (job(7, state, nodes="gpu-0"),)
    assert judge(record(0, "IDLE", "DRAIN"), jobs, pod(0)).answer is answer


def absent(since: float, *, others: bool = True) -> SlurmSide:
    side = slurm(*([record(9)] if others else []))
    return replace(side, absent={"gpu-0": since})


DRAINED = slurm(record(0, "IDLE", "DRAIN"))
KNOWN = [
    case("W1", "no client of the cluster", pod(0), slurm(why="no client"), UNKNOWN),
    case("W1", "no client though its last word was drained", pod(0), replace(DRAINED, why="no client"), UNKNOWN),
    case("W1", "the Controller is gone", pod(0), replace(DRAINED, expected=False), UNKNOWN),
    case("W1", "drained and known", pod(0), DRAINED, YES),
    case("K2 W7 W23", "one list lacks it", pod(0), absent(NOW), UNKNOWN),
    case("W7", "two lists five seconds apart lack it", pod(0), absent(NOW - 6), YES),
    case("W7", "an empty list proves nothing", pod(0), absent(NOW - 600, others=False), UNKNOWN),
    case("W23", "its slurmd has never run", pod(0, started=False), absent(NOW), YES),
    case("W1", "it has no Kubernetes node", pod(0, node=""), slurm(why="no client"), YES),
    case("W1", "it has ended", pod(0, phase="Failed"), slurm(why="no client"), YES),
]  # fmt: skip


@pytest.mark.parametrize(("one", "side", "answer"), KNOWN)
def test_what_is_known(one: Pod, side: SlurmSide, answer: Answer) -> None:
    assert may_go(one, "gpu", side).answer is answer


REASONS = [
    case("L10", "none: somebody drained it without a word", "", False), case("L10 X15", "with our prefix", "slurm-operator: Pod gone", True),
    case("L10", "foreign", "bad gpu", False), case("L10", "alike without its blank", "slurm-operator:x", False),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "ours"), REASONS)
def test_whose_reason(reason: str, ours: bool) -> None:
    assert is_ours(reason) is ours


SILENT = [
    case("L9", "down and not responding", record(0, "DOWN", reason="Not responding"), False),
    case("L9", "among other words", record(0, "DOWN", reason="Not responding to ping"), False),
    case("L9", "down for another reason", record(0, "DOWN", reason="bad gpu"), True),
    case("L9", "down without a reason", record(0, "DOWN"), True),
    case("L9", "the flag alone", record(0, "DOWN", "NOT_RESPONDING"), True),
    case("L9", "idle", record(0, "IDLE", reason="Not responding"), True),
    case("L9", "mixed", record(0, "MIXED", reason="Not responding"), True),
]  # fmt: skip


@pytest.mark.parametrize(("node", "drained"), SILENT)
def test_a_cordoned_worker_that_slurm_does_not_hear_of_is_left_alone(node: SlurmNode, drained: bool) -> None:
    decision = decide(world(pod(0, cordon=True), slurm_side=slurm(node)), NOW)
    assert any(isinstance(e, Drain) for e in decision.effects) is drained
