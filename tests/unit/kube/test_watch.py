"""What a watcher does when a watch breaks, a version is too old or an object cannot be read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.errors import Unreachable
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import PODS
from slinkytui.backend.kube.watch import MOST_S, Watcher
from slinkytui.backend.models import Key, Meta, Pod, Source, Table
from slinkytui.backend.store import Store


def pod(name: str, *, node: Any = "k1", version: str = "1") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "s", "uid": name, "resourceVersion": version},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running"},
    }


def event(kind: str, found: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


class Server:
    """Answers lists with `pods` and each watch with the next of `watches`; the last one stays silent."""

    def __init__(self, pods: list[Any], watches: list[Callable[[], AsyncIterator[bytes]] | int]) -> None:
        self.pods, self.watches = pods, watches
        self.asked: list[str] = []

    async def handle(self, request: Request) -> Response:
        if request.first("watch"):
            self.asked.append(f"watch {request.first('resourceVersion')}")
            found = self.watches.pop(0) if self.watches else silence
            if isinstance(found, int):
                return Response(found, json.dumps({"code": found, "message": "no"}).encode())
            return Response(body=found())
        self.asked.append("list")
        return Response(body=json.dumps({"metadata": {"resourceVersion": "10"}, "items": self.pods}).encode())


async def silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def breaks(*events: bytes) -> Callable[[], AsyncIterator[bytes]]:
    """A watch that gives these events and then loses its connection."""

    async def chunks() -> AsyncIterator[bytes]:
        for found in events:
            yield found
        raise Unreachable("the connection has broken off")

    return chunks


def stays(*events: bytes) -> Callable[[], AsyncIterator[bytes]]:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"".join(events)
        await asyncio.Event().wait()

    return chunks


async def watched(server: Server, store: Store, seconds: float) -> None:
    """Let a watcher run for that long."""
    clock = VirtualClock()
    task = asyncio.create_task(Watcher(KubeClient(CoreTransport(server.handle)), PODS, store, clock).run())
    for _ in range(int(seconds * 2) + 1):
        for _ in range(20):
            await asyncio.sleep(0)
        await clock.advance(0.5)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()


def names(store: Store) -> set[str]:
    return {k.name for k in store.rows(Table.PODS) if isinstance(k, Key)}


def source(store: Store) -> Source:
    found = store.get(Table.SOURCES, Key("", "kubernetes/pods"))
    assert isinstance(found, Source)
    return found


async def test_a_broken_watch_goes_on_from_the_last_version() -> None:
    server, store = Server([pod("a")], [breaks(event("ADDED", pod("b", version="12"))), stays()]), Store()
    await watched(server, store, 5)
    assert server.asked == ["list", "watch 10", "watch 12"]
    assert names(store) == {"a", "b"}
    assert (source(store).state, source(store).error) == ("live", "")


async def test_a_version_that_is_too_old_lists_again() -> None:
    server, store = Server([pod("a")], [410, stays()]), Store()
    await watched(server, store, 3)
    assert server.asked == ["list", "watch 10", "list", "watch 10"]


async def test_a_list_that_works_does_not_mend_a_watch_that_fails() -> None:
    server, store = Server([pod("a")], [500] * 1000), Store()
    await watched(server, store, 120)
    # Without a growing pause there would be hundreds; each pause is MOST_S / 2 in the mean.
    assert 120 / MOST_S <= len([a for a in server.asked if a.startswith("watch")]) < 80
    assert 1 < server.asked.count("list") < 25
    assert (source(store).state, names(store)) == ("stale", {"a"})


async def test_watches_refused_as_too_old_are_not_listed_in_a_circle() -> None:
    server, store = Server([pod("a")], [410] * 1000), Store()
    await watched(server, store, 120)
    assert server.asked.count("list") < 80


async def test_an_unreadable_object_keeps_its_old_row_and_the_rest_is_replaced() -> None:
    server, store = Server([pod("a"), pod("b", node=5)], [stays()]), Store()
    await store.replace(
        Table.PODS, "", [Pod(Key("s", n), meta=_meta(n), phase="Running", node="old") for n in ("a", "b", "c")]
    )
    await watched(server, store, 1)
    assert names(store) == {"a", "b"}
    held = store.get(Table.PODS, Key("s", "b"))
    assert isinstance(held, Pod)
    assert held.node == "old"
    assert source(store).error == "1 objects could not be read"


async def test_an_object_without_even_a_name_removes_nothing() -> None:
    server, store = Server([pod("a"), {"metadata": 7}], [stays()]), Store()
    await store.replace(Table.PODS, "", [Pod(Key("s", "c"), meta=_meta("c"), phase="Running")])
    await watched(server, store, 1)
    assert names(store) == {"a", "c"}
    assert source(store).error


@pytest.mark.parametrize(
    ("events", "left", "error"),
    [
        ([event("MODIFIED", pod("a", node=5))], {"a"}, "1 objects could not be read"),
        ([event("MODIFIED", pod("a", node=5)), event("MODIFIED", pod("a"))], {"a"}, ""),
        ([event("MODIFIED", pod("a", node=5)), event("DELETED", pod("a", node=5))], set(), ""),
    ],
)
async def test_an_unreadable_event(events: list[bytes], left: set[str], error: str) -> None:
    server, store = Server([pod("a")], [stays(*events)]), Store()
    await watched(server, store, 3)
    assert names(store) == left
    assert server.asked == ["list", "watch 10"]
    assert (source(store).state, source(store).error) == ("live", error)


async def test_an_event_that_is_no_event_lists_again() -> None:
    server, store = Server([pod("a")], [stays(b"{nonsense\n"), stays()]), Store()
    await watched(server, store, 12)
    assert server.asked == ["list", "watch 10", "list", "watch 10"]
    assert names(store) == {"a"}


def test_names_are_quoted_in_full() -> None:
    assert PODS.path("a/b", "../x?y", "log") == "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy/log"


def _meta(name: str) -> Meta:
    return Meta(uid=name)
