"""Creating, changing and deleting single objects: the real API server and the simulator must say the same."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.errors import Conflict
from tests.contract.kube.world import APPLY, MERGE, PATCH, STRATEGIC, Hand, becomes, config, nodeset, pod

CR = "application/merge-patch+json"
SEEN = {"selector": "", "nodeSetHash": ""}
"""What every status of a NodeSet must say."""


async def test_creation_sets_what_a_server_sets(hand: Hand) -> None:
    found = (await hand.make(hand.sets, nodeset("cpu")))["metadata"]
    assert found["generation"] == 1 and found["namespace"] == hand.space
    assert len(found["uid"]) == 36 and found["creationTimestamp"].endswith("Z") and int(found["resourceVersion"]) > 0


async def test_generate_name(hand: Hand) -> None:
    body = config("x")
    body["metadata"] = {"generateName": "run-"}
    one, two = (await hand.make(hand.maps, body), await hand.make(hand.maps, body))
    names = {o["metadata"]["name"] for o in (one, two)}
    assert len(names) == 2 and all(n.startswith("run-") and len(n) == 9 for n in names)


async def refusal(hand: Hand, method: str, path: str, body: Any = None, kind: str = CR) -> dict[str, Any]:
    status, found = await hand.ask(method, path, body, kind=kind)
    assert (found["kind"], found["apiVersion"], found["status"], found["code"]) == ("Status", "v1", "Failure", status)
    return {k: found.get(k) for k in ("code", "reason", "message", "details")}


async def test_not_found(hand: Hand) -> None:
    assert await refusal(hand, "GET", f"{hand.sets}/nope") == {
        "code": 404, "reason": "NotFound", "message": 'nodesets.slinky.slurm.net "nope" not found',
        "details": {"name": "nope", "group": "slinky.slurm.net", "kind": "nodesets"},
    }  # fmt: skip
    assert await refusal(hand, "GET", f"{hand.pods}/nope") == {
        "code": 404, "reason": "NotFound", "message": 'pods "nope" not found', "details": {"name": "nope", "kind": "pods"},
    }  # fmt: skip


async def test_already_exists(hand: Hand) -> None:
    await hand.make(hand.sets, nodeset("cpu"))
    found = await refusal(hand, "POST", hand.sets, nodeset("cpu"), "application/json")
    assert found["code"] == 409 and found["reason"] == "AlreadyExists"
    assert found["message"] == 'nodesets.slinky.slurm.net "cpu" already exists'
    assert found["details"] == {"name": "cpu", "group": "slinky.slurm.net", "kind": "nodesets"}


async def test_a_resource_that_is_not_served(hand: Hand) -> None:
    status, found = await hand.ask("GET", "/apis/nobody.example/v1/things")
    assert (status, found) == (404, {"text": "404 page not found\n"})


async def test_an_old_version_is_a_conflict(hand: Hand) -> None:
    made = await hand.make(hand.sets, nodeset("cpu"))
    await hand.ask("PATCH", f"{hand.sets}/cpu", {"spec": {"replicas": 3}}, kind=MERGE)
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "spec": {"replicas": 4}}
    assert await refusal(hand, "PATCH", f"{hand.sets}/cpu", stale) == {
        "code": 409, "reason": "Conflict",
        "message": 'Operation cannot be fulfilled on nodesets.slinky.slurm.net "cpu": the object has been modified; '
        "please apply your changes to the latest version and try again",
        "details": {"name": "cpu", "group": "slinky.slurm.net", "kind": "nodesets"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body", "want"),
    [
        (MERGE, {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}),
        (STRATEGIC, {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}),
        (PATCH, [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/c", "value": "3"}], {"b": "2", "c": "3"}),
        (PATCH, [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "9"}],
         {"a": "9", "b": "2"}),
    ],
)  # fmt: skip
async def test_the_patch_kinds(hand: Hand, kind: str, body: Any, want: dict[str, str]) -> None:
    await hand.make(hand.maps, config("c", a="1", b="2"))
    status, found = await hand.ask("PATCH", f"{hand.maps}/c", body, kind=kind)
    assert (status, found.get("data")) == (200, want)


async def test_strategic_lists_merge_by_their_key(hand: Hand) -> None:
    await hand.make(hand.pods, pod("a"))
    body = {
        "spec": {"containers": [{"name": "slurmd", "image": "slurmd:25.11"}]},
        "metadata": {"finalizers": ["x.io/a"]},
    }
    status, found = await hand.ask("PATCH", f"{hand.pods}/a", body, kind=STRATEGIC)
    assert status == 200 and found["metadata"]["finalizers"] == ["x.io/a"]
    assert [(c["name"], c["image"]) for c in found["spec"]["containers"]] == [("slurmd", "slurmd:25.11")]
    body = {"metadata": {"finalizers": ["x.io/b"]}}
    _, found = await hand.ask("PATCH", f"{hand.pods}/a", body, kind=STRATEGIC)
    assert sorted(found["metadata"]["finalizers"]) == ["x.io/a", "x.io/b"]
    await hand.ask("PATCH", f"{hand.pods}/a", {"metadata": {"finalizers": None}}, kind=MERGE)


async def test_strategic_is_not_for_custom_resources(hand: Hand) -> None:
    await hand.make(hand.sets, nodeset("cpu"))
    status, found = await hand.ask("PATCH", f"{hand.sets}/cpu", {"spec": {"replicas": 1}}, kind=STRATEGIC)
    assert (status, found["reason"]) == (415, "UnsupportedMediaType")


async def test_a_failed_test_of_a_json_patch(hand: Hand) -> None:
    await hand.make(hand.maps, config("c", a="1"))
    found = await refusal(hand, "PATCH", f"{hand.maps}/c", [{"op": "test", "path": "/data/a", "value": "2"}], PATCH)
    assert (found["code"], found["reason"]) == (422, "Invalid")


async def test_more_of_json_patches(hand: Hand) -> None:
    await hand.make(hand.maps, config("c", a="1"))
    steps = [{"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "move", "from": "/data/a", "path": "/data/c"}]
    _, found = await hand.ask("PATCH", f"{hand.maps}/c", steps, kind=PATCH)
    assert found["data"] == {"b": "1", "c": "1"}
    _, found = await hand.ask(
        "PATCH", f"{hand.maps}/c", [{"op": "replace", "path": "/data/d", "value": "2"}], kind=PATCH
    )
    assert found["data"] == {"b": "1", "c": "1", "d": "2"}
    for step in ({"op": "replace", "path": "/binaryData/z", "value": ""}, {"op": "remove", "path": "/data/z"}):
        refused = await refusal(hand, "PATCH", f"{hand.maps}/c", [step], PATCH)
        assert refused["message"] == "the server rejected our request due to an error in our request"


async def test_names_are_checked(hand: Hand) -> None:
    for path, kind, body in (
        (hand.maps, "ConfigMap", config("A_b")),
        (hand.sets, "NodeSet.slinky.slurm.net", nodeset("A_b")),
    ):
        refused = await refusal(hand, "POST", path, body, "application/json")
        assert refused["code"] == 422 and refused["message"].startswith(
            f'{kind} "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case'
        )


async def test_generation_counts_changes_of_spec_only(hand: Hand) -> None:
    await hand.make(hand.sets, nodeset("cpu"))
    seen = []
    for path, body in [
        (f"{hand.sets}/cpu", {"metadata": {"annotations": {"a": "b"}}}),
        (f"{hand.sets}/cpu/status", {"status": {**SEEN, "replicas": 2}}),
        (f"{hand.sets}/cpu", {"spec": {"replicas": 5}}),
        (f"{hand.sets}/cpu", {"spec": {"replicas": 5}}),
    ]:
        _, found = await hand.ask("PATCH", path, body, kind=MERGE)
        seen.append((found["metadata"]["generation"], found["metadata"]["resourceVersion"]))
    assert [g for g, _ in seen] == [1, 1, 2, 2]
    assert seen[2][1] == seen[3][1], "a patch without change writes nothing"


async def test_status_and_spec_are_apart(hand: Hand) -> None:
    body = {**nodeset("cpu"), "status": {"replicas": 7}}
    assert "status" not in await hand.make(hand.sets, body)
    _, found = await hand.ask(
        "PATCH", f"{hand.sets}/cpu/status", {"spec": {"replicas": 9}, "status": {**SEEN, "replicas": 1}}, kind=MERGE
    )
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (2, 1)
    _, found = await hand.ask(
        "PATCH", f"{hand.sets}/cpu", {"spec": {"replicas": 3}, "status": {"replicas": 8}}, kind=MERGE
    )
    assert (found["spec"]["replicas"], found["status"]["replicas"]) == (3, 1)


async def test_scale(hand: Hand) -> None:
    made = await hand.make(hand.sets, nodeset("cpu", 2))
    await hand.ask(
        "PATCH", f"{hand.sets}/cpu/status", {"status": {**SEEN, "replicas": 1, "selector": "a=b"}}, kind=MERGE
    )
    _, scale = await hand.ask("GET", f"{hand.sets}/cpu/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "a=b"})
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    version = scale["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": 4}}
    status, done = await hand.ask("PATCH", f"{hand.sets}/cpu/scale", body, kind=MERGE)
    assert (status, done["spec"]["replicas"]) == (200, 4)
    status, found = await hand.ask("PATCH", f"{hand.sets}/cpu/scale", body, kind=MERGE)
    assert (status, found["reason"]) == (409, "Conflict")
    _, whole = await hand.ask("GET", f"{hand.sets}/cpu")
    assert whole["spec"]["replicas"] == 4 and whole["metadata"]["generation"] == 2


async def test_a_dry_run_changes_nothing(hand: Hand) -> None:
    dry = (("dryRun", "All"),)
    status, _ = await hand.ask("POST", hand.sets, nodeset("cpu"), query=dry)
    assert status == 201 and (await hand.ask("GET", f"{hand.sets}/cpu"))[0] == 404
    await hand.make(hand.sets, nodeset("cpu"))
    _, found = await hand.ask("PATCH", f"{hand.sets}/cpu", {"spec": {"replicas": 9}}, kind=MERGE, query=dry)
    assert found["spec"]["replicas"] == 9
    status, _ = await hand.ask("DELETE", f"{hand.sets}/cpu", query=dry)
    _, found = await hand.ask("GET", f"{hand.sets}/cpu")
    assert (status, found["spec"]["replicas"]) == (200, 2)


async def test_deleting_another_uid(hand: Hand) -> None:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "0"}}
    for path, kind, body in ((hand.pods, "Pod", pod("a")), (hand.sets, "NodeSet.slinky.slurm.net", nodeset("a"))):
        uid = (await hand.make(path, body))["metadata"]["uid"]
        found = await refusal(hand, "DELETE", f"{path}/a", options, "application/json")
        assert (found["code"], found["reason"]) == (409, "Conflict")
        assert found["message"] == (
            f'Operation cannot be fulfilled on {kind} "a": the UID in the precondition (0) does not match the UID in record '
            f"({uid}). The object might have been deleted and then recreated"
        )
        assert (await hand.ask("DELETE", f"{path}/a", {**options, "preconditions": {"uid": uid}}))[0] == 200
        assert (await hand.ask("GET", f"{path}/a"))[0] == 404


async def test_changing_another_uid(hand: Hand) -> None:
    for path, body in ((hand.pods, pod("a")), (hand.sets, nodeset("a")), (hand.maps, config("a"))):
        await hand.make(path, body)
        patch = {"metadata": {"uid": "0", "labels": {"a": "b"}}}
        for kind in (MERGE, STRATEGIC) if path != hand.sets else (MERGE,):
            found = await refusal(hand, "PATCH", f"{path}/a", patch, kind)
            assert (found["code"], found["reason"]) == (422, "Invalid")
            assert found["message"].endswith('is invalid: metadata.uid: Invalid value: "0": field is immutable')
            assert {c["field"] for c in found["details"]["causes"]} == {"metadata.uid"}
        _, found = await hand.ask("GET", f"{path}/a")
        assert "a" not in (found["metadata"].get("labels") or {})


async def test_a_finalizer_holds_a_deletion(hand: Hand) -> None:
    body = nodeset("cpu")
    body["metadata"]["finalizers"] = ["slinky.slurm.net/hold"]
    await hand.make(hand.sets, body)
    _, found = await hand.ask("DELETE", f"{hand.sets}/cpu")
    assert found["metadata"]["deletionTimestamp"]
    assert (await hand.ask("GET", f"{hand.sets}/cpu"))[0] == 200
    await hand.ask("PATCH", f"{hand.sets}/cpu", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert (await hand.ask("GET", f"{hand.sets}/cpu"))[0] == 404


async def test_apply_owns_its_fields(hand: Hand) -> None:

    def by(manager: str, **more: str) -> tuple[tuple[str, str], ...]:
        return (("fieldManager", manager), *more.items())

    body = config("c", a="1", b="2")
    status, found = await hand.ask("PATCH", f"{hand.maps}/c", body, kind=APPLY, query=by("one"))
    assert status == 201 and [m["manager"] for m in found["metadata"]["managedFields"]] == ["one"]
    _, found = await hand.ask("PATCH", f"{hand.maps}/c", config("c", a="1"), kind=APPLY, query=by("one"))
    assert found["data"] == {"a": "1"}, "what its owner no longer says goes"
    status, found = await hand.ask("PATCH", f"{hand.maps}/c", config("c", a="9"), kind=APPLY, query=by("two"))
    assert (status, found["reason"]) == (409, "Conflict")
    assert found["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert found["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]
    status, found = await hand.ask(
        "PATCH", f"{hand.maps}/c", config("c", a="9"), kind=APPLY, query=by("two", force="true")
    )
    assert (status, found["data"]) == (200, {"a": "9"})


async def test_an_eviction_asks_the_budget(hand: Hand) -> None:
    made = await hand.make(hand.pods, pod("a", app="x"))
    budgets = f"/apis/policy/v1/namespaces/{hand.space}/poddisruptionbudgets"
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    await hand.make(budgets, budget)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await hand.ask("PATCH", f"{hand.pods}/a/status", ready, kind=MERGE)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": hand.space}}

    async def counted() -> bool:
        _, found = await hand.ask("GET", f"{budgets}/b")
        return bool(found.get("status", {}).get("currentHealthy") == 1)

    if hand.world.name == "real":
        await becomes(counted)
    status, found = await hand.ask("POST", f"{hand.pods}/a/eviction", eviction)
    assert (status, found["reason"]) == (429, "TooManyRequests")
    assert found["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert found["details"]["causes"][0]["reason"] == "DisruptionBudget"
    await hand.ask("DELETE", f"{budgets}/b")
    with pytest.raises(Conflict):
        await hand.client.evict(hand.space, "a", "another-uid")
    await hand.client.evict(hand.space, "a", made["metadata"]["uid"])
    assert (await hand.ask("GET", f"{hand.pods}/a"))[0] == 404


async def test_refused_by_rbac(reader: Hand) -> None:
    found = await refusal(reader, "DELETE", f"{reader.sets}/cpu")
    assert (found["code"], found["reason"]) == (403, "Forbidden")
    assert found["message"] == (
        'nodesets.slinky.slurm.net "cpu" is forbidden: User "reader" cannot delete resource "nodesets" in API group '
        f'"slinky.slurm.net" in the namespace "{reader.space}"'
    )
    assert found["details"] == {"name": "cpu", "group": "slinky.slurm.net", "kind": "nodesets"}
    found = await refusal(reader, "POST", reader.pods, pod("a"), "application/json")
    assert found["message"] == (
        f'pods is forbidden: User "reader" cannot create resource "pods" in API group "" in the namespace "{reader.space}"'
    )
    found = await refusal(reader, "PATCH", "/api/v1/nodes/n", {"spec": {"unschedulable": True}})
    assert found["message"] == (
        'nodes "n" is forbidden: User "reader" cannot patch resource "nodes" in API group "" at the cluster scope'
    )


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_owners_take_their_own_with_them(hand: Hand, propagation: str) -> None:
    owner = await hand.make(hand.sets, nodeset("cpu"))
    mine = pod("cpu-0")
    mine["metadata"]["ownerReferences"] = [
        {"apiVersion": owner["apiVersion"], "kind": "NodeSet", "name": "cpu", "uid": owner["metadata"]["uid"],
         "controller": True, "blockOwnerDeletion": True}
    ]  # fmt: skip
    await hand.make(hand.pods, mine)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    assert (await hand.ask("DELETE", f"{hand.sets}/cpu", options))[0] == 200

    async def settled() -> bool:
        owner_gone = (await hand.ask("GET", f"{hand.sets}/cpu"))[0] == 404
        status, found = await hand.ask("GET", f"{hand.pods}/cpu-0")
        if propagation == "Orphan":
            return owner_gone and status == 200 and not found["metadata"].get("ownerReferences")
        return owner_gone and status == 404

    await becomes(settled, 40 if hand.world.name == "real" else 1)
