"""With whom a worker's claims go: never with a worker whose replica is still wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Decision, OwnClaim, Tell
from slinkytui.backend.controllers.nodeset.retention import (
    has_foreign_controller,
    lost_claim,
    repaired,
    wanted_owner,
)
from slinkytui.backend.controllers.nodeset.world import Claim, World
from slinkytui.backend.models import Pod
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, did, kube, pod, record, slurm, world

API = "slinky.slurm.net/v1beta1"


def ref(kind: str, name: str, uid: str, controller: bool | None = True) -> dict[str, Any]:
    version = {"NodeSet": API, "Pod": "v1"}.get(kind, "apps/v1")
    found = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": True}
    return found if controller is None else {**found, "controller": controller}


SET = ref("NodeSet", "gpu", "set")
WORKER = ref("Pod", "gpu-0", "uid-gpu-0")
STRANGER = ref("StatefulSet", "x", "u")
BYSTANDER = ref("ConfigMap", "x", "u", None)


def policy(
    deleted: str, scaled: str, *pods: Pod, claims: Mapping[int, list[dict[str, Any]]] | None = None, **more: Any
) -> World:
    """Workers with one claim `data` each, which these own."""
    held = {
        f"data-gpu-{at}": Claim(f"data-gpu-{at}", f"c{at}", "5", tuple(refs)) for at, refs in (claims or {}).items()
    }
    spec = {"claims": ("data",), "when_deleted": deleted, "when_scaled": scaled, **more.pop("spec", {})}
    return world(*pods, spec=spec, claims=held, **more)  # fmt: skip


OWNERS = [
    case("V8 V13 W16", "keep", "Retain", "Retain", False, None),
    case("V8 V13 W16", "keep what goes", "Retain", "Retain", True, None),
    case("V8 W16", "with the set", "Delete", "Retain", False, "NodeSet"),
    case("V8 W16", "with the set though it goes", "Delete", "Retain", True, "NodeSet"),
    case("V8 W16", "not yet", "Retain", "Delete", False, None),
    case("V8 W16", "with the pod", "Retain", "Delete", True, "Pod"),
    case("V8 W16", "with the set at first", "Delete", "Delete", False, "NodeSet"),
    case("V8 W16", "with the pod at last", "Delete", "Delete", True, "Pod"),
    case("V8 V13", "a word that is no policy keeps", "x", "x", True, None),
]


@pytest.mark.parametrize(("deleted", "scaled", "goes", "kind"), OWNERS)
def test_who_a_claim_goes_with(deleted: str, scaled: str, goes: bool, kind: str | None) -> None:
    found = wanted_owner(policy(deleted, scaled), pod(0, cordon=True), goes=goes)
    assert found == {"NodeSet": SET, "Pod": WORKER, None: None}[kind]


SHAPES: dict[str, list[dict[str, Any]]] = {
    "nobody": [],
    "set": [SET],
    "pod": [WORKER],
    "both": [SET, WORKER],
    "set-not-controller": [ref("NodeSet", "gpu", "set", False)],
    "pod-not-controller": [ref("Pod", "gpu-0", "uid-gpu-0", None)],
    "bystander": [BYSTANDER],
    "set-and-bystander": [BYSTANDER, SET],
}


@holds("V8", "V11", "V12", "V13")
@pytest.mark.parametrize(("deleted", "scaled", "goes", "kind"), OWNERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_repair_leaves_the_wanted_owner_only(
    deleted: str, scaled: str, goes: bool, kind: str | None, shape: str
) -> None:
    before, found = SHAPES[shape], policy(deleted, scaled)
    wanted = {"NodeSet": [SET], "Pod": [WORKER], None: []}[kind]
    repairs = repaired(found, pod(0), before, goes=goes)
    after = before if repairs is None else repairs
    others = [o for o in before if o["kind"] == "ConfigMap"]
    assert sorted(o["kind"] for o in after) == sorted(o["kind"] for o in [*others, *wanted])
    assert all(o.get("controller") for o in after if o["kind"] != "ConfigMap")
    assert repaired(found, pod(0), after, goes=goes) is None, "a second look changes nothing"


STALE = [
    case("V9", "a set of the past", ref("NodeSet", "gpu", "old")),
    case("V9", "a pod of the past", ref("Pod", "gpu-0", "old")),
    case("V9", "no controller of the past", ref("Pod", "gpu-0", "old", False)),
]


@pytest.mark.parametrize("old", STALE)
@pytest.mark.parametrize("beside", [[], [SET], [WORKER]])
def test_a_predecessors_claim_is_left_alone(old: dict[str, Any], beside: list[dict[str, Any]]) -> None:
    assert repaired(policy("Delete", "Delete"), pod(0), [old, *beside], goes=True) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        case("V9 V12", "alone", [STRANGER], None),
        case("V9 V12", "beside the set", [STRANGER, SET], [STRANGER]),
        case("V9 V12", "beside the pod", [STRANGER, WORKER, BYSTANDER], [STRANGER, BYSTANDER]),
    ],
)
def test_beside_a_foreign_controller_we_own_nothing(
    before: list[dict[str, Any]], after: list[dict[str, Any]] | None
) -> None:
    assert repaired(policy("Delete", "Delete"), pod(0), before, goes=True) == after


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        case("V10", "a controller", STRANGER, True),
        case("V10 V11", "no controller", ref("StatefulSet", "x", "u", False), False),
        case("V10 V11", "it does not say", ref("StatefulSet", "x", "u", None), False),
        case("V10", "our set", SET, False),
        case("V10 V13", "our set of the past", ref("NodeSet", "gpu", "old"), False),
        case("V10", "our pod", WORKER, False),
        case("V10 V11", "a bystander", BYSTANDER, False),
        case("V10", "another set", ref("NodeSet", "cpu", "u"), True),
        case("V10", "another pod", ref("Pod", "gpu-1", "u"), True),
        case("V10 V13", "our set in another version", {**SET, "apiVersion": "slinky.slurm.net/v1"}, False),
        case("V10 V13", "a set of another group", {**SET, "apiVersion": "other.net/v1beta1"}, True),
    ],
)
def test_foreign_controllers(owner: dict[str, Any], expected: bool) -> None:
    assert has_foreign_controller(policy("Delete", "Retain"), pod(0), [owner]) is expected
    assert has_foreign_controller(policy("Retain", "Retain"), pod(0), [owner]) is False


def owned(decision: Decision) -> dict[str, list[str]]:
    """Claims whose owners change, and the kinds that own them then."""
    found = [e for e in decision.effects if isinstance(e, OwnClaim)]
    return {e.name: [o["kind"] for o in e.owners] for e in found}


UPDATED = {"spec": {"max_unavailable": 2}}
TWO: dict[int, list[dict[str, Any]]] = {0: [], 1: []}
MINE = ref("Pod", "gpu-1", "uid-gpu-1")
PASSES = [
    case("W16 V5", "scale in", policy("Retain", "Delete", pod(0), pod(1), replicas=1, claims=TWO), {"data-gpu-1": ["Pod"]}),
    case("W16", "a person's cordon", policy("Retain", "Delete", pod(0), pod(1, cordon=True), claims=TWO), {}),
    case("W16", "a node's cordon", policy("Retain", "Delete", pod(0), pod(1), claims=TWO, nodes=[kube("n1", cordoned=True)]), {}),
    case("W16", "a rolling update", policy("Retain", "Delete", pod(0, hash="old"), pod(1, hash="old"), claims=TWO, **UPDATED), {}),
    case("W16", "the set goes", policy("Retain", "Delete", pod(0), pod(1), claims=TWO, deleting=True), {}),
    case("W16", "wanted again", policy("Retain", "Delete", pod(0), pod(1), claims={1: [MINE]}), {"data-gpu-1": []}),
    case("W16", "gone already and wanted again",
         policy("Retain", "Delete", pod(0), pod(1, deleted=True), replicas=2, claims={1: [MINE]}), {"data-gpu-1": []}),
    case("W16", "gone and not wanted", policy("Retain", "Delete", pod(0), pod(1, deleted=True), replicas=1, claims={1: [MINE]}), {}),
    case("W16", "what upstream left on a cordoned one",
         policy("Delete", "Delete", pod(0), pod(1, cordon=True), claims={0: [SET], 1: [MINE]}), {"data-gpu-1": ["NodeSet"]}),
    case("V5", "the policy is new", policy("Delete", "Retain", pod(0), pod(1), claims=TWO),
         {"data-gpu-0": ["NodeSet"], "data-gpu-1": ["NodeSet"]}),
    case("V4", "right", policy("Delete", "Retain", pod(0), claims={0: [SET]}), {}),
    case("V4 V5", "no claim is there", policy("Delete", "Delete", pod(0), replicas=0), {}),
    case("V11", "a bystander stays", policy("Delete", "Retain", pod(0), claims={0: [BYSTANDER]}), {"data-gpu-0": ["ConfigMap", "NodeSet"]}),
    case("W16", "daemons have no replicas",
         policy("Delete", "Delete", pod("a", mode="DaemonSet", node="n1", host="n1"), claims={}, spec={"mode": "DaemonSet"}), {}),
]  # fmt: skip


@pytest.mark.parametrize(("found", "owners"), PASSES)
def test_the_owners_that_a_pass_sets(found: World, owners: dict[str, list[str]]) -> None:
    assert owned(decide(found, NOW)) == owners


@pytest.mark.parametrize(
    ("one", "effects"),
    [
        case("V3", "consistent", pod(0), []),
        case("V3", "a wrong name on it", pod(0, labels={"nodeset.slinky.slurm.net/pod-name": "x"}), ["mark gpu-0 pod-name=gpu-0"]),
        case("V3 W36", "without the volumes that its set has now", pod(0), []),
    ],
)  # fmt: skip
def test_an_existing_worker_is_changed_by_its_marks_only(one: Pod, effects: list[str]) -> None:
    """Volumes of a pod cannot change: nothing is asked that the server refuses each time."""
    assert did(decide(policy("Retain", "Retain", one), NOW)) == effects


@holds("W16")
def test_a_worker_drained_at_first_sight_gets_its_reference_before_it_goes() -> None:
    side = slurm(record(0), record(1, "IDLE", "DRAIN", reason="bad gpu"))
    effects = decide(policy("Retain", "Delete", pod(0), pod(1), replicas=1, claims=TWO, slurm_side=side), NOW).effects
    kinds = [type(e).__name__ for e in effects]
    assert kinds.index("OwnClaim") < kinds.index("DeletePod")


def test_a_claim_that_something_else_controls_is_told_of() -> None:
    found = policy("Delete", "Retain", pod(0), claims={0: [STRANGER]})
    told = [e for e in decide(found, NOW).effects if isinstance(e, Tell)]
    assert [(t.reason, t.warning) for t in told] == [("ConflictingController", True)]
    assert "PersistentVolumeClaim data-gpu-0 has a conflicting OwnerReference" in told[0].text


DEAD = ref("Pod", "gpu-0", "dead")
LOST = [
    case("V6", "nobody's", [], False, ""),
    case("V6", "the set's", [SET], False, ""),
    case("V6", "of the past", [DEAD], False, "its claim data-gpu-0 goes with a pod that is gone"),
    case(
        "V6", "of the past among others", [BYSTANDER, DEAD], False, "its claim data-gpu-0 goes with a pod that is gone"
    ),
    case("V6", "a pod without UID", [{**DEAD, "uid": ""}], False, "its claim data-gpu-0 goes with a pod that is gone"),
    case("V6", "of a living one", [ref("Pod", "gpu-1", "uid-gpu-1")], False, ""),
    case("V7", "being deleted", [], True, "its claim data-gpu-0 is being deleted"),
]


@pytest.mark.parametrize(("owners", "deleting", "why"), LOST)
def test_no_worker_is_made_with_a_claim_that_goes(owners: list[dict[str, Any]], deleting: bool, why: str) -> None:
    found = policy("Retain", "Delete", pod(1), replicas=2, claims={0: owners, 1: []})
    found = replace(found, claims={n: c._replace(deleting=deleting) for n, c in found.claims.items()})
    assert lost_claim(found, "0") == why
    decision = decide(found, NOW)
    assert ("create 0" in did(decision)) is not bool(why)
    assert any(why in r.text and r.waits for r in decision.why) or not why


@holds("V6")
def test_a_claim_that_is_not_there_yet_is_none_that_goes() -> None:
    assert lost_claim(policy("Delete", "Delete", replicas=1), "0") == ""


def test_a_settled_policy_writes_nothing() -> None:
    found = policy("Delete", "Retain", pod(0), claims={0: [SET]})
    again = replace(found, pods=tuple(msgspec.structs.replace(p) for p in found.pods))
    assert owned(decide(again, NOW)) == {}
