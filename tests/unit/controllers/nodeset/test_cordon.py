"""Cordons: whose a drain is, who lifts it, and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.world import SlurmSide, Strategy, World
from tests.rules import case
from tests.unit.controllers.nodeset.test_decide import SCALE_IN, chosen
from tests.unit.controllers.nodeset.worlds import NOW, did, kube, pod, record, slurm, world

CORDONED = "slurm-operator: Pod (slurm/gpu-0) was cordoned"
MACHINE = "slurm-operator: Node (n0) was cordoned, Pod (slurm/gpu-0) must be cordoned"
BOTH = ["mark gpu-0 causes=…,pod-cordon=true"]
USER = '{"causes":{"user":{"since":1799999950}},"drain":true}'
KEY = "nodeset.slinky.slurm.net/pod-cordon"
LEFT = ["undrain gpu-0"]


def drained(reason: str, *states: str, **more: Any) -> SlurmSide:
    return slurm(record(0, *(states or ("IDLE", "DRAIN")), reason=reason, **more))


CASES = [
    case("N1 N12 N21 X16", "a cordoned machine drains", world(pod(0), nodes=[kube("n0", cordoned=True)]), [*BOTH, f"drain gpu-0: {MACHINE}"]),
    case("N3", "a marked pod drains", world(pod(0, cordon=True)), ["mark gpu-0 causes=…", f"drain gpu-0: {CORDONED}"]),
    case("N21", "pod and machine", world(pod(0, cordon=True), nodes=[kube("n0", cordoned=True)]), ["mark gpu-0 causes=…", f"drain gpu-0: {MACHINE}"]),
    case("N21", "neither", world(pod(0)), []),
    case("N4 W17", "a drain without words is not ours", world(pod(0), slurm_side=drained("")), []),
    case("N4 W17", "without words but with our note it is", world(chosen(0, "scale-in"), slurm_side=drained("")), LEFT),
    case("N5 W17", "words without a drain are nobody's", world(pod(0, cordon=True), slurm_side=slurm(record(0, reason="old words"))),
        ["mark gpu-0 causes=…", f"drain gpu-0: {CORDONED}"]),
    case("W17", "left over words of ours are replaced", world(pod(0, cordon=True), slurm_side=slurm(record(0, "MIXED", reason="slurm-operator: was uncordoned"))),
        ["mark gpu-0 causes=…,pod-protect=true", f"drain gpu-0: {CORDONED}"]),
    case("W17", "our prefix without our note is not ours to lift", world(pod(0), slurm_side=drained("slurm-operator: by hand")), []),
    case("N6 X14", "a silent node is left alone", world(pod(0), slurm_side=drained("Not responding to ping", "DOWN")), []),
    case("N13 N14 N15 W11 X12", "foreign words are never written over",
        world(pod(0), nodes=[kube("n0", cordoned=True)], slurm_side=drained("bad gpu")), BOTH),
    case("W17", "our own words follow a new cause",
        world(chosen(0, "node-cordon"), replicas=0, slurm_side=drained(MACHINE)), ["mark gpu-0 causes=…", f"drain gpu-0: {SCALE_IN.format(0)}", "delete gpu-0"]),
    case("N22", "a withdrawn cause is lifted", world(chosen(0, "node-cordon"), slurm_side=drained(MACHINE)), LEFT),
    case("N22", "while the machine is cordoned both stay",
        world(chosen(0, "node-cordon"), nodes=[kube("n0", cordoned=True)], slurm_side=drained(MACHINE)), []),
    case("N22", "down with our own farewell of before is resumed as a whole",
        world(chosen(0, "scale-in"), slurm_side=drained("slurm-operator: Pod is terminating", "DOWN", "DRAIN", time=NOW - 9_100)), ["update gpu-0 ['state']"]),
    case("N22 W11", "a foreign drain stays when ours is withdrawn", world(chosen(0, "scale-in"), slurm_side=drained("bad gpu")),
        ["mark gpu-0 causes=None,pod-cordon=None"]),
    case("N19 N20", "a note without a drain goes", world(chosen(0, "scale-in")), ["mark gpu-0 causes=None,pod-cordon=None"]),
    case("N18", "already cordoned", world(pod(0, cordon=True, causes=USER), slurm_side=drained(CORDONED)), []),
    case("N18 N19", "a pod that is going is left alone", world(pod(0, cordon=True, deleted=True), replicas=0), []),
    case("W4", "a person's mark outlives a withdrawn scale in",
        world(pod(0, cordon=True, causes='{"causes":{"scale-in":{"since":1},"user":{"since":1}},"drain":true}'), slurm_side=drained(SCALE_IN.format(0))),
        ["mark gpu-0 causes=…", f"drain gpu-0: {CORDONED}"]),
    case("W4", "a person's mark goes with the person", world(pod(0, causes=USER), slurm_side=drained(CORDONED)), LEFT),
    case("W4", "a cordon is lifted under OnDelete", world(chosen(0, "node-cordon"), spec={"strategy": Strategy.ON_DELETE}, slurm_side=drained(MACHINE)), LEFT),
    case("W4", "a scale in is lifted under ScheduledUpdate",
        world(chosen(0, "scale-in"), spec={"strategy": Strategy.SCHEDULED}, slurm_side=drained(SCALE_IN.format(0))), LEFT),
    case("W18", "an unseen machine lifts nothing", replace(world(chosen(0, "node-cordon"), slurm_side=drained(MACHINE)), nodes={}), []),
    case("W4", "while Slurm is unknown a mark is nobody's yet",
        world(pod(0, cordon=True), slurm_side=slurm(record(0, "IDLE", "DRAIN", reason=SCALE_IN.format(0)), why="timeout")), []),
    case("W53", "an invalid registration is not undrained", world(chosen(0, "node-cordon"), slurm_side=drained(MACHINE, "IDLE", "DRAIN", "INVALID_REG")), []),
    case("W17", "a drain of ours that is not listed keeps its note", world(pod(1), chosen(0, "node-cordon"), slurm_side=slurm(record(1))), []),
    *(case("W38", "every spelling of true drains", world(pod(0, notes={KEY: text})), ["mark gpu-0 causes=…", f"drain gpu-0: {CORDONED}"]) for text in ("True", "1", "t")),
    *(case("W38", "anything else drains nobody", world(pod(0, notes={KEY: text})), []) for text in ("yes", "false", "0")),
]  # fmt: skip


@pytest.mark.parametrize(("found", "effects"), CASES)
def test_a_cordon_and_its_end(found: World, effects: list[str]) -> None:
    assert did(decide(found, NOW)) == effects
