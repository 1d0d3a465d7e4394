"""Which pods are ours, which orphans become ours, and what is asked of the server for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.adoption import adoptions, is_orphan_of, is_orphan_revision
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import (
    Adopt,
    CreatePod,
    DeletePod,
    Effect,
    OwnClaim,
    PatchPod,
)
from slinkytui.backend.controllers.nodeset.index import Index
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.kube import wire
from slinkytui.backend.models import Key, Manifest, Meta, Pod, Table
from slinkytui.backend.sim.nodesets import PODS
from slinkytui.backend.store import Store
from tests.rules import case, holds
from tests.unit.controllers.nodeset.desk import Builder, Desk
from tests.unit.controllers.nodeset.worlds import NOW, did, kube, pod, world
from tests.unit.controllers.virtual import in_virtual_time

API = "slinky.slurm.net/v1beta1"
HASHED = {"controller.kubernetes.io/hash": "h"}


def marks(nodeset: str, **more: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": nodeset, **more}


def owner(name: str, uid: str, controller: bool = True) -> dict[str, Any]:
    found = {"apiVersion": API, "kind": "NodeSet", "name": name, "uid": uid, "blockOwnerDeletion": True}
    return {**found, **({"controller": True} if controller else {})}


def row(name: str, *owners: dict[str, Any], labels: Mapping[str, str] | None = None, **meta: Any) -> Pod:
    """A pod as the server gives it."""
    found = {
        "metadata": {
            "name": name, "namespace": "slurm", "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels,
            "ownerReferences": list(owners) or None, "annotations": None, **meta,
        },
        "spec": {"hostname": name}, "status": {"phase": "Running"},
    }  # fmt: skip
    return wire.pod_row(msgspec.convert(found, wire.WirePod))


def seen(*pods: Pod) -> Index:
    store = Store()
    store.upsert(Table.PODS, "test", list(pods))
    return Index(store)


OWN = row("foo-0", owner("foo", "u"), labels=marks("foo"))


@pytest.mark.parametrize(
    ("pods", "ours"),
    [
        case("C1 X26", "ours beside a blank one", [OWN, row("blank")], ["foo-0"]),
        case("C2 X26", "its controller is ours", [OWN], ["foo-0"]),
        case("C3 X4", "of another set", [row("foo-0", owner("bar", "v"), labels=marks("bar"))], []),
        case("C4 X4", "a name that begins alike", [row("foo-gpu-1234", owner("foo-gpu", "v"), labels=marks("foo-gpu"))], []),
        case("C7", "a set of this name in the past", [row("foo-0", owner("foo", "old"), labels=marks("foo"))], []),
        case("C8", "it owns without being controller", [row("foo-0", owner("foo", "u", controller=False), labels=marks("foo"))], []),
        case("C2", "beside other owners", [row("foo-0", owner("x", "v", controller=False), owner("foo", "u"))], ["foo-0"]),
    ],
)  # fmt: skip
def test_the_pods_of_a_nodeset(pods: list[Pod], ours: list[str]) -> None:
    assert [p.id.name for p in seen(*pods).pods_of("u")] == ours


ORPHANS = [
    case("C6", "an ordinal", row("foo-0", labels=marks("foo", **HASHED)), True),
    case("C5", "an ordinal of another set", row("foo-gpu-1234", labels=marks("foo", **HASHED)), False),
    case("C9", "a daemon", row("foo-x4f2z", labels=marks("foo", **HASHED), generateName="foo-"), True),
    case(
        "C10",
        "a daemon of another set",
        row("foo-gpu-x4", labels=marks("foo", **HASHED), generateName="foo-gpu-"),
        False,
    ),
    case("C8", "it has an owner", row("foo-0", owner("foo", "u"), labels=marks("foo", **HASHED)), False),
    case("W27", "no revision", row("foo-0", labels=marks("foo")), False),
    case("W24 W27", "no labels at all", row("foo-0"), False),
    case("W27", "labels of another set", row("foo-0", labels=marks("bar", **HASHED)), False),
    case("W27", "no worker", row("foo-0", labels={"app.kubernetes.io/instance": "foo", **HASHED}), False),
]


@pytest.mark.parametrize(("found", "ours"), ORPHANS)
def test_which_orphans_are_ours(found: Pod, ours: bool) -> None:
    assert is_orphan_of(found, "foo") is ours
    assert [p.id.name for p in seen(found).orphans_of(Key("slurm", "foo"))] == ([found.id.name] if ours else [])


def test_an_orphan_that_goes_is_left_to_go() -> None:
    gone = row("foo-0", labels=marks("foo", **HASHED), deletionTimestamp="2027-01-15T08:00:00Z")
    assert list(adoptions([gone], [])) == []


def revision(labels: dict[str, str], owner_uid: str = "") -> Manifest:
    meta = Meta("r1", "5", labels=tuple(sorted(labels.items())), owner_uid=owner_uid)
    return Manifest(Key("slurm", "foo-abc"), meta, b"{}")


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        case("R3", "our labels", revision(marks("foo")), True),
        case("R2", "not our labels", revision(HASHED), False),
        case("R2", "another set's labels", revision(marks("bar")), False),
        case("R2", "somebody owns it", revision(marks("foo"), "v"), False),
    ],
)
def test_which_revisions_are_taken_in(found: Manifest, ours: bool) -> None:
    assert is_orphan_revision(found, "foo") is ours


@holds("R1")
def test_without_orphans_nobody_is_adopted() -> None:
    assert list(adoptions((), ())) == []


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        case("W34", "another set's", row("bar-0", owner("bar", "v"), labels=marks("bar")), {"bar-0": "bar-0"}),
        case("W34", "an orphan holds its name", row("bar-0", labels=marks("bar")), {"bar-0": "bar-0"}),
        case("W34", "in another cluster", row("bar-0", owner("bar", "v"), labels=marks("bar", **{"slinky.slurm.net/cluster": "x"})), {}),
        case("", "our own", row("foo-0", owner("foo", "u"), labels=marks("foo")), {}),
        case("", "no worker", row("web-0"), {}),
    ],
)  # fmt: skip
def test_the_slurm_names_of_others(mine: Pod, expected: dict[str, str]) -> None:
    assert seen(mine).taken("slurm", "u", "ctl") == expected


DAEMON = {"mode": "DaemonSet"}


CLASHES = [
    case("W34", "two machines whose names begin alike", world(replicas=0, spec=DAEMON, nodes=[kube("a.x"), kube("a.y")]),
         ["create a.x"], "a.y: no pod is made: a.x gives the Slurm name a, too"),
    case("W34", "one of them has its worker",
         world(pod("r", mode="DaemonSet", node="a.x", host="a"), spec=DAEMON, nodes=[kube("a.x"), kube("a.y")]),
         [], "a.y: no pod is made: the Slurm name a belongs to pod gpu-r already"),
    case("W34", "two sets on one machine", world(replicas=0, spec=DAEMON, nodes=[kube("a")], taken={"a": "cpu-r"}),
         [], "a: no pod is made: the Slurm name a belongs to pod cpu-r already"),
    case("W34", "the prefix keeps them apart",
         world(replicas=0, spec={**DAEMON, "daemon_prefix": "gpu-"}, nodes=[kube("a")], taken={"a": "cpu-r"}), ["create a"], ""),
    case("W34", "two sets with one prefix", world(replicas=1, spec={"host_prefix": "w"}, taken={"w0": "cpu-0"}),
         [], "ordinal 0: no pod is made: the Slurm name w0 belongs to pod cpu-0 already"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "effects", "trouble"), CLASHES)
def test_the_second_worker_of_a_slurm_name_is_not_made(found: World, effects: list[str], trouble: str) -> None:
    decision = decide(found, NOW)
    assert [e for e in did(decision) if e.startswith("create")] == effects
    status = next(e.status for e in decision.effects if type(e).__name__ == "PatchStatus")  # type: ignore[union-attr]
    told = {c["type"]: c for c in status["conditions"]}
    assert told["Degraded"]["message"] == trouble
    events = [e.text for e in decision.effects if type(e).__name__ == "Tell" and e.reason == "NameCollision"]  # type: ignore[union-attr]
    assert events == ([trouble] if trouble else [])


@holds("W24")
@pytest.mark.parametrize("deleting", [False, True])
def test_a_pod_that_says_nothing_of_itself_stops_nobody(deleting: bool) -> None:
    """Neither labels nor annotations nor a phase: the others are dealt with all the same."""
    nothing = replace(world(pod(0), replicas=3), deleting=deleting)
    blank = msgspec.structs.replace(row("gpu-1", owner("gpu", "set")), phase="")
    found = replace(nothing, pods=(blank, *nothing.pods))
    effects = did(decide(found, NOW))
    assert effects
    assert any("gpu-0" in e or "create" in e for e in effects)


# -- what is asked of the server


def orphan(desk: Desk, name: str = "gpu-0") -> Adopt:
    made = desk.put("pods", name, {"labels": marks("gpu", **HASHED)}, spec={"containers": [{"name": "slurmd"}]})
    return Adopt("pods", name, made["metadata"]["uid"], made["metadata"]["resourceVersion"])


def mine(desk: Desk, found: World, **meta: Any) -> World:
    """The world of the NodeSet that the server has."""
    made = desk.put("nodesets", "gpu", meta, spec={})
    return replace(found, uid=made["metadata"]["uid"])


@holds("W52", "C6")
@in_virtual_time
async def test_an_orphan_gets_its_controller() -> None:
    desk = Desk()
    found, effect = mine(desk, world()), orphan(desk)
    out = await desk.carry_out(found, [effect])
    assert [d.error for d in out.did] == [""]
    assert desk.get("pods", "gpu-0")["metadata"]["ownerReferences"] == [owner("gpu", found.uid)]
    assert desk.expected.pending(found.uid), "until it is seen to be ours nothing is decided"


@holds("W52")
@pytest.mark.parametrize("meta", [{}, {"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": ["x/y"]}])
@in_virtual_time
async def test_a_nodeset_that_the_server_no_longer_has_adopts_nobody(meta: dict[str, Any]) -> None:
    """The cache still has the old one: the server is asked."""
    desk = Desk()
    found = mine(desk, world(), **meta)
    found = found if meta else replace(found, uid="old")
    out = await desk.carry_out(found, [orphan(desk)])
    assert "ownerReferences" not in desk.get("pods", "gpu-0")["metadata"]
    assert desk.sent == []
    assert "is not adopted" in out.retry


@holds("R3", "W52")
@in_virtual_time
async def test_an_orphan_revision_gets_its_controller() -> None:
    desk = Desk()
    found = mine(desk, world())
    made = desk.put("controllerrevisions", "gpu-abc", {"labels": marks("gpu")}, revision=1)["metadata"]
    await desk.carry_out(found, [Adopt("controllerrevisions", "gpu-abc", made["uid"], made["resourceVersion"])])
    assert desk.get("controllerrevisions", "gpu-abc")["metadata"]["ownerReferences"] == [owner("gpu", found.uid)]
    assert not desk.expected.pending(found.uid)


STALE = [
    case("W26 V16", "adopt another pod of the name", lambda one: Adopt("pods", "gpu-0", "other", one.meta.version)),
    case("W26 V16", "mark another pod of the name", lambda one: PatchPod(one, {"a": "b"}, guarded=False)),
]


@pytest.mark.parametrize("effect", STALE)
@in_virtual_time
async def test_a_successor_of_the_name_is_not_touched(effect: Any) -> None:
    desk = Desk()
    found = mine(desk, world())
    desk.put("pods", "gpu-0", {"labels": {"x": "y"}})
    await desk.carry_out(found, [effect(pod(0))])
    meta = desk.get("pods", "gpu-0")["metadata"]
    assert (meta["labels"], meta.get("ownerReferences")) == ({"x": "y"}, None)


def claim(desk: Desk, owners: tuple[dict[str, Any], ...], version: str = "") -> OwnClaim:
    made = desk.put("persistentvolumeclaims", "data-gpu-0")["metadata"]
    return OwnClaim(pod(0), "data-gpu-0", made["uid"], version or made["resourceVersion"], owners)


@holds("V5", "V16", "W16")
@in_virtual_time
async def test_a_claim_gets_its_owner_before_its_worker_goes() -> None:
    desk = Desk()
    found = mine(desk, world(pod(0)))
    made = desk.put("pods", "gpu-0")["metadata"]
    one = msgspec.structs.replace(pod(0), meta=msgspec.structs.replace(pod(0).meta, uid=made["uid"]))
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "gpu-0", "uid": made["uid"], "controller": True}
    effects: list[Effect] = [DeletePod(one, "", "scale-in", forced=True), claim(desk, (ref,))]
    await desk.carry_out(found, effects)
    assert desk.sent == ["PATCH persistentvolumeclaims/data-gpu-0", "DELETE pods/gpu-0"]
    assert desk.get("persistentvolumeclaims", "data-gpu-0") == {}, "it went with its worker"


@holds("W16", "V5")
@in_virtual_time
async def test_a_worker_stays_while_its_claim_cannot_be_given_to_it() -> None:
    """A reference made from an old look at the claim is refused, and the deletion waits for the next one."""
    desk = Desk()
    found = mine(desk, world(pod(0)))
    desk.put("pods", "gpu-0")
    out = await desk.carry_out(found, [DeletePod(pod(0), "", "scale-in", forced=True), claim(desk, (), version="1")])
    assert not [s for s in desk.sent if s.startswith("DELETE")]
    assert out.retry


@holds("V5", "V4")
@in_virtual_time
async def test_a_claim_that_is_gone_needs_no_owner() -> None:
    desk = Desk()
    found = mine(desk, world(pod(0)))
    out = await desk.carry_out(found, [OwnClaim(pod(0), "data-gpu-0", "u", "1", ())])
    assert (out.retry, out.refused, out.failed) == ("", [], set())


@holds("V1", "V7", "V16", "X31")
@in_virtual_time
async def test_a_worker_is_made_after_its_claims_and_twice_is_once() -> None:
    desk = Desk()
    found = mine(desk, world())
    builder = Builder(["data", "scratch"])
    out = await desk.carry_out(found, [CreatePod(0)], builder)
    kinds = [s.split("/")[-1] for s in desk.sent]
    assert kinds == ["persistentvolumeclaims", "persistentvolumeclaims", "pods"]
    assert [d.error for d in out.did] == [""]
    again = await desk.carry_out(found, [CreatePod(0)], builder)
    assert (again.retry, again.refused) == ("", [])
    assert len(list(desk.objects.all(PODS, "slurm"))) == 1


@holds("V2", "V16")
@in_virtual_time
async def test_a_worker_that_is_gone_already_is_deleted() -> None:
    desk = Desk()
    found = mine(desk, world(pod(0)))
    out = await desk.carry_out(found, [DeletePod(pod(0), "", "gone", forced=True), PatchPod(pod(0), {"a": "b"})])
    assert (out.retry, out.refused) == ("", [])
    assert not desk.expected.pending(found.uid)
