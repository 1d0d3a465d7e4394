"""Every fault of the simulator over in-memory transports, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.errors import BadRequest, UsageError
from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim.__main__ import main_set
from slinkytui.backend.sim.faults import SETTINGS, Settings, read, read_all
from slinkytui.backend.sim.scenario import Scenario, Set, load
from slinkytui.backend.sim.setting import change
from slinkytui.backend.sim.settingsrest import PATH, SettingsRest
from slinkytui.backend.sim.simclock import SimClock
from slinkytui.backend.sim.world import World

SMALL = Scenario(name="t", sets=(Set(name="h100", nodes=3, gpus=8),))
PODS = "/api/v1/namespaces/slurm/pods"


class Bench:
    """A world whose time only the test moves."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.world = World(SMALL, self.clock.now, sleep=self.clock.sleep)
        claims = {"exp": int(self.clock.now()) + 86_400, "sun": "root"}
        self.token = jwt.encode(claims, self.world.key, algorithm="HS256")

    async def slurm(self, path: str = "nodes") -> Response:
        headers = {"x-slurm-user-token": self.token}
        return await self.world.handle_slurm(Request("GET", f"/slurm/v0.0.45/{path}", (), headers))

    async def kube(
        self, path: str = PODS, method: str = "GET", query: tuple[tuple[str, str], ...] = (), body: bytes = b""
    ) -> Response:
        headers = {"authorization": f"Bearer {self.world.token}", "content-type": "application/merge-patch+json"}
        return await self.world.handle_kube(Request(method, path, query, headers, body))

    def set(self, **changes: Any) -> None:
        self.world.settings.change({name.replace("__", "."): value for name, value in changes.items()})

    async def states(self) -> dict[str, list[str]]:
        return {n.name: n.states(self.world.slurm.jobs) for n in self.world.slurm.nodes.values()}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def found(response: Response) -> dict[str, Any]:
    assert isinstance(response.body, bytes)
    read: dict[str, Any] = json.loads(response.body)
    return read


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("side", ["slurm", "kube"])
async def test_latency(bench: Bench, side: str) -> None:
    bench.set(**{f"{side}__latency": "2s"})
    asked = asyncio.create_task(getattr(bench, side)())
    await turn()
    await bench.clock.advance(1.9)
    assert not asked.done()
    await bench.clock.advance(0.2)
    assert (await asked).status == 200


@pytest.mark.parametrize("side", ["slurm", "kube"])
async def test_silence_lasts_until_it_is_over(bench: Bench, side: str) -> None:
    bench.set(**{f"{side}__silence": "on"})
    asked = asyncio.create_task(getattr(bench, side)())
    await turn()
    await bench.clock.advance(3600)
    assert not asked.done()
    bench.set(**{f"{side}__silence": "off"})
    assert (await asked).status == 200


async def test_a_share_of_errors(bench: Bench) -> None:
    bench.set(slurm__errors=0.3, kube__errors=0.3)
    slurm = [(await bench.slurm("diag")).status for _ in range(200)]
    kube = [(await bench.kube()).status for _ in range(200)]
    assert set(slurm) == {200, 502} and 40 < slurm.count(502) < 80
    assert set(kube) == {200, 503} and 40 < kube.count(503) < 80


async def test_errors_inside_an_answer_of_200(bench: Bench) -> None:
    bench.set(slurm__refusals=1)
    answer = await bench.slurm()
    assert answer.status == 200
    assert found(answer)["errors"][0]["error_number"] == -1 and "nodes" not in found(answer)


async def test_a_watch_that_is_gone(bench: Bench) -> None:
    bench.set(kube__gone="on")
    answer = await bench.kube(query=(("watch", "true"),))
    assert not isinstance(answer.body, bytes)
    lines = [json.loads(line) async for line in answer.body]
    assert [(e["type"], e["object"]["code"]) for e in lines] == [("ERROR", 410)]


async def test_a_running_watch_ends_when_it_is_gone(bench: Bench) -> None:
    answer = await bench.kube(query=(("watch", "true"),))
    assert not isinstance(answer.body, bytes)
    stream = answer.body.__aiter__()
    assert json.loads((await anext(stream)).splitlines()[0])["type"] == "ADDED"
    bench.set(kube__gone="on")
    assert json.loads(await anext(stream))["object"]["code"] == 410
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_conflicts_are_for_writes_and_write_nothing(bench: Bench) -> None:
    bench.set(kube__conflicts=1)
    body = json.dumps({"metadata": {"labels": {"seen": "yes"}}}).encode()
    refused = await bench.kube(f"{PODS}/h100-0", "PATCH", body=body)
    assert (refused.status, found(refused)["reason"]) == (409, "Conflict")
    assert "seen" not in found(await bench.kube(f"{PODS}/h100-0"))["metadata"]["labels"]
    bench.set(kube__conflicts=0)
    assert (await bench.kube(f"{PODS}/h100-0", "PATCH", body=body)).status == 200


@pytest.mark.parametrize(("delay", "ready"), [("0s", True), ("1m", False)])
async def test_slow_pods(bench: Bench, delay: str, ready: bool) -> None:
    bench.set(pods__delay=delay)
    pod = {"metadata": {"name": "tool"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await bench.kube(PODS, "POST", body=json.dumps(pod).encode())).status == 201
    for _ in range(10):
        await bench.clock.advance(3)
        bench.world.step()
    status = found(await bench.kube(f"{PODS}/tool"))["status"]
    assert (status.get("phase") == "Running") is ready


async def test_dead_nodes_fall_silent_go_down_and_come_back(bench: Bench) -> None:
    bench.set(nodes__dead=2)
    await bench.clock.advance(1)
    bench.world.step()
    assert [s for s in (await bench.states()).values() if "NOT_RESPONDING" in s] == [
        ["IDLE", "NOT_RESPONDING", "DYNAMIC_NORM"]
    ] * 2
    await bench.clock.advance(60)
    bench.world.step()
    assert [s[0] for s in (await bench.states()).values()].count("DOWN") == 2
    bench.set(nodes__dead=0)
    await bench.clock.advance(1)
    bench.world.step()
    assert {s[0] for s in (await bench.states()).values()} == {"IDLE"}


async def test_slurm_and_kubernetes_disagree_about_the_time(bench: Bench) -> None:
    bench.set(slurm__skew="90s")
    await bench.clock.advance(1)
    bench.world.step()
    assert bench.world.slurm.now - bench.world.now() == pytest.approx(90)


def test_a_new_speed_does_not_move_the_time() -> None:
    real = [0.0]
    clock = SimClock(1.0, start=1000.0, real=lambda: real[0])
    real[0] = 10.0
    assert clock.now() == 1010.0
    clock.set_speed(60.0)
    assert clock.now() == 1010.0
    real[0] = 11.0
    assert clock.now() == 1070.0
    clock.set_speed(0.5)
    real[0] = 13.0
    assert clock.now() == 1071.0


@pytest.mark.parametrize(
    ("word", "value"),
    [("speed=60", 60), ("slurm.latency=2s", 2), ("slurm.latency=500ms", 0.5), ("kube.latency=1m", 60), ("kube.latency=3", 3),
     ("slurm.silence=on", 1), ("slurm.silence=off", 0), ("kube.errors=0.2", 0.2), ("nodes.dead=4", 4), ("slurm.skew=-5s", -5)],
)  # fmt: skip
def test_values(word: str, value: float) -> None:
    assert list(read_all([word]).values()) == [value]


@pytest.mark.parametrize(
    "word",
    ["speed=0", "speed=-1", "speed=fast", "kube.errors=1.1", "kube.errors=-0.1", "kube.gone=maybe", "nodes.dead=1.5", "nodes.dead=2s",
     "slurm.latency=2days", "speed", "speed=nan"],
)  # fmt: skip
def test_wrong_values(word: str) -> None:
    with pytest.raises(UsageError):
        read_all([word])


def test_an_unknown_name_brings_the_nearest() -> None:
    with pytest.raises(UsageError) as refused:
        read("slurm.latncy", "2s")
    assert "slurm.latency" in refused.value.hint


@pytest.fixture
def call() -> Callable[..., Response]:
    rest = SettingsRest(Settings())

    def ask(method: str, body: bytes = b"", remote: str = "127.0.0.1", **headers: str) -> Response:
        return rest.handle(Request(method, PATH, (), headers, body), remote)

    return ask


def test_settings_are_read_and_changed_over_http(call: Callable[..., Response]) -> None:
    assert set(found(call("GET"))) == set(SETTINGS)
    changed = call("PATCH", b'{"speed": 60, "slurm.silence": "on", "slurm.latency": "2s"}')
    assert changed.status == 200
    assert found(call("GET"))["slurm.silence"] == "on" and found(call("GET"))["slurm.latency"] == 2.0


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[1]", 400), (b'{"sped": 2}', 422), (b'{"kube.errors": 3}', 422), (b'{"speed": true}', 422)]
)  # fmt: skip
def test_a_wrong_change_changes_nothing(call: Callable[..., Response], body: bytes, status: int) -> None:
    before = found(call("GET"))
    assert call("PATCH", body).status == status
    assert found(call("GET")) == before


@pytest.mark.parametrize(
    "caller", [{"remote": "10.0.0.9"}, {"remote": ""}, {"host": "evil.example"}, {"origin": "http://localhost"}]
)
def test_only_callers_on_this_machine(call: Callable[..., Response], caller: dict[str, str]) -> None:
    assert call("GET", **caller).status == 403


def test_sim_set_talks_to_a_running_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings()
    rest = SettingsRest(settings)

    def answer(request: httpx.Request) -> httpx.Response:
        got = rest.handle(
            Request(request.method, request.url.path, (), dict(request.headers), request.content), "127.0.0.1"
        )
        assert isinstance(got.body, bytes)
        return httpx.Response(got.status, content=got.body)

    shown = change("http://127.0.0.1:1/", read_all(["speed=60", "kube.gone=on"]), transport=httpx.MockTransport(answer))
    assert (shown["speed"], shown["kube.gone"], settings["kube.gone"]) == (60, "on", 1)
    assert change("http://127.0.0.1:1", {}, transport=httpx.MockTransport(answer)) == shown
    assert main_set(["--url", "http://127.0.0.1:1", "slurm.latncy=2s"]) == 2
    assert "slurm.latency" in capsys.readouterr().err
    assert main_set(["--url", "nonsense", "speed=2"]) == 2


def test_what_is_no_simulator_is_said_so() -> None:
    pages = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>"))
    with pytest.raises(BadRequest):
        change("http://127.0.0.1:1", {"speed": 2.0}, transport=pages)


@pytest.mark.parametrize("name", ["small", "gpu"])
def test_scenarios_show_arrays_and_dependent_jobs_within_their_counts(name: str) -> None:
    scenario = load(name)
    world = World(scenario, VirtualClock().now)
    jobs = list(world.slurm.jobs.values())
    assert len(jobs) == scenario.running + scenario.pending
    assert sum(bool(j.tasks) for j in jobs) == scenario.arrays > 0
    assert sum(j.task is not None for j in jobs) == 2 * scenario.arrays
    assert sum(bool(j.dependency) for j in jobs) == scenario.dependent > 0
