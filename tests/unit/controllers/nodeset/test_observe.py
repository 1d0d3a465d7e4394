"""One look at a NodeSet: what of it is not followed, whether Slurm is known, and what its cluster's workers share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.clusters import Clusters, Link
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Apply, DeletePod, Effect, PatchStatus, Tell
from slinkytui.backend.controllers.nodeset.index import Index
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.models import JobId, Key, Manifest, Meta, Source, Table
from slinkytui.backend.options import Options
from slinkytui.backend.store import Store
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, SET, job, pod, record, slurm, world

SLURM = Key("slurm", "slurm")


def manifest(kind: str, key: Key, spec: Any, uid: str = "set", **meta: Any) -> Manifest:
    about = {"name": key.name, "namespace": key.namespace, "uid": uid, **meta}
    body = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": about, "spec": spec}
    return Manifest(key, Meta(uid, "1", generation=3), msgspec.json.encode(body))


def nodeset(key: Key = SET, uid: str = "set", **spec: Any) -> Manifest:
    return manifest("NodeSet", key, {"controllerRef": {"name": "slurm"}, "slurmd": {"image": "slurmd"}, **spec}, uid)


class Eye:
    def __init__(self, *nodesets: Manifest, controller: bool = True) -> None:
        self.facts, self.held = Store(), Store()
        self.clusters = Clusters(Options(), self.facts, VirtualClock(), None)
        self.held.upsert(Table.NODESET_OBJECTS, "t", nodesets or [nodeset()])
        if controller:
            found = manifest(
                "Controller",
                SLURM,
                {"slurmKeyRef": {"name": "k", "key": "k"}, "jwtKeyRef": {"name": "j", "key": "j"}},
                "c",
            )
            self.held.upsert(Table.CONTROLLER_OBJECTS, "t", [found])
        self.observer = Observer(self.facts, self.held, self.clusters, VirtualClock())

    def look(self) -> tuple[World, list[Effect]]:
        found, _, more = self.observer.observe(SET)
        assert found is not None
        return found, list(more)


def degraded(found: World, more: list[Effect]) -> str:
    wrote = [e.status for e in (*more, *decide(found, NOW).effects) if isinstance(e, PatchStatus)]
    return next(str(c["message"]) for c in wrote[-1]["conditions"] if c["type"] == "Degraded" and c["status"] == "True")


DOUBTS = [
    case("W60", "a limit that lets nobody go", {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        "spec.updateStrategy.rollingUpdate.maxUnavailable: 0 lets no worker go"),
    case("W60 T9", "a scheduled update", {"updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": {"startTime": "2027-01-15T08:00:00Z"}}},
        "spec.updateStrategy.type: ScheduledUpdate is refused"),
    case("W60", "words that are no words", {"extraConf": "Weight"}, "spec.extraConf: 'Weight' is no Key=Value"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), DOUBTS)
def test_what_is_not_followed_is_on_a_condition_and_told_once(spec: dict[str, Any], words: str) -> None:
    found, more = Eye(nodeset(**spec)).look()
    assert words in degraded(found, more)
    assert [t.reason for t in more if isinstance(t, Tell) and words in t.text] == ["DoubtfulSpec"]
    said = next(e.status for e in decide(found, NOW).effects if isinstance(e, PatchStatus))
    body = msgspec.json.decode(nodeset(**spec).body)
    again = Manifest(SET, Meta("set", "2", generation=3), msgspec.json.encode({**body, "status": said}))
    assert [e for e in Eye(again).look()[1] if isinstance(e, Tell)] == []


BAD = [
    case("W60", "replicas that are no number", {"replicas": "many"}, "spec.replicas"),
    case("W60", "a template that is no object", {"template": 7}, "spec.template"),
    case("W60", "no controller", {"controllerRef": None}, "spec.controllerRef"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "field"), BAD)
def test_a_resource_that_cannot_be_read_ends_no_loop_and_names_its_field(spec: dict[str, Any], field: str) -> None:
    found, more = Eye(nodeset(**spec)).look()
    assert decide(found, NOW).effects == ()
    assert field in degraded(found, more)
    assert [t.reason for t in more if isinstance(t, Tell)] == ["BadSpec"]


@holds("W1", "H5", "H6")
def test_without_a_client_slurm_is_unknown_and_not_empty() -> None:
    eye = Eye()
    found, _ = eye.look()
    assert not found.slurm.known
    assert "no client" in found.slurm.why
    assert found.slurm.expected


@holds("W1", "H6")
def test_without_a_controller_nobody_is_asked_and_no_pod_is_made() -> None:
    found, _ = Eye(controller=False).look()
    assert not found.slurm.expected
    assert "slurm/slurm is not there" in found.refused


@holds("H5", "W22")
def test_a_client_that_is_replaced_or_gone_is_not_used_any_more() -> None:
    eye = Eye()
    assert eye.observer.client("c") is None
    eye.clusters.links["a"] = Link("a", "http://a", "test", name="c", controller=SLURM)
    assert eye.observer.cluster_of(SLURM) == "c"
    eye.clusters.links["a"] = Link("a", "http://b", "test", name="d", controller=SLURM)
    assert eye.observer.cluster_of(SLURM) == "d"
    del eye.clusters.links["a"]
    assert eye.observer.cluster_of(SLURM) == ""


def live(source: str, state: str = "live", error: str = "") -> Source:
    return Source(f"slurm/c/{source}", state, last_success=NOW, error=error)


FRESH = [
    case("W54", "nodes and jobs are fresh", [live("nodes"), live("jobs")], True),
    case("W54", "the jobs are old", [live("nodes"), live("jobs", "stale", "no answer")], False),
    case("W54", "the jobs have not been read", [live("nodes")], False),
    case("W22 W54", "the nodes are old", [live("nodes", "stale", "no answer"), live("jobs")], False),
]  # fmt: skip


@pytest.mark.parametrize(("sources", "known"), FRESH)
def test_both_lists_have_to_be_fresh_for_one_decision(sources: list[Source], known: bool) -> None:
    facts = Store()
    for source in sources:
        facts.upsert(Table.SOURCES, source.name, [source])
    assert Index(facts).slurm("c", expected=True, why="", wanted=()).known is known


def held_as(effect: Apply) -> Manifest:
    body = dict(effect.body)
    meta = Meta("u", "1", owner_kind="NodeSet")
    return Manifest(Key("slurm", body["metadata"]["name"]), meta, msgspec.json.encode(body))


def applied(more: list[Effect]) -> dict[str, Apply]:
    return {e.plural: e for e in more if isinstance(e, Apply)}


TABLES = {"services": Table.SERVICES, "poddisruptionbudgets": Table.BUDGETS}


@holds("W33", "W62", "H9")
def test_shared_objects_are_made_left_alone_and_mended() -> None:
    eye = Eye()
    made = applied(eye.look()[1])
    assert not any(made[p].exists for p in TABLES)
    for plural, table in TABLES.items():
        eye.held.upsert(table, "t", [held_as(made[plural])])
    assert not set(applied(eye.look()[1])) & set(TABLES)
    drifted = {**made["services"].body, "spec": {**made["services"].body["spec"], "clusterIP": "10.0.0.1"}}
    eye.held.upsert(Table.SERVICES, "t", [held_as(Apply("services", drifted, True))])
    (patch,) = (e for p, e in applied(eye.look()[1]).items() if p in TABLES)
    assert patch.exists
    assert patch.body["spec"]["clusterIP"] == "None"


@holds("W33")
def test_references_of_nodesets_that_are_gone_are_dropped() -> None:
    eye = Eye(nodeset(), nodeset(Key("slurm", "cpu"), "cpu-uid"))
    both = applied(eye.look()[1])["services"]
    assert [o["name"] for o in both.body["metadata"]["ownerReferences"]] == ["cpu", "gpu"]
    eye.held.upsert(Table.SERVICES, "t", [held_as(both)])
    eye.held.remove(Table.NODESET_OBJECTS, "t", [Key("slurm", "cpu")])
    again = applied(eye.look()[1])["services"]
    assert [o["name"] for o in again.body["metadata"]["ownerReferences"]] == ["gpu"]


REGISTERED = [
    case("G3 L13", "all are there", slurm(record(0), record(1))),
    case("G3 W7", "one is missing in the list", slurm(record(0))),
    case("G3 W7", "the list is empty", slurm()),
    case("G3 W1", "no client", slurm(why="no client")),
]  # fmt: skip


@pytest.mark.parametrize("side", REGISTERED)
def test_a_healthy_worker_that_is_wanted_is_not_deleted_for_what_a_list_lacks(side: Any) -> None:
    found = decide(world(pod(0), pod(1), slurm_side=side), NOW)
    assert [e for e in found.effects if isinstance(e, DeletePod)] == []


@holds("L11", "L13")
def test_nodes_of_other_nodesets_are_not_counted() -> None:
    found = world(pod(0), slurm_side=slurm(record(0), record("x"), record("y", "DOWN")))
    status = next(e.status for e in decide(found, NOW).effects if isinstance(e, PatchStatus))
    assert (status["slurmIdle"], status["slurmDown"]) == (1, 0)


@holds("W42")
def test_a_job_whose_nodes_cannot_be_read_hides_no_other() -> None:
    facts = Store()
    broken = msgspec.structs.replace(job(1, nodes="gpu-[0"), nodes="gpu-[0")
    facts.upsert(Table.JOBS, "t", [broken, job(2, nodes="gpu-0")])
    assert [j.id for j in Index(facts).slurm("c", expected=True, why="", wanted=()).jobs["gpu-0"]] == [JobId("c", 2)]
