"""Which NodeSets a change wakes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.controllers.nodeset.wakes import Wakes
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.models import (
    Because,
    Controller,
    Decided,
    Job,
    Key,
    KubeNode,
    Manifest,
    Meta,
    NodeId,
    Pod,
    Row,
    RowId,
    Table,
)
from slinkytui.backend.options import Options
from slinkytui.backend.store import Store
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, SET, job, kube, pod, record

CPU = Key("slurm", "cpu")
PLAIN = Key("slurm", "n0")


def nodeset(key: Key = SET, controller: str = "slurm", mode: str = "StatefulSet") -> Manifest:
    spec = {"controllerRef": {"name": controller}, "scalingMode": mode, "slurmd": {"image": "slurmd"}}
    body = {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet",
        "metadata": {"name": key.name, "namespace": key.namespace, "uid": "set"}, "spec": spec,
    }  # fmt: skip
    return Manifest(key, Meta("set" if key == SET else key.name, "1"), msgspec.json.encode(body))


class Bench:
    """Stores with NodeSets and facts, and who is woken by a change of them."""

    def __init__(self, *nodesets: Manifest) -> None:
        self.facts, self.held, self.decisions, clock = Store(), Store(), Store(), VirtualClock()
        self.held.upsert(Table.NODESET_OBJECTS, "t", nodesets or [nodeset()])
        clusters = Clusters(Options(), self.facts, clock, None)
        self.expected = Expectations(clock)
        self.wakes = Wakes(
            self.facts, self.held, self.decisions, Observer(self.facts, self.held, clusters, clock), self.expected
        )

    def put(self, table: Table, *rows: Row) -> Bench:
        self.facts.upsert(table, "t", rows)
        return self

    def woken(self, table: Table, *ids: RowId) -> list[str]:
        return sorted(k.name for k in self.wakes.woken({table: ids}))


CONTROLLERS = [
    case("H1", "no NodeSet of it", [nodeset(controller="other")], []),
    case("H1", "one of the two controllers' sets", [nodeset(), nodeset(CPU, "other")], ["gpu"]),
    case("H1", "two sets", [nodeset(), nodeset(CPU)], ["cpu", "gpu"]),
    case("H1", "none in another namespace", [nodeset(Key("else", "gpu"))], []),
]  # fmt: skip


@pytest.mark.parametrize(("nodesets", "woken"), CONTROLLERS)
def test_a_controller_wakes_the_nodesets_that_refer_to_it(nodesets: list[Manifest], woken: list[str]) -> None:
    assert Bench(*nodesets).woken(Table.CONTROLLER_OBJECTS, Key("slurm", "slurm")) == woken


NODES = [
    case("H2 W20", "a node with a worker", [nodeset()], [pod(0)], ["gpu"]),
    case("H2", "a node without one", [nodeset()], [pod(1)], []),
    case("H2 W20", "one pod a node: every node, also a new or lost one", [nodeset(mode="DaemonSet")], [], ["gpu"]),
]  # fmt: skip


@pytest.mark.parametrize(("nodesets", "pods", "woken"), NODES)
def test_a_kubernetes_node_wakes_whom_it_concerns(
    nodesets: list[Manifest], pods: Iterable[Pod], woken: list[str]
) -> None:
    assert Bench(*nodesets).put(Table.PODS, *pods).woken(Table.KUBENODES, PLAIN) == woken


CHANGES = [
    case("H2", "nothing", kube("n0"), False), case("H2 W20", "cordoned", kube("n0", cordoned=True), True),
    case("H2 W20", "labelled", kube("n0", labels={"a": "b"}), True), case("H2 W20", "annotated", kube("n0", notes={"a": "b"}), True),
    case("H2 W20", "tainted", kube("n0", taints=("a:NoSchedule",)), True),
]  # fmt: skip


@pytest.mark.parametrize(("new", "told"), CHANGES)
def test_a_node_is_heard_of_when_it_matters(new: KubeNode, told: bool) -> None:
    store = Store()
    store.upsert(Table.KUBENODES, "t", [kube("n0")])
    changes = store.watch((Table.KUBENODES,))
    changes.take()
    store.upsert(Table.KUBENODES, "t", [new])
    assert bool(changes.take().get(Table.KUBENODES)) is told


def orphan(name: str) -> Pod:
    found = pod(0)
    return msgspec.structs.replace(
        found,
        id=SET._replace(name=name),
        meta=msgspec.structs.replace(found.meta, owner_uid="", owner_kind="", owner_name=""),
    )


@holds("H3")
def test_a_pod_wakes_its_owner_and_one_of_nobody_only_who_made_it() -> None:
    bench = Bench().put(Table.PODS, pod(0))
    assert bench.woken(Table.PODS, pod(0).id) == ["gpu"]
    foreign = orphan("web-0")
    foreign = msgspec.structs.replace(foreign, meta=msgspec.structs.replace(foreign.meta, labels=()))
    assert bench.put(Table.PODS, foreign).woken(Table.PODS, foreign.id) == []


@holds("H3")
def test_what_was_never_seen_wakes_nobody() -> None:
    assert Bench().woken(Table.PODS, Key("slurm", "gpu-9")) == []


@holds("H3", "W32")
def test_a_pod_that_is_seen_or_gone_is_no_longer_expected() -> None:
    bench, one = Bench(), pod(0)
    with bench.expected.creating("set") as creation:
        creation.made(one.meta.uid)
    assert bench.expected.pending("set")
    bench.put(Table.PODS, one).woken(Table.PODS, one.id)
    assert not bench.expected.pending("set")
    with bench.expected.deleting("set", one.meta.uid):
        pass
    assert bench.expected.pending("set")
    bench.facts.remove(Table.PODS, "t", [one.id])
    assert bench.woken(Table.PODS, one.id) == ["gpu"]
    assert not bench.expected.pending("set")


@holds("W20")
def test_news_of_slurm_wake_the_nodeset_of_the_node() -> None:
    bench = Bench().put(Table.PODS, marked(pod(0))).put(Table.NODES, record(0))
    bench.put(Table.CONTROLLERS, Controller(Key("slurm", "slurm"), Meta("c", "1")))
    named = NodeId("", "gpu-0")
    assert bench.woken(Table.NODES, named) == ["gpu"]
    assert bench.woken(Table.NODES, NodeId("", "other")) == []
    one = job(7, nodes="gpu-0")
    bench.put(Table.JOBS, msgspec.structs.replace(one, id=one.id._replace(cluster="")))
    rows = [i for i, r in bench.facts.rows(Table.JOBS).items() if isinstance(r, Job)]
    assert bench.woken(Table.JOBS, *rows) == ["gpu"]


def marked(one: Pod) -> Pod:
    labels = {**dict(one.meta.labels), "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "gpu"}
    return msgspec.structs.replace(one, meta=msgspec.structs.replace(one.meta, labels=tuple(sorted(labels.items()))))


@holds("W20", "W1")
def test_who_waits_for_slurm_is_woken_when_it_answers() -> None:
    bench = Bench()
    bench.decisions.upsert(
        Table.DECISIONS,
        "nodeset",
        [Decided(SET, "nodeset", NOW, (), (Because("", "no client", None, True),), None, "", "r", None)],
    )
    assert bench.woken(Table.SOURCES, Key("", "slurm/c/nodes")) == ["gpu"]
    assert bench.woken(Table.SOURCES, Key("", "kubernetes/pods")) == []


@holds("W33")
def test_a_shared_object_that_is_deleted_wakes_the_nodesets_of_its_namespace() -> None:
    bench = Bench(nodeset(), nodeset(Key("else", "gpu2")))
    assert bench.woken(Table.SERVICES, Key("slurm", "slurm-workers")) == ["gpu"]
    assert bench.woken(Table.BUDGETS, Key("slurm", "slurm-workers")) == ["gpu"]


@holds("H17")
def test_pods_are_found_by_their_owner_and_by_their_slurm_name() -> None:
    bench = Bench().put(Table.PODS, marked(pod(0)), pod(1, node=""))
    index = bench.wakes._observer.index
    assert [p.id.name for p in index.pods_of("set")] == ["gpu-0", "gpu-1"]
    assert index.pods_of("other") == ()
    assert index.nodeset_of(NodeId("c", "gpu-0"), {"c": ("slurm",)}) == [SET]
