"""What a worker's Slurm record should say, and which records go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.records import defunct, pod_info, read_info, repair
from slinkytui.backend.controllers.nodeset.world import Prune, World
from slinkytui.backend.models import Pod, SlurmNode
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, info, job, kube, pod, record, slurm, world

TOPOLOGY = {"topology.slinky.slurm.net/spec": "default:rack1"}
FEATURES = {"features.slinky.slurm.net/spec": "nn-x, GPU"}
OURS = "slurm-operator: Pod is terminating;"
SPACE = '{{"namespace":"slurm","podName":"gpu-0","node":"{}","nodeSetName":"gpu","nodeSetUID":"set"}}'


def mended(one: Pod, node: SlurmNode, notes: dict[str, str] | None = None, *, held: bool = False) -> dict[str, Any]:
    found = world(one, nodes=[kube("n0", notes=notes)])
    update = repair(one, node, found, NOW, held=held)
    return dict(update.body) if update is not None else {}


REPAIRS = [
    case("T2 L1", "a record without a note", pod(0), record(0, comment=""), None, {"comment": info(0)}),
    case("L2 W62", "a right one", pod(0), record(0), None, {}),
    case("L2 W62", "a right one in another spelling", pod(0), record(0, comment=json.dumps(json.loads(info(0)), indent=1)), None, {}),
    case("H12", "a note that is no note", pod(0), record(0, comment="{half"), None, {"comment": info(0)}),
    case("W11", "a note of an older release keeps a foreign drain", pod(0),
        record(0, "IDLE", "DRAIN", reason="bad gpu", comment='{"namespace":"slurm","podName":"gpu-0"}'), None, {"comment": info(0)}),
    case("L5 G1", "no topology anywhere", pod(0), record(0, topology=""), None, {}),
    case("L5 G1 X38", "the topology of its node", pod(0), record(0, topology=""), TOPOLOGY, {"topology_str": "default:rack1"}),
    case("L5 W45 W62", "a topology that is right", pod(0), record(0, topology="default:rack1"), TOPOLOGY, {}),
    case("L5 W45 X38", "a topology that was taken away", pod(0, notes=TOPOLOGY), record(0, topology="default:rack1"), None, {"topology_str": ""}),
    case("L6 G2 X37", "features are added and others kept in both sets", pod(0), record(0, features=("a",), active_features=("a", "plugin")), FEATURES,
        {"features": ["a", "k8s/GPU", "k8s/nn-x"], "features_act": ["a", "k8s/GPU", "k8s/nn-x", "plugin"]}),
    case("L6 G2 W45", "stale ones are replaced", pod(0), record(0, features=("k8s/old",), active_features=("k8s/old",)), FEATURES,
        {"features": ["k8s/GPU", "k8s/nn-x"], "features_act": ["k8s/GPU", "k8s/nn-x"]}),
    case("L6 G2 W45", "stale ones are dropped", pod(0), record(0, features=("a", "k8s/old"), active_features=("a", "k8s/old")), None,
        {"features": ["a"], "features_act": ["a"]}),
    case("L6 W62", "in sync", pod(0), record(0, features=("k8s/GPU", "k8s/nn-x"), active_features=("k8s/nn-x", "k8s/GPU")), FEATURES, {}),
    case("L6 G2", "nothing to do", pod(0), record(0, features=("a",), active_features=("a",)), None, {}),
    case("G2", "a token with an equals sign is whole", pod(0), record(0), {"features.slinky.slurm.net/spec": "a=b"},
        {"features": ["k8s/a=b"], "features_act": ["k8s/a=b"]}),
    case("W43", "its predecessor's farewell is over", pod(0, created=NOW - 40, ready_since=NOW - 2),
        record(0, "DOWN", reason=OURS, time=NOW - 60), None, {"state": ["RESUME"]}),
    case("W43", "also in the second of its birth", pod(0, created=NOW - 40, ready_since=NOW - 2),
        record(0, "DOWN", reason=OURS, time=NOW - 40), None, {"state": ["RESUME"]}),
    case("W43", "not before it is ready", pod(0, created=NOW - 40, ready=False), record(0, "DOWN", reason=OURS, time=NOW - 60), None, {}),
    case("W43", "not its own farewell that was just said", pod(0), record(0, "DOWN", reason=OURS, time=NOW - 10), None, {}),
    case("W43", "with clocks that differ after a while", pod(0, created=NOW - 300), record(0, "DOWN", reason=OURS, time=NOW - 290), None,
        {"state": ["RESUME"]}),
    case("W43", "what a person said stays", pod(0, created=NOW - 40, ready_since=NOW - 2), record(0, "DOWN", reason="bad gpu", time=NOW - 60), None, {}),
    case("W53", "never with an invalid registration", pod(0, created=NOW - 40), record(0, "DOWN", "INVALID_REG", reason=OURS, time=NOW - 60), None, {}),
    case("W11 X13", "moved, and silent for Slurm", pod(0), record(0, "DOWN", reason="Not responding", comment=SPACE.format("nX")), None,
        {"comment": info(0), "state": ["RESUME"]}),
    case("W11", "moved, and drained by somebody", pod(0), record(0, "DOWN", "DRAIN", reason="bad", comment=SPACE.format("nX")), None,
        {"comment": info(0)}),
]  # fmt: skip


@pytest.mark.parametrize(("one", "node", "notes", "body"), REPAIRS)
def test_one_request_makes_a_record_right(
    one: Pod, node: SlurmNode, notes: dict[str, str] | None, body: dict[str, Any]
) -> None:
    assert mended(one, node, notes) == body


@holds("L1", "T2", "H12")
def test_the_note_has_five_fields_in_upstreams_order() -> None:
    assert pod_info(pod(0), world(pod(0))) == info(0)
    assert list(read_info(info(0))) == ["namespace", "podName", "node", "nodeSetName", "nodeSetUID"]


TEXTS = [
    case("H12", "empty", "", {}), case("H12", "no object", "[1]", {}), case("H12", "cut off", '{"podName":"a', {}),
    case("H12", "some fields", '{"podName":"a"}', {"podName": "a"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), TEXTS)
def test_a_note_is_read_or_is_none(text: str, found: dict[str, Any]) -> None:
    assert read_info(text) == found


def ghost(*states: str, time: float = NOW - 100, reason: str = "Not responding", uid: str = "set") -> SlurmNode:
    note = f'{{"namespace":"slurm","podName":"gpu-5","node":"n5","nodeSetName":"gpu","nodeSetUID":"{uid}"}}'
    return record(5, *(states or ("DOWN", "NOT_RESPONDING")), comment=note, time=time, reason=reason)


def place(
    *records: SlurmNode,
    mode: str = "StatefulSet",
    prune: Prune = Prune.NOT_FOUND,
    nodes: Any = (),
    jobs: Any = None,
    why: str = "",
) -> World:
    return world(
        pod(0),
        slurm_side=slurm(record(0), *records, jobs=jobs, why=why),
        spec={"prune": prune, "mode": mode},
        nodes=nodes,
    )


FOREIGN = record(7, "DOWN", "NOT_RESPONDING", comment='{"namespace":"slurm","podName":"cpu-7","nodeSetName":"cpu"}')
GHOSTS = [
    case("G4 L19 W49 X34", "a ghost goes in either mode", place(ghost()), ["gpu-5"]),
    case("G4 L19", "a ghost of a daemon pod", place(ghost(), mode="DaemonSet"), ["gpu-5"]),
    case("W49", "that of a NodeSet made again under its name", place(ghost(uid="former")), ["gpu-5"]),
    case("G4 X34", "never, where it is so set", place(ghost(), prune=Prune.NEVER), []),
    case("G4 L19", "one with a living pod", place(record(0, "DOWN", "NOT_RESPONDING")), []),
    case("G4", "its machine is there", place(ghost(), mode="DaemonSet", nodes=[kube("n5", notes={"nodeset.slinky.slurm.net/hostname-override": "gpu-5"})]), []),
    case("G4", "the override leads elsewhere now", place(ghost(), mode="DaemonSet", nodes=[kube("n5", notes={"nodeset.slinky.slurm.net/hostname-override": "x"})]), ["gpu-5"]),
    case("L19", "one that is only down", place(ghost("DOWN")), []),
    case("L19", "one that is only silent", place(ghost("IDLE", "NOT_RESPONDING")), []),
    case("L19 W49", "another NodeSet's", place(FOREIGN), []),
    case("L19", "nobody's", place(record(7, "DOWN", "NOT_RESPONDING", comment="")), []),
    case("W49", "a busy one", place(ghost("DOWN", "NOT_RESPONDING", "COMPLETING")), []),
    case("W49", "one with a job", place(ghost(), jobs={5: (job(1),)}), []),
    case("W49", "one that somebody holds on to", place(ghost("DOWN", "NOT_RESPONDING", "DRAIN", reason="bad gpu")), []),
    case("W49", "a young one", place(ghost(time=NOW - 10)), []),
    case("W49 W3", "while Slurm is unknown", place(ghost(), why="no answer"), []),
]  # fmt: skip


@pytest.mark.parametrize(("found", "names"), GHOSTS)
def test_records_of_workers_that_are_gone_for_good(found: World, names: list[str]) -> None:
    assert [e.node for e in defunct(found, NOW)] == names
