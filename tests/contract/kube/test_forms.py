"""The forms of an answer: tables, metadata alone, discovery at once, OpenAPI; the same at the real server and the simulator."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contract.kube.world import MERGE, Hand, config, nodeset, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGE = re.compile(r"^\d+s$")


async def table(hand: Hand, path: str, **query: str) -> tuple[list[str], list[list[Any]]]:
    """Titles and rows; ages as "AGE"."""
    status, found = await hand.ask("GET", path, accept=TABLE, query=tuple(query.items()))
    assert (status, found["kind"]) == (200, "Table"), found
    rows = [["AGE" if AGE.match(str(c)) else c for c in r["cells"]] for r in found["rows"]]
    return [c["name"] for c in found["columnDefinitions"]], rows


async def test_pods_in_their_states(hand: Hand) -> None:
    status: list[dict[str, Any]] = [
        {"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}],
         "containerStatuses": [{"name": "slurmd", "ready": True, "restartCount": 2, "image": "i", "imageID": "", "state": {"running": {}}}]},
        {"phase": "Running",
         "containerStatuses": [{"name": "slurmd", "ready": False, "restartCount": 7, "image": "i", "imageID": "",
                                "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        {"phase": "Failed", "reason": "Evicted"},
        {"phase": "Failed",
         "containerStatuses": [{"name": "slurmd", "ready": False, "restartCount": 0, "image": "i", "imageID": "",
                                "state": {"terminated": {"exitCode": 3}}}]},
    ]  # fmt: skip
    for n, one in enumerate(status):
        await hand.make(hand.pods, pod(f"p{n}"))
        code, said = await hand.ask("PATCH", f"{hand.pods}/p{n}/status", {"status": one}, kind=MERGE)
        assert code == 200, said
    await hand.make(hand.pods, pod("p4"))
    titles, rows = await table(hand, hand.pods)
    assert titles == ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"]
    none = "<none>"
    assert rows == [
        ["p0", "1/1", "Running", "2", "AGE", "10.0.0.9", none, none, none],
        ["p1", "0/1", "CrashLoopBackOff", "7", "AGE", none, none, none, none],
        ["p2", "0/1", "Evicted", "0", "AGE", none, none, none, none],
        ["p3", "0/1", "ExitCode:3", "0", "AGE", none, none, none, none],
        ["p4", "0/1", "Pending", "0", "AGE", none, none, none, none],
    ]


async def test_other_kinds(hand: Hand) -> None:
    await hand.make(hand.maps, config("c", a="1", b="2"))
    assert (await table(hand, f"{hand.maps}/c"))[1] == [["c", 2, "AGE"]]
    at = f"/api/v1/namespaces/{hand.space}"
    await hand.make(f"{at}/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    assert (await table(hand, f"{at}/secrets/s"))[1] == [["s", "Opaque", 1, "AGE"]]
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
    await hand.make(
        f"{at}/services",
        {"metadata": {"name": "x"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": ports}},
    )
    assert (await table(hand, f"{at}/services/x"))[1] == [
        ["x", "ClusterIP", "None", "<none>", "80/TCP,53/UDP", "AGE", "a=b"]
    ]
    assert (await table(hand, f"/api/v1/namespaces/{hand.space}"))[1] == [[hand.space, "Active", "AGE"]]
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{hand.space}/leases"
    await hand.make(lease, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    assert (await table(hand, f"{lease}/l"))[1] == [["l", "me", "AGE"]]
    budgets = f"/apis/policy/v1/namespaces/{hand.space}/poddisruptionbudgets"
    await hand.make(budgets, {"metadata": {"name": "b"}, "spec": {"maxUnavailable": "10%", "selector": {}}})
    assert (await table(hand, f"{budgets}/b"))[1] == [["b", "N/A", "10%", 0, "AGE"]]


async def test_a_node_and_its_cordon(hand: Hand) -> None:
    name = f"n-{hand.space}"
    body = {
        "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": True},
    }
    await hand.make("/api/v1/nodes", body)
    ready = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "conditions": [ready],
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    }
    await hand.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, kind=MERGE)
    _, (row,) = await table(hand, f"/api/v1/nodes/{name}")
    assert row[1:] == ["Ready,SchedulingDisabled", "worker", "AGE", "v1.36.3", "10.0.0.1", "<none>", *["<unknown>"] * 3]
    await hand.ask("DELETE", f"/api/v1/nodes/{name}")


@pytest.mark.parametrize("group", ["v1", "events.k8s.io/v1"])
async def test_events_of_both_groups(hand: Hand, group: str) -> None:
    at = f"/api/v1/namespaces/{hand.space}/events"
    involved = {"kind": "Pod", "name": "p", "namespace": hand.space, "apiVersion": "v1"}
    body = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Killing", "message": "Stopping", "type": "Normal",
            "source": {"component": "kubelet"}, "count": 3, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": None}  # fmt: skip
    await hand.make(at, body)
    path = at if group == "v1" else f"/apis/{group}/namespaces/{hand.space}/events"
    titles, (row,) = await table(hand, path)
    assert titles == [
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "Subobject",
        "Source",
        "Message",
        "First Seen",
        "Count",
        "Name",
    ]
    assert (row[1:7], row[8:]) == (["Normal", "Killing", "pod/p", "", "kubelet", "Stopping"], [3, "e"])
    _, found = await hand.ask("GET", f"{path}/e")
    assert found["apiVersion"] == group
    assert (
        (found["note"], found["regarding"])
        if group != "v1"
        else (found["message"], found["involvedObject"]) == ("Stopping", involved)
    )


async def test_a_watch_of_tables(hand: Hand) -> None:
    made = await hand.make(hand.maps, config("a"))
    await hand.make(hand.maps, config("b", x="1"))
    await hand.ask("DELETE", f"{hand.maps}/b")
    asked = (("watch", "true"), ("resourceVersion", made["metadata"]["resourceVersion"]), ("timeoutSeconds", "2"))
    _, found = await hand.ask("GET", hand.maps, accept=TABLE, query=(*asked, ("fieldSelector", "metadata.name=b")))
    events = [json.loads(line) for line in found["text"].splitlines()]
    lines = [e["type"] for e in events if e["object"]["kind"] == "Table" and e["object"]["rows"]]
    assert events[0]["object"]["columnDefinitions"] and not events[1]["object"]["columnDefinitions"]
    assert lines == ["ADDED", "DELETED"]


async def test_metadata_alone(hand: Hand) -> None:
    await hand.make(hand.sets, nodeset("cpu"))
    _, found = await hand.ask("GET", hand.sets, accept=METADATA)
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    (one,) = found["items"]
    assert one["metadata"]["name"] == "cpu" and "spec" not in one


async def test_a_watch_may_begin_with_what_is_there(hand: Hand) -> None:
    await hand.make(hand.maps, config("a"))
    query = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"), ("allowWatchBookmarks", "true"),
             ("fieldSelector", "metadata.name=a"))  # fmt: skip
    heard = await hand.events(hand.maps, "", lambda seen: seen[-1]["type"] == "BOOKMARK", query=query)
    assert [e["type"] for e in heard] == ["ADDED", "BOOKMARK"]
    assert heard[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_discovery_at_once(hand: Hand) -> None:
    _, found = await hand.ask("GET", "/apis", accept=AGGREGATED)
    assert (found["kind"], found["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    (ours,) = (g for g in found["items"] if g["metadata"]["name"] == "slinky.slurm.net")
    (version,) = ours["versions"]
    sets = next(r for r in version["resources"] if r["resource"] == "nodesets")
    assert sets["responseKind"] == {"group": "slinky.slurm.net", "version": "v1beta1", "kind": "NodeSet"}
    assert (sets["scope"], sets["singularResource"], sets["shortNames"]) == (
        "Namespaced",
        "nodeset",
        ["nodesets", "nss", "slurmd"],
    )
    kinds = {s["subresource"]: s["responseKind"]["kind"] for s in sets["subresources"]}
    assert kinds == {"status": "NodeSet", "scale": "Scale"}


async def test_openapi_has_the_custom_resources(hand: Hand) -> None:
    _, index = await hand.ask("GET", "/openapi/v3")
    assert {"api/v1", "apis/apps/v1", "apis/slinky.slurm.net/v1beta1"} <= index["paths"].keys()
    _, found = await hand.ask("GET", "/openapi/v3/apis/slinky.slurm.net/v1beta1")
    schema = next(s for n, s in found["components"]["schemas"].items() if n.endswith(".NodeSet"))
    assert schema["properties"]["spec"]["properties"]["scalingMode"]["enum"] == ["DaemonSet", "StatefulSet"]
    at = "/apis/slinky.slurm.net/v1beta1/namespaces/{namespace}/nodesets/{name}"
    assert "fieldValidation" in {p["name"] for p in found["paths"][at]["patch"]["parameters"]}


async def test_what_a_deletion_answers(hand: Hand) -> None:
    made = await hand.make(hand.maps, config("c"))
    _, found = await hand.ask("DELETE", f"{hand.maps}/c")
    assert (found["kind"], found["status"]) == ("Status", "Success")
    assert found["details"] == {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    await hand.make(hand.pods, pod("a"))
    _, found = await hand.ask("DELETE", f"{hand.pods}/a")
    assert found["kind"] == "Pod"


async def test_a_collection_is_deleted_by_selector(hand: Hand) -> None:
    for name, mark in (("a", "x"), ("b", "x"), ("c", "y")):
        await hand.make(hand.maps, {**config(name), "metadata": {"name": name, "labels": {"m": mark}}})
    status, _ = await hand.ask("DELETE", hand.maps, query=(("labelSelector", "m=x"),))
    _, found = await hand.ask("GET", hand.maps, query=(("labelSelector", "m"),))
    assert status == 200 and [o["metadata"]["name"] for o in found["items"]] == ["c"]


async def test_rules_of_the_reader(reader: Hand) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": reader.space},
    }
    status, found = await reader.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body)
    assert status == 201
    assert {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]} in found["status"][
        "resourceRules"
    ]
