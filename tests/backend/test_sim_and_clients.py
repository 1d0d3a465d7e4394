"""Both clients against the simulator's cores, on one loop, without a socket; the engine over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import jwt
import pytest

from slinkytui.backend.clock import RealClock
from slinkytui.backend.engine import Engine
from slinkytui.backend.errors import BadRequest, Conflict, NotAllowed, NotFound, PlanStale, SlinkyError, Unreachable
from slinkytui.backend.http import Answer, CoreTransport, Request, Response
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.errors import Gone
from slinkytui.backend.kube.resources import NODESETS, PODS
from slinkytui.backend.kube.watch import Watcher
from slinkytui.backend.models import (
    Ask,
    FleetNode,
    FleetNodeSet,
    Job,
    NodeSet,
    Pod,
    SlurmNode,
    Source,
    StepResult,
    Table,
)
from slinkytui.backend.options import Options
from slinkytui.backend.sim.nodesets import PODS as SERVED_PODS
from slinkytui.backend.sim.scenario import load, names
from slinkytui.backend.sim.world import World
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.errors import CredentialRefused
from slinkytui.backend.slurm.poller import SlurmPoller
from slinkytui.backend.slurm.tokens import MintedToken, StaticToken
from slinkytui.backend.store import Store

START = 1_800_000_000.0


class Hand:
    """A world whose time a test moves, and the clients of it."""

    def __init__(self, scenario: str = "small") -> None:
        self.time = START
        self.world = World(load(scenario), lambda: self.time)
        token = jwt.encode(
            {"exp": int(START + 1e6), "iat": int(START), "sun": "root"}, self.world.key, algorithm="HS256"
        )
        self.slurm = SlurmClient(CoreTransport(self.world.handle_slurm), StaticToken(token), RealClock())
        self.kube = self.kube_as(self.world.token)

    def kube_as(self, token: str) -> KubeClient:
        return KubeClient(CoreTransport(self.world.handle_kube, {"authorization": f"Bearer {token}"}))

    def slurm_as(self, user: str) -> SlurmClient:
        token = jwt.encode({"exp": int(START + 1e6), "iat": int(START), "sun": user}, self.world.key, algorithm="HS256")
        return SlurmClient(CoreTransport(self.world.handle_slurm), StaticToken(token), RealClock())

    def go(self, seconds: float) -> None:
        self.time += seconds
        self.world.step()


@pytest.fixture
async def hand() -> Hand:
    made = Hand()
    await made.slurm.probe()
    return made


async def test_probe_and_lists(hand: Hand) -> None:
    assert (hand.slurm.cluster, hand.slurm.version, hand.slurm.user) == ("sim_small", "v0.0.45", "root")
    nodes, jobs = await hand.slurm.nodes(), await hand.slurm.jobs()
    assert len(nodes.rows) == 16
    assert len(jobs.rows) == 30
    assert (await hand.slurm.nodes((nodes.last_update or 0) + 1)).unchanged
    again = await hand.slurm.jobs((jobs.last_update or 0) + 1)
    assert again.unchanged
    assert not again.rows


async def test_the_gpus_of_jobs_and_nodes_agree(hand: Hand) -> None:
    nodes = [n for n in (await hand.slurm.nodes()).rows if isinstance(n, SlurmNode)]
    jobs = [j for j in (await hand.slurm.jobs()).rows if isinstance(j, Job)]
    used = sum(g.count for n in nodes for g in n.gres_used or ())
    assert used == sum(j.gpus or 0 for j in jobs if "RUNNING" in j.states) > 0


async def test_not_found_has_one_spelling(hand: Hand) -> None:
    for look in (hand.slurm.node("x"), hand.slurm.job("99999"), hand.slurm.partition("x"), hand.slurm.reservation("x")):
        with pytest.raises(NotFound):
            await look
    with pytest.raises(NotFound):
        await hand.slurm.node_update("x", {"state": ["DRAIN"], "reason": "t"})
    with pytest.raises(NotFound):
        await hand.slurm.job_cancel("99999")


async def test_a_token_is_checked(hand: Hand) -> None:
    bad = SlurmClient(CoreTransport(hand.world.handle_slurm), StaticToken("nonsense"), RealClock())
    with pytest.raises(CredentialRefused):
        await bad.probe()
    with pytest.raises(NotAllowed):
        alice = hand.slurm_as("alice")
        await alice.probe()
        await alice.node_update("h100-0", {"state": ["DRAIN"], "reason": "t"})
    minted = SlurmClient(
        CoreTransport(hand.world.handle_slurm), MintedToken(hand.world.key, "slurm", Fixed()), RealClock()
    )
    await minted.probe()


class Fixed(RealClock):
    def now(self) -> float:
        return START


async def test_drain_undrain_submit_hold_cancel(hand: Hand) -> None:
    await hand.slurm.node_update("h100-0", {"state": ["DRAIN"], "reason": "xid 79"})
    node = await hand.slurm.node("h100-0")
    assert "DRAIN" in node.states
    assert (node.reason, node.reason_user) == ("xid 79", "root")
    await hand.slurm.node_update("h100-0", {"state": ["UNDRAIN"]})
    assert "DRAIN" not in (await hand.slurm.node("h100-0")).states
    with pytest.raises(Conflict):
        await hand.slurm.node_update("cpu-0", {"state": ["RESUME"]})
    written = await hand.slurm.job_submit(
        "#!/bin/sh",
        {
            "partition": "h100",
            "current_working_directory": "/",
            "environment": ["A=b"],
            "tres_per_node": "gres/gpu:8",
            "hold": True,
        },
    )
    assert written.job_id is not None
    (job,) = await hand.slurm.job(str(written.job_id))
    assert job.hold
    assert job.gpus == 8
    await hand.slurm.job_release(job.raw_id)
    await hand.slurm.job_cancel(str(job.id))
    with pytest.raises(Conflict):
        await hand.slurm.job_cancel(str(job.id))
    with pytest.raises(BadRequest):
        await hand.slurm.job_submit("#!/bin/sh", {"partition": "nope", "current_working_directory": "/"})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, b"page not found", SlinkyError),
        (200, b"", SlinkyError),
        (502, b"<html>bad gateway</html>", Unreachable),
        (401, b"Authentication failure", NotAllowed),
        (200, b'{"nodes": [{"name": "a"', Unreachable),
        (200, b'{"nodes": null, "errors": [{"error_number": 1800, "description": "down"}]}', Unreachable),
        (500, b'{"errors": [{"error_number": 2016, "error": "busy"}]}', Conflict),
        (200, b'{"meta": {}}', SlinkyError),
    ],
)
async def test_odd_answers_are_errors_and_never_empty_lists(status: int, body: bytes, kind: type[Exception]) -> None:
    async def odd(request: Request) -> Response:
        return Response(status, body)

    client = SlurmClient(CoreTransport(odd), StaticToken("t"), RealClock(), cluster="c")
    client.version = "v0.0.45"
    with pytest.raises(kind):
        await client.nodes()


async def test_bare_nan_and_infinity_are_read() -> None:
    async def odd(request: Request) -> Response:
        return Response(
            200,
            b'{"nodes":[{"name":"a","cpu_load":NaN,"weight":Infinity,"state":"IDLE"},{"name":"b"}],"last_update":{"set":true,"number":5},"errors":[]}',
        )

    client = SlurmClient(CoreTransport(odd), StaticToken("t"), RealClock(), cluster="c")
    listing = await client.nodes()
    assert [str(r.id) for r in listing.rows if isinstance(r, SlurmNode)] == ["a", "b"]


async def test_a_poller_keeps_rows_when_slurm_goes_away(hand: Hand) -> None:
    store = Store()
    away = False

    class Switch(CoreTransport):
        def send(self, request: Request, *, timeout_s: float | None = None):  # type: ignore[no-untyped-def]
            if away:
                raise Unreachable("gone", retryable=False)
            return super().send(request, timeout_s=timeout_s)

    client = SlurmClient(Switch(hand.world.handle_slurm), hand.slurm._tokens, RealClock())
    await client.probe()
    poller = SlurmPoller(client, store, RealClock())
    task = asyncio.create_task(poller.run())
    try:
        await until(lambda: len(store.rows(Table.NODES)) == 16 and len(store.rows(Table.JOBS)) >= 30)
        away = True
        poller.refresh()
        await until(lambda: all(s.state == "stale" for s in sources(store)))
        assert len(store.rows(Table.NODES)) == 16
        away = False
        poller.refresh()
        await until(lambda: all(s.state == "live" for s in sources(store)))
    finally:
        task.cancel()


def sources(store: Store) -> list[Source]:
    return [s for s in store.rows(Table.SOURCES).values() if isinstance(s, Source)]


async def until(done: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a state of the world, with a deadline."""
    async with asyncio.timeout(seconds):
        while not done():
            await asyncio.sleep(0.01)  # the state has many writers and no event of its own


async def test_list_watch_410_and_relist_as_a_diff(hand: Hand) -> None:
    store = Store()
    task = asyncio.create_task(Watcher(hand.kube, PODS, store, RealClock()).run())
    try:
        await until(lambda: len(store.rows(Table.PODS)) == 16)
        changes = store.watch([Table.PODS])
        await hand.kube.patch(PODS, "slurm", "cpu-1", {"metadata": {"annotations": {"a": "b"}}})
        await until(lambda: ("a", "b") in pod(store, "cpu-1").meta.annotations)
        hand.world.objects.drop(SERVED_PODS, ("slurm", "cpu-2"))
        await until(lambda: len(store.rows(Table.PODS)) == 15)
        hand.world.objects.compact()
        await hand.kube.patch(PODS, "slurm", "cpu-3", {"metadata": {"annotations": {"c": "d"}}})
        await until(lambda: ("c", "d") in pod(store, "cpu-3").meta.annotations)
        assert {i[1] for i in changes.take()[Table.PODS]} == {"cpu-1", "cpu-2", "cpu-3"}
    finally:
        task.cancel()


def pod(store: Store, name: str) -> Pod:
    return next(p for p in store.rows(Table.PODS).values() if isinstance(p, Pod) and p.id.name == name)


async def test_an_old_version_is_gone(hand: Hand) -> None:
    hand.world.objects.compact()
    with pytest.raises(Gone):
        await hand.kube.call("GET", "/api/v1/pods", "watch", query=(("watch", "true"), ("resourceVersion", "1")))


async def test_preconditions_rights_and_scale(hand: Hand) -> None:
    found = await hand.kube.get(NODESETS, "slurm", "cpu")
    version = found["metadata"]["resourceVersion"]
    await hand.kube.scale(NODESETS, "slurm", "cpu", 3, version)
    with pytest.raises(Conflict) as stale:
        await hand.kube.scale(NODESETS, "slurm", "cpu", 2, version)
    assert "the object has been modified" in stale.value.detail
    with pytest.raises(Conflict):
        await hand.kube.delete(PODS, "slurm", "cpu-0", "wrong-uid")
    with pytest.raises(NotFound):
        await hand.kube.get(PODS, "slurm", "nope")
    reader = hand.kube_as(f"{hand.world.token}-reader")
    with pytest.raises(NotAllowed) as refused:
        await reader.patch(PODS, "slurm", "cpu-0", {"metadata": {"labels": {"x": "y"}}})
    assert "cannot patch" in refused.value.detail
    assert await reader.may("delete", PODS, "slurm") == (False, "reader may only read")
    assert (await hand.kube.may("delete", PODS, "slurm"))[0]


async def test_the_world_scales_in_by_draining_first(hand: Hand) -> None:
    busy = hand.world.slurm.nodes["cpu-3"].jobs
    assert busy
    found = await hand.kube.get(NODESETS, "slurm", "cpu")
    await hand.kube.scale(NODESETS, "slurm", "cpu", 3, found["metadata"]["resourceVersion"])
    hand.go(1)
    assert hand.world.slurm.nodes["cpu-3"].drain
    assert hand.world.objects.get(SERVED_PODS, "slurm", "cpu-3") is not None
    for job_id in list(busy):
        hand.world.slurm.cancel(job_id)
    for _ in range(4):
        hand.go(2)
    assert hand.world.objects.get(SERVED_PODS, "slurm", "cpu-3") is None
    assert "cpu-3" not in hand.world.slurm.nodes


@pytest.mark.parametrize("name", [n for n in names() if n not in ("huge", "gpu")])
async def test_each_scenario_lives(name: str) -> None:
    hand = Hand(name)
    await hand.slurm.probe()
    for _ in range(50):
        hand.go(60)
        for job in hand.world.slurm.jobs.values():
            for node_name, devices in job.nodes.items():
                if job.state == "RUNNING":
                    assert all(hand.world.slurm.nodes[node_name].devices[d] == job.id for d in devices)
    assert all(n.cpus_used >= 0 for n in hand.world.slurm.nodes.values())


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = Engine(Options(sim="small", journal=str(tmp_path / "journal")))
    await made.start()
    try:
        await made.settled()
        yield made
    finally:
        await made.close()


async def quiet(result: StepResult) -> None:
    """Nobody listens to the progress."""


async def test_an_engine_finds_slurm_joins_plans_and_runs(engine: Engine, tmp_path: Path) -> None:
    nodes = {n.id.name: n for n in engine.store.rows(Table.NODES).values() if isinstance(n, FleetNode)}
    sets = {s.id.name: s for s in engine.store.rows(Table.NODESETS).values() if isinstance(s, FleetNodeSet)}
    assert len(nodes) == 16
    assert all(n.match == "comment" for n in nodes.values())
    assert nodes["a100-2"].disagreement == "cordoned in Kubernetes, not drained in Slurm"
    assert (sets["h100"].want, sets["h100"].down) == (8, 1)
    assert isinstance(sets["h100"].nodeset, NodeSet)
    plan = await engine.plan(Ask("node.drain", ("cpu-0",), reason="test"))
    result = await engine.run(plan, quiet)
    assert result.ok
    await until(lambda: "DRAIN" in engine_node(engine, "cpu-0").states)
    with pytest.raises(PlanStale):
        await engine.run(plan, quiet)
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(e["phase"], e["target"]) for e in lines] == [("begin", "cpu-0"), ("end", "cpu-0")]
    assert "cpu-0" in await engine.raw(Table.NODES, nodes["cpu-0"].id)
    assert "kind: Pod" in await engine.raw(Table.PODS, nodes["cpu-0"].pod)  # type: ignore[arg-type]


def engine_node(engine: Engine, name: str) -> SlurmNode:
    return next(n for n in engine.facts.rows(Table.NODES).values() if isinstance(n, SlurmNode) and n.id.name == name)


async def test_an_answer_is_bounded() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 100

    with pytest.raises(ValueError, match="500 bytes"):
        await Answer(200, {}, chunks()).read(500)
