"""The simulator's stand-in for the operator: sizes, events, what others make, and standing back from a real one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinkytui.backend.sim.nodesets import LEASE, NODES, NODESETS, PODS
from slinkytui.backend.sim.objects import BY_PLURAL, rfc3339
from slinkytui.backend.sim.scenario import load
from slinkytui.backend.sim.world import World

EVENTS, LEASES = BY_PLURAL["", "events"], BY_PLURAL["coordination.k8s.io", "leases"]


class Hand:
    """A world whose time a test moves."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0
        self.world = World(load("small"), lambda: self.time)
        self.objects = self.world.objects

    def go(self, seconds: float) -> None:
        """A second at a time, as the server does."""
        for _ in range(int(seconds)):
            self.time += 1
            self.world.step()

    def size(self, name: str, replicas: int) -> None:
        self.objects.change(NODESETS, ("slurm", name), {"spec": {"replicas": replicas}})

    def pods(self, name: str) -> list[str]:
        owned = self.objects.all(PODS, "slurm")
        return [k[1] for k, p in owned if p["metadata"]["labels"].get("app.kubernetes.io/instance") == name]

    def reasons(self, name: str) -> list[str]:
        return [e["reason"] for _, e in self.objects.all(EVENTS, "slurm") if e["involvedObject"]["name"] == name]

    def lead(self) -> None:
        """Somebody renews the operator's lease."""
        spec = {"holderIdentity": "other", "renewTime": rfc3339(self.time), "leaseDurationSeconds": 15}
        self.objects.put(LEASES, {"metadata": {"name": LEASE, "namespace": "slinky"}, "spec": spec})


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_a_scale_out_makes_pods_that_run_and_says_so(hand: Hand) -> None:
    hand.size("cpu", 5)
    hand.go(1)
    pod = hand.objects.get(PODS, "slurm", "cpu-4")
    assert pod is not None and pod["spec"]["nodeName"] == "node-cpu-4" and pod["status"]["phase"] == "Pending"
    hand.go(5)
    status = (hand.objects.get(NODESETS, "slurm", "cpu") or {})["status"]
    assert (status["replicas"], status["readyReplicas"], status["observedGeneration"]) == (5, 5, 2)
    assert "cpu-4" in hand.world.slurm.nodes
    assert {"ScalingUp", "SuccessfulCreate"} <= set(hand.reasons("cpu"))
    assert sorted(hand.reasons("cpu-4")) == ["Created", "Pulled", "Scheduled", "Started"]


def test_a_pod_on_a_cordoned_node_waits(hand: Hand) -> None:
    hand.objects.change(NODES, ("", "node-cpu-3"), {"spec": {"unschedulable": True}})
    hand.objects.change(PODS, ("slurm", "cpu-3"), {"metadata": {"deletionTimestamp": rfc3339(hand.time)}})
    hand.go(10)
    pod = hand.objects.get(PODS, "slurm", "cpu-3")
    assert pod is not None and "nodeName" not in pod["spec"] and hand.reasons("cpu-3").count("FailedScheduling") == 1
    hand.objects.change(NODES, ("", "node-cpu-3"), {"spec": {"unschedulable": False}})
    hand.go(6)
    assert (hand.objects.get(PODS, "slurm", "cpu-3") or {})["status"]["phase"] == "Running"


def test_a_nodeset_that_goes_takes_its_slurm_nodes_along(hand: Hand) -> None:
    hand.objects.drop(NODESETS, ("slurm", "cpu"))
    for name in hand.pods("cpu"):
        hand.objects.drop(PODS, ("slurm", name))
    hand.go(1)
    left = [n for n in hand.world.slurm.nodes.values() if n.features == ("cpu",)]
    assert all(n.down or not n.responding for n in left), "what has jobs is silent until they are given up"
    hand.go(1_000)
    assert not any(n.usable() for n in hand.world.slurm.nodes.values() if n.features == ("cpu",))


def test_it_stands_back_from_an_operator(hand: Hand) -> None:
    hand.lead()
    hand.size("cpu", 6)
    hand.go(5)
    assert len(hand.pods("cpu")) == 4
    status = copy.deepcopy((hand.objects.get(NODESETS, "slurm", "cpu") or {})["status"])
    made: dict[str, Any] = copy.deepcopy(hand.objects.get(PODS, "slurm", "cpu-0") or {})
    meta = {**made["metadata"], "name": "cpu-004"}
    for key in ("uid", "resourceVersion"):
        del meta[key]
    spec = {k: v for k, v in made["spec"].items() if k != "nodeName"}
    hand.lead()
    hand.objects.put(
        PODS, {"metadata": meta, "spec": {**spec, "hostname": "worker-004"}, "status": {"phase": "Pending"}}
    )
    hand.go(6)
    assert (hand.objects.get(PODS, "slurm", "cpu-004") or {})["status"]["phase"] == "Running", "its pods are run"
    assert "worker-004" in hand.world.slurm.nodes
    assert (hand.objects.get(NODESETS, "slurm", "cpu") or {})["status"] == status, "the status is the operator's"
    hand.objects.drop(PODS, ("slurm", "cpu-004"))
    hand.go(20)
    assert len(hand.pods("cpu")) == 6, "the lease has run out"


def test_equal_events_are_counted_and_old_ones_forgotten(hand: Hand) -> None:
    pod = hand.objects.get(PODS, "slurm", "cpu-0")
    assert pod is not None
    for _ in range(3):
        hand.world.recorder.say(pod, "BackOff", "again", by="kubelet", warning=True)
    (event,) = (e for _, e in hand.objects.all(EVENTS) if e["reason"] == "BackOff")
    assert (event["count"], event["type"], event["source"]) == (
        3,
        "Warning",
        {"component": "kubelet", "host": "node-cpu-0"},
    )
    for n in range(1_100):
        hand.world.recorder.say(pod, "Many", str(n), by="kubelet")
    assert len(hand.objects.table(EVENTS)) == 1_000
