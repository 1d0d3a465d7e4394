"""Owners of fields, merges by key and what admission says: the real API server and the simulator must say the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kube.world import APPLY, JSON, MERGE, STRATEGIC, Hand, config, nodeset, pod


def by(manager: str, **more: str) -> tuple[tuple[str, str], ...]:
    return (("fieldManager", manager), *more.items())


def owners(found: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Fields by manager and operation, with the subresource behind a slash."""
    return {
        (m["manager"], m["operation"] + (f"/{m['subresource']}" if "subresource" in m else "")): m["fieldsV1"]
        for m in found["metadata"]["managedFields"]
    }


async def apply(
    hand: Hand, path: str, body: dict[str, Any], manager: str = "one", **more: str
) -> tuple[int, dict[str, Any]]:
    return await hand.ask("PATCH", path, body, kind=APPLY, query=by(manager, **more))


async def test_a_creation_owns_what_it_sets(hand: Hand) -> None:
    _, found = await hand.ask("POST", hand.sets, nodeset("cpu"), query=by("me"))
    spec = ("controllerRef", "extraConf", "ordinalPadding", "oversubscribeNode", "pinToNode", "pruneSlurmNodeRecords", "replicas",
            "revisionHistoryLimit", "scalingMode", "workloadDisruptionProtection")  # fmt: skip
    assert owners(found) == {("me", "Update"): {"f:spec": {".": {}, **{f"f:{k}": {} for k in spec}}}}
    _, found = await hand.ask("POST", hand.maps, config("c", a="1"), query=by("me"))
    assert owners(found) == {("me", "Update"): {"f:data": {".": {}, "f:a": {}}}}


async def test_a_pods_owner_names_its_containers(hand: Hand) -> None:
    body = pod("a", app="x")
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    _, found = await hand.ask("POST", hand.pods, body, query=by("me"))
    fields = owners(found)[("me", "Update")]
    assert fields["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    container = fields["f:spec"]["f:containers"]['k:{"name":"slurmd"}']
    assert container["f:ports"] == {
        ".": {}, 'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}},
    }  # fmt: skip
    assert "." in container and container["f:image"] == {} and "." not in fields["f:spec"]


async def test_owners_after_writes_of_several(hand: Hand) -> None:
    await hand.ask("POST", hand.maps, config("c", a="1", b="2"), query=by("one"))
    _, found = await hand.ask("PATCH", f"{hand.maps}/c", {"data": {"b": "3", "c": "4"}}, kind=MERGE, query=by("two"))
    assert owners(found) == {
        ("one", "Update"): {"f:data": {".": {}, "f:a": {}}}, ("two", "Update"): {"f:data": {"f:b": {}, "f:c": {}}},
    }  # fmt: skip
    _, found = await hand.ask("PATCH", f"{hand.maps}/c", {"data": {"c": None}}, kind=MERGE, query=by("three"))
    assert owners(found)[("two", "Update")] == {"f:data": {"f:b": {}}}


async def test_a_subresource_is_an_owner_of_its_own(hand: Hand) -> None:
    await hand.ask("POST", hand.sets, nodeset("cpu"), query=by("me"))
    body = {"status": {"selector": "a=b", "nodeSetHash": "1"}}
    _, found = await hand.ask("PATCH", f"{hand.sets}/cpu/status", body, kind=MERGE, query=by("me"))
    assert owners(found)[("me", "Update/status")] == {"f:status": {".": {}, "f:nodeSetHash": {}, "f:selector": {}}}
    await hand.ask("PATCH", f"{hand.sets}/cpu/scale", {"spec": {"replicas": 5}}, kind=MERGE, query=by("autoscaler"))
    _, found = await hand.ask("GET", f"{hand.sets}/cpu")
    assert owners(found)[("autoscaler", "Update/scale")] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners(found)[("me", "Update")]["f:spec"]


async def test_apply_merges_lists_by_their_keys(hand: Hand) -> None:
    def told(*containers: dict[str, Any]) -> dict[str, Any]:
        return {**pod("a"), "spec": {"containers": list(containers)}}

    one, two = {"name": "one", "image": "i:1"}, {"name": "two", "image": "i:1"}
    status, found = await apply(hand, f"{hand.pods}/a", told(one, two))
    assert status == 201 and owners(found)[("one", "Apply")]["f:spec"]["f:containers"] == {
        f'k:{{"name":"{n}"}}': {".": {}, "f:image": {}, "f:name": {}} for n in ("one", "two")
    }
    status, found = await apply(hand, f"{hand.pods}/a", told({"name": "two", "image": "i:2"}), "other", force="true")
    assert status == 200 and [(c["name"], c["image"]) for c in found["spec"]["containers"]] == [
        ("one", "i:1"),
        ("two", "i:2"),
    ]


async def test_conflicts_are_told_by_owner(hand: Hand) -> None:
    await apply(hand, f"{hand.maps}/c", config("c", a="1", b="2"))
    await hand.ask("PATCH", f"{hand.maps}/c", {"data": {"b": "3"}}, kind=MERGE, query=by("editor"))
    status, found = await apply(hand, f"{hand.maps}/c", config("c", a="8", b="9"), "two")
    assert (status, found["message"]) == (
        409,
        'Apply failed with 2 conflicts: conflicts with "editor" using v1:\n- .data.b\nconflicts with "one":\n- .data.a',
    )
    assert sorted(c["field"] for c in found["details"]["causes"]) == [".data.a", ".data.b"]


async def test_what_is_shared_stays_until_nobody_says_it(hand: Hand) -> None:
    await apply(hand, f"{hand.maps}/c", config("c", a="1", b="2"))
    status, found = await apply(hand, f"{hand.maps}/c", config("c", a="1"), "two")
    assert status == 200 and set(owners(found)) == {("one", "Apply"), ("two", "Apply")}
    _, found = await apply(hand, f"{hand.maps}/c", config("c", b="2"))
    assert found["data"] == {"a": "1", "b": "2"}
    version = found["metadata"]["resourceVersion"]
    _, found = await apply(hand, f"{hand.maps}/c", config("c", b="2"))
    assert found["metadata"]["resourceVersion"] == version, "an apply without change writes nothing"
    _, found = await apply(hand, f"{hand.maps}/c", config("c"), "two")
    assert found["data"] == {"b": "2"}


async def test_the_first_apply_takes_nothing_away(hand: Hand) -> None:
    await hand.ask("POST", hand.maps, config("c", a="1", b="2"), query=by("maker"))
    await hand.ask("PATCH", f"{hand.maps}/c", {"metadata": {"managedFields": [{}]}}, kind=MERGE)
    _, found = await hand.ask("GET", f"{hand.maps}/c")
    assert not found["metadata"].get("managedFields")
    _, found = await apply(hand, f"{hand.maps}/c", config("c", a="1"))
    assert found["data"] == {"a": "1", "b": "2"}
    assert set(owners(found)) == {("one", "Apply"), ("before-first-apply", "Update")}


async def test_a_manager_is_wanted(hand: Hand) -> None:
    status, found = await hand.ask("PATCH", f"{hand.maps}/c", config("c"), kind=APPLY)
    assert (status, found["reason"]) == (422, "Invalid")
    assert (
        found["message"]
        == 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        ({"containers": [{"name": "b", "image": "i:2"}]}, [("a", "i:1"), ("b", "i:2")]),
        ({"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}], "containers": [{"name": "a", "image": "i:3"}]},
         [("a", "i:3"), ("b", "i:1")]),
    ],
)  # fmt: skip
async def test_strategic_merges_of_containers(hand: Hand, patch: dict[str, Any], want: list[tuple[str, str]]) -> None:
    body = pod("a")
    body["spec"]["containers"] = [{"name": n, "image": "i:1"} for n in ("a", "b")]
    await hand.make(hand.pods, body)
    status, found = await hand.ask("PATCH", f"{hand.pods}/a", {"spec": patch}, kind=STRATEGIC)
    assert (status, [(c["name"], c["image"]) for c in found["spec"]["containers"]]) == (200, want)


def _deployment(*containers: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": c, "image": "i:1"} for c in containers]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "finalizers": ["x.io/a", "x.io/b"]},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        ([{"name": "c", "image": "i:2"}], ["c", "a", "b"]),
        ([{"$patch": "delete", "name": "a"}], ["b"]),
        ([{"name": "c", "image": "i:2"}, {"$patch": "replace"}], ["c"]),
    ],
    ids=["add", "delete", "replace"],
)
async def test_strategic_directives_in_lists(hand: Hand, patch: list[Any], names: list[str]) -> None:
    path = f"/apis/apps/v1/namespaces/{hand.space}/deployments"
    await hand.make(path, _deployment("a", "b"))
    body = {"spec": {"template": {"spec": {"containers": patch}}}}
    status, found = await hand.ask("PATCH", f"{path}/d", body, kind=STRATEGIC)
    assert status == 200, found
    assert [c["name"] for c in found["spec"]["template"]["spec"]["containers"]] == names


async def test_strategic_directives_in_maps(hand: Hand) -> None:
    path = f"/apis/apps/v1/namespaces/{hand.space}/deployments"
    await hand.make(path, _deployment("a"))
    body: dict[str, Any] = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}}
    _, found = await hand.ask("PATCH", f"{path}/d", body, kind=STRATEGIC)
    assert found["metadata"]["finalizers"] == ["x.io/b"]
    body = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    _, found = await hand.ask("PATCH", f"{path}/d", body, kind=STRATEGIC)
    assert found["spec"]["strategy"] == {"type": "Recreate"}
    body = {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "a": "b", "n": "1"}}}}}
    _, found = await hand.ask("PATCH", f"{path}/d", body, kind=STRATEGIC)
    assert found["spec"]["template"]["metadata"]["labels"] == {"a": "b", "n": "1"}
    await hand.ask("PATCH", f"{path}/d", {"metadata": {"finalizers": None}}, kind=MERGE)


async def test_unknown_fields_are_dropped_or_refused(hand: Hand) -> None:
    body = nodeset("cpu")
    body["spec"]["what"] = 1
    status, found = await hand.ask("POST", hand.sets, body, query=(("fieldValidation", "Strict"),))
    assert (status, found["reason"]) == (400, "BadRequest")
    assert found["message"] == (
        'NodeSet in version "v1beta1" cannot be handled as a NodeSet: strict decoding error: unknown field "spec.what"'
    )
    status, found = await hand.ask("POST", hand.sets, body, query=(("fieldValidation", "Ignore"),))
    assert status == 201 and "what" not in found["spec"]
    wrong = pod("a")
    wrong["spec"]["what"] = 1
    status, found = await hand.ask("POST", hand.pods, wrong, query=(("fieldValidation", "Strict"),))
    assert (status, found["message"]) == (
        400, 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.what"',
    )  # fmt: skip
    status, found = await apply(hand, f"{hand.sets}/cpu", body)
    assert status == 500 and found["message"] == (
        "failed to create typed patch object (/cpu; slinky.slurm.net/v1beta1, Kind=NodeSet): .spec.what: field not declared in schema"
    )
    status, found = await apply(hand, f"{hand.pods}/a", wrong)
    assert status == 500 and found["message"] == (
        "failed to create typed patch object (/a; /v1, Kind=Pod): .spec.what: field not declared in schema"
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"scalingMode": "Both"}, '[spec.scalingMode: Unsupported value: "Both": supported values: "DaemonSet", "StatefulSet", '
         "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
         "existing errors to complete validation]"),
        ({"replicas": -1}, ".spec.replicas: Invalid value: -1: should be a non-negative integer"),
        ({"updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": {}}}, "spec.updateStrategy: Invalid value: "
         "scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate"),
    ],
    ids=["enum", "scale", "rule"],
)  # fmt: skip
async def test_the_schema_is_kept(hand: Hand, spec: dict[str, Any], message: str) -> None:
    body = nodeset("cpu")
    body["spec"] |= spec
    status, found = await hand.ask("POST", hand.sets, body)
    assert (status, found["reason"]) == (422, "Invalid")
    assert found["message"] == f'NodeSet.slinky.slurm.net "cpu" is invalid: {message}'


async def test_an_update_names_the_version_it_changes(hand: Hand) -> None:
    await hand.make(hand.sets, nodeset("cpu"))
    status, found = await hand.ask("PUT", f"{hand.sets}/cpu", nodeset("cpu"), kind=JSON)
    assert (status, found["message"]) == (
        422,
        'nodesets.slinky.slurm.net "cpu" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    )
