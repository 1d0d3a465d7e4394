"""One worker a Kubernetes node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Tell
from slinkytui.backend.controllers.nodeset.eligible import Fit, fit
from slinkytui.backend.controllers.nodeset.world import Spec, World
from slinkytui.backend.models import KubeNode, NodeId, Pod, SlurmNode
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import HASH_NOW, NOW, did, info, kube, pod, record, slurm, world


def daemon(name: str, at: int = 0, **more: Any) -> Pod:
    more.setdefault("host", f"n{at}")
    return pod(name, mode="DaemonSet", node=more.pop("node", f"n{at}"), pinned=f"n{at}", **more)


def known(at: int, by: str, *states: str, **more: Any) -> SlurmNode:
    """The record of the worker on node `n<at>`, by the name of its pod."""
    return msgspec.structs.replace(
        record(by, *states, **{"comment": info(by, f"n{at}"), **more}),
        id=NodeId("c", f"n{at}"),
    )


def daemons(
    *pods: Pod, nodes: tuple[KubeNode, ...] = (kube("n0"),), records: tuple[SlurmNode, ...] = (), **more: Any
) -> World:
    spec = {"mode": "DaemonSet", **more.pop("spec", {})}
    side = slurm(*(records or (known(int(p.pinned[1:]), p.id.name.removeprefix("gpu-")) for p in pods)))
    return replace(world(*pods, nodes=nodes, spec=spec, slurm_side=side, **more), nodes={n.id.name: n for n in nodes})


def leaves(name: str, node: str) -> list[str]:
    return [
        f"mark gpu-{name} causes=…,pod-cordon=true",
        f"drain {node}: slurm-operator: Pod (slurm/gpu-{name}) is pending termination for scale-in",
    ]


GPU = {"node_selector": {"kind": "gpu"}}
BAD = kube("n0", taints=("a=b:NoExecute",))
FULL = kube("n0", taints=("a=b:NoSchedule",))
BUSY = known(0, "b", "MIXED")
YOUNG: dict[str, Any] = {"created": NOW - 50}

CASES = [
    case("D1", "a failed one that terminates hides nobody", daemons(daemon("a", phase="Failed", ready=False, deleted=True), records=(known(9, "z"),)), ["create n0"]),
    case("D1", "a failed one counts until it is gone", daemons(daemon("a", phase="Failed", ready=False)), ["delete gpu-a"]),
    case("D1 W10", "a terminating one is waited for", daemons(daemon("a", deleted=True)), []),
    case("D1", "one that is not scheduled is known by its affinity", daemons(daemon("a", node="", phase="Pending", ready=False, started=False), records=(known(9, "z"),)), []),
    case("D3", "a node without one", daemons(nodes=(kube("n0"), kube("n1"))), ["create n0", "create n1"]),
    case("D4", "one that runs", daemons(daemon("a")), []),
    case("D5 W30", "failed", daemons(daemon("a", phase="Failed", ready=False)), ["delete gpu-a"]),
    case("D5 W30", "and back after a while", daemons(backoff={"n0": NOW + 5}), []),
    case("D6", "succeeded", daemons(daemon("a", phase="Succeeded", ready=False)), ["delete gpu-a"]),
    case("D7 W9", "of two the newer goes", daemons(daemon("a"), daemon("b", **YOUNG), records=(known(0, "z", comment=""),)), [*leaves("b", "n0"), "update n0 ['comment']"]),
    case("W9", "the busy one stays, however young", daemons(daemon("a"), daemon("b", labels={"nodeset.slinky.slurm.net/pod-protect": "true"}, **YOUNG), records=(BUSY,)),
        ["mark gpu-a causes=…,pod-cordon=true,pod-protect=true", leaves("a", "n0")[1]]),
    case("W9", "the registered one stays", daemons(daemon("a"), daemon("b", **YOUNG), records=(known(0, "b"),)), [*leaves("a", "n0")]),
    case("W9", "the ready one stays", daemons(daemon("a", ready=False), daemon("b", **YOUNG), records=(known(0, "z", comment=""),)), [*leaves("a", "n0"), "update n0 ['comment']"]),
    case("W9", "one without a machine drains nobody", daemons(daemon("a"), daemon("b", node="", phase="Pending", ready=False, started=False, **YOUNG), records=(known(0, "a"),)),
        ["mark gpu-b causes=…,pod-cordon=true", "delete gpu-b"]),
    case("D8 X25", "its labels no longer match", daemons(daemon("a"), spec=GPU), leaves("a", "n0")),
    case("D9", "no match, no pod", daemons(spec=GPU), []),
    case("D8", "a taint that evicts", daemons(daemon("a"), nodes=(BAD,)), leaves("a", "n0")),
    case("D9", "a taint that refuses keeps who is there", daemons(daemon("a"), nodes=(FULL,)), []),
    case("D8 W18", "a machine that cannot be seen changes nothing", daemons(daemon("a"), nodes=()), []),
    case("D8 W18", "nor one that is gone under a worker that runs", daemons(daemon("a"), daemon("b", 1), nodes=(kube("n1"),)), []),
    case("D8", "one that waits for a machine that is gone goes",
        daemons(daemon("a", node="", phase="Pending", ready=False, started=False), nodes=(kube("n1"),), records=(known(1, "z"),)), ["create n1", "mark gpu-a causes=…,pod-cordon=true", "delete gpu-a"]),
    case("W8", "no Controller makes nobody leave", daemons(daemon("a"), nodes=(kube("n0"), kube("n1")), refused="the Controller is not there"), []),
    case("W12", "a cordoned machine keeps its worker, drained", daemons(daemon("a"), nodes=(kube("n0", cordoned=True),)),
        ["mark gpu-a causes=…,pod-cordon=true", "drain n0: slurm-operator: Node (n0) was cordoned, Pod (slurm/gpu-a) must be cordoned"]),
    case("W12", "a lost one is not made on a cordoned machine", daemons(nodes=(kube("n0", cordoned=True),)), []),
    case("W12", "unless that is set", daemons(nodes=(kube("n0", cordoned=True),), create_on_cordoned=True), ["create n0"]),
    case("W13", "a machine that flaps keeps its worker", daemons(daemon("a"), nodes=(kube("n0", taints=("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")),)), []),
    case("D10 X36", "another host name", daemons(daemon("a"), nodes=(kube("n0", notes={"nodeset.slinky.slurm.net/hostname-override": "x"}),)), leaves("a", "n0")),
    case("W31", "a machine without a worker is away",
        daemons(daemon("a", hash="old"), nodes=(kube("n0"), kube("n1", cordoned=True)), spec={"max_unavailable": 1}), []),
    case("W31", "who stands where none is wanted makes up for nobody",
        daemons(daemon("a", hash="old"), daemon("b", 1), nodes=(kube("n0"), kube("n1", taints=("a=b:NoSchedule",)), kube("n2", cordoned=True)), spec={"max_unavailable": 1}), []),
]  # fmt: skip


@pytest.mark.parametrize(("found", "effects"), CASES)
def test_one_worker_a_node(found: World, effects: list[str]) -> None:
    assert found.update_hash == HASH_NOW
    assert [e for e in did(decide(found, NOW)) if "features" not in e] == effects


IN = {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["gpu"]}]}
FITS = [
    case("D2", "a plain node", kube("n0"), Spec(), True, True),
    case("D2", "another label", kube("n0", labels={"kind": "cpu"}), Spec(node_selector={"kind": "gpu"}), False, False),
    case("D2", "the label", kube("n0", labels={"kind": "gpu"}), Spec(node_selector={"kind": "gpu"}), True, True),
    case("D2", "affinity", kube("n0", labels={"kind": "gpu"}), Spec(required_terms=(IN,)), True, True),
    case("D2", "no affinity", kube("n0", labels={"kind": "cpu"}), Spec(required_terms=(IN,)), False, False),
    case("D2", "unschedulable without its taint", msgspec.structs.replace(kube("n0"), unschedulable=True), Spec(), True, True),
    case("W12", "pressure", kube("n0", taints=("node.kubernetes.io/disk-pressure:NoSchedule", "node.kubernetes.io/memory-pressure:NoSchedule",
         "node.kubernetes.io/pid-pressure:NoSchedule")), Spec(), True, True),
    case("W12", "no network", kube("n0", taints=("node.kubernetes.io/network-unavailable:NoSchedule",)), Spec(), False, True),
    case("W12", "no network, of its own", kube("n0", taints=("node.kubernetes.io/network-unavailable:NoSchedule",)), Spec(host_network=True), True, True),
    case("W8", "a term that cannot be read makes nobody leave",
         kube("n0"), Spec(required_terms=({"matchExpressions": [{"key": "kind", "operator": "Near", "values": ["x"]}]},)), False, True),
]  # fmt: skip


@pytest.mark.parametrize(("node", "spec", "run", "stay"), FITS)
def test_which_nodes_fit(node: KubeNode, spec: Spec, run: bool, stay: bool) -> None:
    found: Fit = fit(node, spec)
    assert (found.run, found.stay) == (run, stay)


@holds("D10")
def test_a_change_of_host_name_is_told() -> None:
    found = daemons(daemon("a"), nodes=(kube("n0", notes={"nodeset.slinky.slurm.net/hostname-override": "x"}),))
    told = [e for e in decide(found, NOW).effects if isinstance(e, Tell)]
    assert [(t.reason, t.text) for t in told] == [
        ("HostnameMismatch", 'Recreating daemon pod slurm/gpu-a: hostname changed from "n0" to "x"')
    ]
