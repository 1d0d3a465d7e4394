"""Discovery, lists, watches and rights: the real API server and the simulator must say the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from slinkytui.backend.clock import RealClock
from slinkytui.backend.errors import Conflict, NotAllowed, NotFound
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import CONTROLLERS, NODESETS, PODS
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import Table
from slinkytui.backend.store import Store
from tests.contract.kube.world import MERGE, Hand, becomes, nodeset, pod


def names(found: dict[str, Any]) -> list[str]:
    return [i["metadata"]["name"] for i in found["items"]]


async def test_discovery(hand: Hand) -> None:
    assert "v1" in (await hand.ask("GET", "/api"))[1]["versions"]
    groups = {g["name"]: g for g in (await hand.ask("GET", "/apis"))[1]["groups"]}
    mine = groups["slinky.slurm.net"]
    assert mine["preferredVersion"] == {"groupVersion": "slinky.slurm.net/v1beta1", "version": "v1beta1"}
    _, found = await hand.ask("GET", "/apis/slinky.slurm.net/v1beta1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "slinky.slurm.net/v1beta1")
    by_name = {r["name"]: r for r in found["resources"]}
    assert {
        "controllers",
        "nodesets",
        "nodesets/scale",
        "nodesets/status",
        "loginsets",
        "restapis",
        "accountings",
        "tokens",
    } <= set(by_name)
    nodesets = by_name["nodesets"]
    assert (nodesets["kind"], nodesets["namespaced"], nodesets["shortNames"]) == (
        "NodeSet",
        True,
        ["nodesets", "nss", "slurmd"],
    )
    assert {"get", "list", "watch", "patch", "update", "create", "delete"} <= set(nodesets["verbs"])
    core = {r["name"]: r for r in (await hand.ask("GET", "/api/v1"))[1]["resources"]}
    assert (
        core["pods"]["namespaced"] and not core["nodes"]["namespaced"] and core["pods/eviction"]["kind"] == "Eviction"
    )
    assert (await hand.client.version()).startswith("v1.36.3")
    assert await hand.client.serves("slinky.slurm.net", "v1beta1")
    assert not await hand.client.serves("slinky.slurm.net", "v9")


async def test_pages(hand: Hand) -> None:
    for i in range(5):
        await hand.make(hand.pods, pod(f"p{i}", n=str(i % 2)))
    _, one = await hand.ask("GET", hand.pods, query=(("limit", "2"),))
    assert names(one) == ["p0", "p1"] and one["metadata"]["remainingItemCount"] == 3
    await hand.make(hand.pods, pod("p9"))
    _, two = await hand.ask("GET", hand.pods, query=(("limit", "2"), ("continue", one["metadata"]["continue"])))
    assert names(two) == ["p2", "p3"]
    assert two["metadata"]["resourceVersion"] == one["metadata"]["resourceVersion"], "all pages are of one moment"
    _, three = await hand.ask("GET", hand.pods, query=(("limit", "2"), ("continue", two["metadata"]["continue"])))
    assert names(three) == ["p4"] and not three["metadata"].get("continue")


async def test_a_selector_leaves_the_count_out(hand: Hand) -> None:
    for i in range(4):
        await hand.make(hand.pods, pod(f"p{i}", app="x"))
    _, one = await hand.ask("GET", hand.pods, query=(("limit", "2"), ("labelSelector", "app=x")))
    assert one["metadata"]["continue"] and "remainingItemCount" not in one["metadata"]


@pytest.mark.parametrize(
    ("query", "want"),
    [
        (("labelSelector", "app=x"), ["a", "b"]),
        (("labelSelector", "app!=x"), ["c", "d"]),
        (("labelSelector", "app"), ["a", "b", "c"]),
        (("labelSelector", "!app"), ["d"]),
        (("labelSelector", "app in (x,y),zone=1"), ["a", "c"]),
        (("labelSelector", "app notin (x)"), ["c", "d"]),
        (("fieldSelector", "metadata.name=a"), ["a"]),
        (("fieldSelector", "status.phase=Pending,metadata.name!=a"), ["b", "c", "d"]),
        (("fieldSelector", "spec.nodeName=n1"), ["d"]),
    ],
)
async def test_selectors(hand: Hand, query: tuple[str, str], want: list[str]) -> None:
    bound = pod("d")
    bound["spec"]["nodeName"] = "n1"
    for one in (pod("a", app="x", zone="1"), pod("b", app="x"), pod("c", app="y", zone="1"), bound):
        await hand.make(hand.pods, one)
    _, found = await hand.ask("GET", hand.pods, query=(query,))
    assert names(found) == want


async def test_a_selector_that_cannot_be_read(hand: Hand) -> None:
    status, found = await hand.ask("GET", hand.pods, query=(("labelSelector", "a in (b"),))
    assert (status, found["reason"]) == (400, "BadRequest")
    status, found = await hand.ask("GET", hand.pods, query=(("fieldSelector", "spec.nope=1"),))
    assert (status, found["reason"], found["message"]) == (400, "BadRequest", "field label not supported: spec.nope")


async def test_a_watch_tells_what_came_since(hand: Hand) -> None:
    _, listed = await hand.ask("GET", hand.sets)
    await hand.make(hand.sets, nodeset("a"))
    await hand.ask("PATCH", f"{hand.sets}/a", {"metadata": {"labels": {"x": "y"}}}, kind=MERGE)
    await hand.ask("DELETE", f"{hand.sets}/a")
    heard = await hand.events(hand.sets, listed["metadata"]["resourceVersion"], lambda h: h[-1]["type"] == "DELETED")
    assert [e["type"] for e in heard] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in heard]
    assert versions == sorted(set(versions))


async def test_a_watch_with_a_selector_says_deleted_when_an_object_leaves_it(hand: Hand) -> None:
    _, listed = await hand.ask("GET", hand.pods)
    await hand.make(hand.pods, pod("a", app="x"))
    await hand.make(hand.pods, pod("b"))
    await hand.ask("PATCH", f"{hand.pods}/a", {"metadata": {"labels": {"app": "y"}}}, kind=MERGE)
    await hand.ask("PATCH", f"{hand.pods}/b", {"metadata": {"labels": {"app": "x"}}}, kind=MERGE)
    heard = await hand.events(
        hand.pods, listed["metadata"]["resourceVersion"], lambda h: len(h) == 3, query=(("labelSelector", "app=x"),)
    )
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in heard] == [
        ("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b"),
    ]  # fmt: skip


async def test_a_watch_ends_with_its_timeout_and_a_bookmark(hand: Hand) -> None:
    _, listed = await hand.ask("GET", hand.sets)
    version = listed["metadata"]["resourceVersion"]
    heard = await hand.events(hand.sets, version, lambda h: False, seconds=2, query=(("allowWatchBookmarks", "true"),))
    assert {e["type"] for e in heard} <= {"BOOKMARK"}
    for event in heard:
        assert event["object"]["kind"] == "NodeSet" and int(event["object"]["metadata"]["resourceVersion"]) >= int(
            version
        )


async def test_rights(hand: Hand, reader: Hand) -> None:
    assert (await hand.client.may("delete", PODS, hand.space))[0]
    assert (await reader.client.may("list", NODESETS, hand.space))[0]
    assert not (await reader.client.may("patch", NODESETS, hand.space, "scale"))[0]


async def test_the_client_keeps_its_promises(hand: Hand, reader: Hand) -> None:
    client: KubeClient = hand.client
    made = await hand.make(hand.sets, nodeset("cpu"))
    version = made["metadata"]["resourceVersion"]
    await client.scale(NODESETS, hand.space, "cpu", 3, version)
    with pytest.raises(Conflict):
        await client.scale(NODESETS, hand.space, "cpu", 4, version)
    with pytest.raises(Conflict):
        await client.delete(NODESETS, hand.space, "cpu", "another-uid")
    with pytest.raises(NotFound):
        await client.get(NODESETS, hand.space, "nope")
    with pytest.raises(NotAllowed) as refused:
        await reader.client.delete(NODESETS, hand.space, "cpu", made["metadata"]["uid"])
    assert "cannot delete resource" in refused.value.detail


async def test_a_watcher_fills_the_store_and_survives_a_compaction(hand: Hand) -> None:
    store = Store()
    for i in range(3):
        await hand.make(hand.pods, pod(f"p{i}", app="x"))
    version = (await hand.ask("GET", hand.pods))[1]["metadata"]["resourceVersion"]
    task = asyncio.create_task(Watcher(hand.client, PODS, store, RealClock(), namespace=hand.space).run())

    async def has(want: set[str]) -> bool:
        return {r.id.name for r in store.rows(Table.PODS).values()} == want  # type: ignore[attr-defined]

    try:
        await becomes(lambda: has({"p0", "p1", "p2"}))
        await hand.ask("DELETE", f"{hand.pods}/p1", query=(("gracePeriodSeconds", "0"),))
        await hand.make(hand.pods, pod("p7"))
        await becomes(lambda: has({"p0", "p2", "p7"}))
        await hand.make(hand.pods, pod("p8"))
        await asyncio.to_thread(hand.world.compact)
        status, found = await hand.ask(
            "GET", hand.pods, query=(("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", "2"))
        )
        gone = found if status == 410 else found.get("object", {})
        assert (gone["code"], gone["reason"]) == (410, "Expired")
        await hand.ask("DELETE", f"{hand.pods}/p0", query=(("gracePeriodSeconds", "0"),))
        await becomes(lambda: has({"p2", "p7", "p8"}))
    finally:
        task.cancel()


async def test_a_table(hand: Hand) -> None:
    await hand.make(hand.sets, nodeset("cpu"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    _, found = await hand.ask("GET", hand.sets, accept=accept)
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [c["name"].upper() for c in found["columnDefinitions"]] == [
        "NAME", "DESIRED", "REPLICAS", "UPDATED", "READY", "IDLE", "ALLOCATED", "DOWN", "DRAIN", "AGE",
    ]  # fmt: skip
    assert found["rows"][0]["cells"][0] == "cpu"


async def test_other_custom_resources_are_served(hand: Hand) -> None:
    status, found = await hand.ask("GET", CONTROLLERS.path(hand.space))
    assert status == 200, found
    assert (found["kind"], found["items"]) == ("ControllerList", [])
