"""Claims: names, content, and who owns them."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.objects.claims import (
    build_claims,
    claims_of,
    foreign_controller,
    holds_claims,
    repaired_owners,
    wanted_owner,
)
from slinkytui.backend.controllers.objects.marks import API_VERSION
from slinkytui.backend.crds.nodeset import NodeSet
from tests.unit.controllers.objects.worlds import nodeset, pod

POD = pod("gpu-0")
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10240Mi"}}}
TEMPLATE = {
    "metadata": {"name": "data", "labels": {"tier": "fast", "app.kubernetes.io/name": "x"}, "annotations": {"a": "b"}},
    "spec": SPEC,
}


def policy(deleted: str, scaled: str) -> NodeSet:
    return nodeset(persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})


def ref(kind: str, name: str, uid: str, controller: bool | None = True) -> dict[str, Any]:
    version = {"NodeSet": API_VERSION, "Pod": "v1"}.get(kind, "apps/v1")
    found = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": True}
    return found if controller is None else {**found, "controller": controller}


SET = ref("NodeSet", "gpu", "uid-gpu")
WORKER = ref("Pod", "gpu-0", "uid-gpu-0")
STRANGER = ref("StatefulSet", "x", "u")
BYSTANDER = ref("ConfigMap", "x", "u", None)


def test_V14_claims_of_a_worker() -> None:
    assert claims_of(nodeset(), "0") == {}
    found = nodeset("foo", volumeClaimTemplates=[TEMPLATE, {"metadata": {"name": "test"}}])
    assert claims_of(found, "0") == {"data": "data-foo-0", "test": "test-foo-0"}
    made = build_claims(found, "node-1")[0]
    assert made["metadata"] == {
        "name": "data-foo-node-1",
        "namespace": "ns1",
        "annotations": {"a": "b"},
        "labels": {"tier": "fast", "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "foo"},
    }
    assert made["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    assert "status" not in made


@pytest.mark.parametrize(
    ("claim", "identity", "expected"),
    [("data-gpu-0", "0", True), ("data-gpu-0", "00", False), ("data-cpu-0", "0", False), ("", "0", False)],
    ids=["right", "W36-other-padding", "other-set", "missing"],
)
def test_V15_the_claims_that_a_pod_mounts(claim: str, identity: str, expected: bool) -> None:
    volumes = (
        [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        if claim
        else [{"name": "data", "emptyDir": {}}]
    )
    assert holds_claims(nodeset(volumeClaimTemplates=[TEMPLATE]), identity, pod("gpu-0", volumes=volumes)) is expected


OWNERS = [
    ("Retain", "Retain", False, None),
    ("Retain", "Retain", True, None),
    ("Delete", "Retain", False, "NodeSet"),
    ("Delete", "Retain", True, "NodeSet"),
    ("Retain", "Delete", False, None),
    ("Retain", "Delete", True, "Pod"),
    ("Delete", "Delete", False, "NodeSet"),
    ("Delete", "Delete", True, "Pod"),
]


@pytest.mark.parametrize(("deleted", "scaled", "goes", "kind"), OWNERS)
def test_W16_who_a_claim_goes_with(deleted: str, scaled: str, goes: bool, kind: str | None) -> None:
    cordoned = pod("gpu-0", meta={"annotations": {"nodeset.slinky.slurm.net/pod-cordon": "true"}})
    found = wanted_owner(policy(deleted, scaled), cordoned, goes=goes)
    assert (found and found["kind"]) == kind
    assert found is None or found in (SET, WORKER) or (found["controller"] and found["blockOwnerDeletion"])


SHAPES: dict[str, list[dict[str, Any]]] = {
    "nobody": [],
    "set": [SET],
    "pod": [WORKER],
    "both": [SET, WORKER],
    "set-not-controller": [ref("NodeSet", "gpu", "uid-gpu", False)],
    "pod-not-controller": [ref("Pod", "gpu-0", "uid-gpu-0", None)],
    "bystander": [BYSTANDER],
    "set-and-bystander": [BYSTANDER, SET],
}


@pytest.mark.parametrize(("deleted", "scaled", "goes", "kind"), OWNERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_V12_repair_leaves_the_wanted_owner_only(
    deleted: str, scaled: str, goes: bool, kind: str | None, shape: str
) -> None:
    before = SHAPES[shape]
    wanted = {"NodeSet": [SET], "Pod": [WORKER], None: []}[kind]
    found = repaired_owners(policy(deleted, scaled), POD, before, goes=goes)
    after = before if found is None else found
    others = [o for o in before if o["kind"] == "ConfigMap"]
    assert sorted(o["kind"] for o in after) == sorted(o["kind"] for o in [*others, *wanted])
    assert all(o.get("controller") for o in after if o["kind"] != "ConfigMap")
    assert repaired_owners(policy(deleted, scaled), POD, after, goes=goes) is None, "a second look changes nothing"


@pytest.mark.parametrize(
    "old", [ref("NodeSet", "gpu", "old"), ref("Pod", "gpu-0", "old"), ref("Pod", "gpu-0", "old", False)]
)
@pytest.mark.parametrize("beside", [[], [SET], [WORKER]])
def test_V9_a_predecessors_claim_is_left_alone(old: dict[str, Any], beside: list[dict[str, Any]]) -> None:
    assert repaired_owners(policy("Delete", "Delete"), POD, [old, *beside], goes=True) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [([STRANGER], None), ([STRANGER, SET], [STRANGER]), ([STRANGER, WORKER, BYSTANDER], [STRANGER, BYSTANDER])],
    ids=["alone", "beside-the-set", "beside-the-pod"],
)
def test_V12_beside_a_foreign_controller_we_own_nothing(
    before: list[dict[str, Any]], after: list[dict[str, Any]] | None
) -> None:
    assert repaired_owners(policy("Delete", "Delete"), POD, before, goes=True) == after


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (STRANGER, True), (ref("StatefulSet", "x", "u", False), False), (ref("StatefulSet", "x", "u", None), False),
        (SET, False), (WORKER, False), (BYSTANDER, False), (ref("NodeSet", "cpu", "u"), True), (ref("Pod", "gpu-1", "u"), True),
        ({**SET, "apiVersion": "slinky.slurm.net/v1"}, False), ({**SET, "apiVersion": "other.net/v1beta1"}, True),
    ],
)  # fmt: skip
def test_V10_foreign_controllers(owner: dict[str, Any], expected: bool) -> None:
    assert foreign_controller(policy("Delete", "Retain"), POD, [owner]) is expected
    assert foreign_controller(policy("Retain", "Retain"), POD, [owner]) is False
