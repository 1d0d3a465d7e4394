"""Whatever a server, a proxy or an upgrade answers becomes data or one typed error, and never an empty list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.errors import (
    BadRequest,
    ConfigError,
    NotFound,
    SlinkyError,
    SlurmError,
    Unreachable,
)
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.models import NodeId, Source, Table
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.poller import SlurmPoller
from slinkytui.backend.slurm.tokens import StaticToken
from slinkytui.backend.slurm.transport import HttpxTransport
from slinkytui.backend.store import Store
from tests.rules import case, holds

Answer = Callable[[Request], Response]


class Instant(VirtualClock):
    """The pause before another try takes no time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def client_of(answer: Answer, *, tokens: Any = None) -> SlurmClient:
    async def handle(request: Request) -> Response:
        return answer(request)

    made = SlurmClient(CoreTransport(handle), tokens or StaticToken("t"), Instant(), cluster="c")
    made.version = "v0.0.45"
    return made


def body(data: dict[str, Any], release: str = "26.05.5") -> Response:
    return Response(200, json.dumps({**data, "meta": {"slurm": {"release": release}}, "errors": []}).encode())


CALLS: dict[str, Callable[[SlurmClient], Awaitable[Any]]] = {
    "nodes": lambda c: c.nodes(),
    "node": lambda c: c.node("a"),
    "states": lambda c: c.jobs_state(),
    "cancel": lambda c: c.job_cancel("1"),
    "cancel pending": lambda c: c.job_cancel_pending("1"),
    "submit": lambda c: c.job_submit("#!/bin/sh", {}),
    "update": lambda c: c.node_update("a", {"state": ["DRAIN"]}),
    "probe": lambda c: c.probe(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("page", [b"<html>login</html>", b"", b"null", b"[]", b'"text"', b"{}"])
async def test_a_page_that_is_no_answer_is_unreachable_and_never_not_found(call: str, page: bytes) -> None:
    with pytest.raises(Unreachable):
        await CALLS[call](client_of(lambda r: Response(200, page, "text/html")))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "odd",
    [
        {"meta": "x"}, {"meta": {"slurm": "x"}}, {"nodes": None}, {"nodes": {"a": 1}}, {"nodes": "x"}, {"jobs": 7},
        {"nodes": [], "errors": "boo"}, {"errors": [7, None, "x"]}, {"errors": {"a": 1}}, {"status": [7, "x", {"error": "x"}]},
        {"warnings": 7, "nodes": [1, None, {"name": None}]},
    ],
)  # fmt: skip
async def test_odd_shapes_end_in_our_errors_or_data(call: str, odd: dict[str, Any]) -> None:
    try:
        found = await CALLS[call](client_of(lambda r: Response(200, json.dumps(odd).encode())))
    except SlinkyError as error:
        assert not isinstance(error, NotFound) or "errors" in odd
    else:
        assert call in ("cancel", "cancel pending", "update") or found.lost


@holds("W7")
async def test_a_list_that_is_missing_clears_nothing() -> None:
    with pytest.raises(SlurmError, match="no list of nodes"):
        await client_of(lambda r: body({"nodes": None})).nodes()


async def test_a_lookup_has_found_nothing_only_when_the_server_says_so() -> None:
    warned = Response(200, b'{"warnings":[{"description":"Unable to find partition x"}],"meta":{}}')
    with pytest.raises(NotFound, match="partition x"):
        await client_of(lambda r: warned).partition("x")
    with pytest.raises(SlurmError):
        await client_of(lambda r: body({})).partition("x")
    with pytest.raises(SlurmError, match="cannot be read"):
        await client_of(lambda r: body({"nodes": [{"cpus": 4}]})).node("x")


async def test_a_submit_without_a_job_id_is_refused_with_the_servers_words() -> None:
    refused = {"warnings": [{"description": "Expected integer for tasks"}]}
    with pytest.raises(BadRequest) as error:
        await client_of(lambda r: body(refused)).job_submit("#!/bin/sh", {"tasks": "abc"})
    assert "Expected integer" in error.value.detail


ABSENT = [
    case("W57", "404", 404, {"errors": [{"error_number": 2018, "error": "Invalid reservation"}]}),
    case("W57", "200 with error 0 and no key", 200, {"errors": [{"error_number": 0, "error": "No error"}]}),
    case("W57", "422 with error 9000", 422, {"errors": [{"error_number": 9000, "error": "x", "source": "_get_single_reservation"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said"), ABSENT)
async def test_a_reservation_that_is_not_there_is_absent_in_each_spelling(status: int, said: dict[str, Any]) -> None:
    answer = Response(status, json.dumps({**said, "meta": {"slurm": {"release": "26.05.5"}}}).encode())
    with pytest.raises(NotFound):
        await client_of(lambda r: answer).reservation("slurm-operator-gpu")


class Upgraded:
    """A server that drops v0.0.42 at some moment and speaks v0.0.45 from then on."""

    def __init__(self) -> None:
        self.new = False
        self.writes = 0

    def __call__(self, request: Request) -> Response:
        version = request.path.split("/")[2]
        if version != ("v0.0.45" if self.new else "v0.0.42"):
            return Response(404, b"Unable to find requested URL endpoint.", "text/plain")
        self.writes += request.method == "POST"
        release = "26.05.5" if self.new else "24.11.5"
        return body({"pings": [], "statistics": {}, "nodes": [{"name": "a"}], "last_update": 5}, release)


async def test_an_upgrade_of_the_server_is_followed_within_one_call() -> None:
    server = Upgraded()
    client = client_of(server)
    await client.probe()
    assert (client.version, client.release) == ("v0.0.42", "24.11.5")
    assert "job.requeue" in client.missing()
    server.new = True
    assert len((await client.nodes()).rows) == 1
    assert (client.version, client.release) == ("v0.0.45", "26.05.5")
    assert "job.requeue" not in client.missing()
    server.new = False
    await client.node_update("a", {"state": ["DRAIN"]})
    assert server.writes == 1
    assert client.version == "v0.0.42"


async def test_a_new_release_behind_the_same_version_is_probed_again() -> None:
    answers = {"release": "24.11.5", "newest": "v0.0.42"}

    def server(request: Request) -> Response:
        if request.path.split("/")[2] > answers["newest"]:
            return Response(404, b"", "text/plain")
        return body({"pings": [], "statistics": {}, "nodes": [], "last_update": 5}, answers["release"])

    client = client_of(server)
    await client.probe()
    answers.update(release="26.05.5", newest="v0.0.45")
    await client.nodes()
    await client.nodes()
    assert (client.version, client.release) == ("v0.0.45", "26.05.5")


class Rotating:
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    async def token(self) -> str:
        return self.texts[0]

    def forget(self) -> None:
        if len(self.texts) > 1:
            self.texts.pop(0)


@holds("E4")
@pytest.mark.parametrize("call", ["nodes", "node"])
async def test_a_refused_token_is_renewed_once_also_for_lists(call: str) -> None:
    def server(request: Request) -> Response:
        if request.headers["x-slurm-user-token"] != "new":
            return Response(511, b'{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}')
        return body({"nodes": [{"name": "a"}], "last_update": 5})

    assert await CALLS[call](client_of(server, tokens=Rotating(["old", "new"])))
    with pytest.raises(SlinkyError, match="refuses the token"):
        await CALLS[call](client_of(server, tokens=Rotating(["old", "older", "new"])))


@pytest.mark.parametrize("token", ["Ω", "a\nb", "a b", "\x00"])
async def test_a_text_that_is_no_token_is_a_config_error(token: str) -> None:
    with pytest.raises(ConfigError):
        await client_of(lambda r: body({}), tokens=StaticToken(token)).nodes()


@pytest.mark.parametrize(
    "url", ["http://h:99999", "http://[::1", "http://", "https://a b/", "http://h\x00/", "unix:relative", "ftp://h", ""]
)
def test_a_text_that_is_no_address_is_a_config_error(url: str) -> None:
    with pytest.raises(ConfigError):
        HttpxTransport(url)


async def test_a_fault_of_ours_in_one_list_ends_no_other_and_is_shown() -> None:
    class Broken(Store):
        async def replace(self, table: Table, scope: str, rows: Any, keep: Any = ()) -> None:
            if table == Table.JOBS:
                raise RuntimeError("a defect")
            await super().replace(table, scope, rows)

    store, clock = Broken(), VirtualClock()
    lists = {"nodes": [{"name": "a"}], "jobs": [{"job_id": 1}], "partitions": [], "reservations": [], "last_update": 5}
    poller = SlurmPoller(client_of(lambda r: body(lists)), store, clock)
    task = asyncio.create_task(poller.run())
    await clock.advance(11)
    states = {s.name: (s.state, s.error) for s in store.rows(Table.SOURCES).values() if isinstance(s, Source)}
    assert states["slurm/c/nodes"] == ("live", "")
    assert states["slurm/c/jobs"][0] == "stale"
    assert "a defect" in states["slurm/c/jobs"][1]
    assert NodeId("c", "a") in store.rows(Table.NODES)
    assert not task.done()
    task.cancel()
