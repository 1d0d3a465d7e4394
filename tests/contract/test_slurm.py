"""One table of cases for slurmrestd: the simulator and two real releases must give the same."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import jwt
import pytest

from slinkytui.backend.clock import RealClock
from slinkytui.backend.errors import BadRequest, Conflict, NotAllowed, NotFound, SlinkyError, Unsupported
from slinkytui.backend.http import CoreTransport, Transport
from slinkytui.backend.models import Job, SlurmNode
from slinkytui.backend.sim.reservations import SimReservation
from slinkytui.backend.sim.slurm import SimNode, SlurmSim
from slinkytui.backend.sim.slurmrest import SlurmRest
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.states import is_drained, is_running
from slinkytui.backend.slurm.tokens import StaticToken
from slinkytui.backend.slurm.transport import HttpxTransport
from slinkytui.cli import main
from tests.lab.slurm import SlurmLab, missing


class World(Protocol):
    def transport(self) -> Transport: ...

    def token(self, user: str) -> str: ...

    def reserve(self, name: str, node: str) -> None:
        """For maintenance, from now on, for root."""

    def unreserve(self, name: str) -> None: ...


class SimWorld:
    """Three nodes of eight GPUs, as the labs have."""

    def __init__(self) -> None:
        self.key = b"k" * 32
        self.sim = SlurmSim("sim", random.Random(1), time.time())
        for i in range(3):
            self.sim.register(SimNode(f"gpu-{i}", 16, 64_000, "h100", [0] * 8, ("gpu",), time.time(), ("gpu", "all")))
        self.rest = SlurmRest(self.sim, self.key)

    def transport(self) -> Transport:
        async def handle(request: Any) -> Any:
            self.sim.step(time.time())
            return await self.rest.handle(request)

        return CoreTransport(handle)

    def token(self, user: str) -> str:
        return jwt.encode(
            {"exp": int(time.time()) + 3600, "iat": int(time.time()), "sun": user}, self.key, algorithm="HS256"
        )

    def reserve(self, name: str, node: str) -> None:
        self.sim.reserve(SimReservation(name, (node,), time.time() - 1, time.time() + 3600))

    def unreserve(self, name: str) -> None:
        del self.sim.reservations[name]


class RealWorld:
    def __init__(self, lab: SlurmLab) -> None:
        self.lab = lab

    def transport(self) -> Transport:
        return HttpxTransport(self.lab.url)

    def token(self, user: str) -> str:
        return self.lab.run("scontrol", "token", f"username={user}", "lifespan=3600").strip().removeprefix("SLURM_JWT=")

    def reserve(self, name: str, node: str) -> None:
        self.lab.run("scontrol", "create", "reservation", f"ReservationName={name}", "StartTime=now", "Duration=60",
                     f"Nodes={node}", "Users=root", "Flags=MAINT,IGNORE_JOBS")  # fmt: skip

    def unreserve(self, name: str) -> None:
        self.lab.run("scontrol", "delete", f"ReservationName={name}")


@pytest.fixture(
    scope="module",
    params=["sim", pytest.param("24.11", marks=pytest.mark.slurm), pytest.param("26.05", marks=pytest.mark.slurm)],
)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "sim":
        yield SimWorld()
        return
    lab = real(request.param)
    try:
        yield RealWorld(lab)
    finally:
        lab.stop()


def real(version: str) -> SlurmLab:
    why = missing()
    if why:
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
    return SlurmLab.start(version)


@pytest.fixture
async def client(world: World) -> AsyncIterator[SlurmClient]:
    transport = world.transport()
    made = SlurmClient(transport, StaticToken(world.token("root")), RealClock())
    await made.probe()
    yield made
    await transport.close()


JOB: dict[str, Any] = {"current_working_directory": "/tmp", "environment": ["PATH=/usr/bin:/bin"], "name": "case"}


async def submit(client: SlurmClient, **job: Any) -> Job:
    written = await client.job_submit("#!/bin/sh\nsleep 300\n", {**JOB, **job})
    (found,) = await client.job(str(written.job_id))
    return found


async def reach(look: Callable[[], Awaitable[Any]], good: Callable[[Any], bool], seconds: float = 20.0) -> Any:
    """Read until it is so, with a deadline; the last reading otherwise."""
    async with asyncio.timeout(seconds):
        while not good(found := await look()):
            await asyncio.sleep(0.1)
        return found


async def test_nodes_have_their_gpus(client: SlurmClient) -> None:
    listing = await client.nodes()
    nodes = sorted((n for n in listing.rows if isinstance(n, SlurmNode)), key=lambda n: n.id)
    assert [n.id.name for n in nodes] == ["gpu-0", "gpu-1", "gpu-2"]
    assert all(n.gres[0].name == "gpu" and n.gres[0].type == "h100" and n.gres[0].count == 8 for n in nodes)
    assert all("DYNAMIC_NORM" in n.states and "gpu" in n.features and "gpu" in n.partitions for n in nodes)
    assert listing.last_update


async def test_lists_say_when_nothing_changed(client: SlurmClient) -> None:
    job = await submit(client, hold=True)
    try:

        async def quiet() -> bool:
            jobs = await client.jobs()
            return (await client.jobs(jobs.last_update)).unchanged

        await reach(quiet, bool)
        nodes = await client.nodes()
        again = await client.nodes(nodes.last_update)
        assert again.unchanged or len(again.rows) == 3
    finally:
        await client.job_cancel(str(job.id))


async def test_a_change_is_news_to_a_conditional_read(client: SlurmClient) -> None:
    """24.11 answers 500 to this one, for its partitions have not changed."""
    before = await client.nodes()
    await asyncio.sleep(1.1)  # the servers compare whole seconds
    await client.node_update("gpu-2", {"comment": f"seen {time.time()}"})
    after = await client.nodes(before.last_update)
    assert not after.unchanged
    assert {n.comment for n in after.rows if isinstance(n, SlurmNode)} - {
        n.comment for n in before.rows if isinstance(n, SlurmNode)
    }


@pytest.mark.parametrize(
    "look",
    [
        lambda c: c.node("nope"), lambda c: c.job("999999"), lambda c: c.partition("nope"), lambda c: c.reservation("nope"),
        lambda c: c.node_update("nope", {"state": ["DRAIN"], "reason": "x"}), lambda c: c.job_cancel("999999"),
        lambda c: c.job_update(999999, {"comment": "x"}),
    ],
    ids=["node", "job", "partition", "reservation", "node update", "job cancel", "job update"],
)  # fmt: skip
async def test_not_found(client: SlurmClient, look: Callable[[SlurmClient], Awaitable[Any]]) -> None:
    with pytest.raises(NotFound):
        await look(client)


async def test_drain_and_undrain(client: SlurmClient) -> None:
    await client.node_update("gpu-2", {"state": ["DRAIN"], "reason": "xid 79"})
    node = await client.node("gpu-2")
    assert is_drained(node.states)
    assert (node.reason, node.reason_user) == ("xid 79", "root")
    await client.node_update("gpu-2", {"state": ["UNDRAIN"]})
    assert "DRAIN" not in (await client.node("gpu-2")).states


async def test_an_illegal_transition_is_a_conflict(client: SlurmClient) -> None:
    async def calm() -> SlurmNode:
        return await client.node("gpu-1")

    await reach(calm, lambda n: "NOT_RESPONDING" not in n.states)
    with pytest.raises(Conflict):
        await client.node_update("gpu-1", {"state": ["RESUME"]})


async def test_a_job_runs_on_its_gpus_and_is_cancelled_once(client: SlurmClient) -> None:
    job = await submit(client, tres_per_node="gres/gpu:2", partition="gpu")

    async def now() -> Job:
        return (await client.job(str(job.id)))[0]

    running = await reach(now, lambda j: is_running(j.states))
    assert running.gpus == 2
    assert running.gres_detail[0].startswith("gpu:h100:2(IDX:")
    await client.job_cancel(str(job.id))
    await reach(now, lambda j: j.states == ("CANCELLED",))
    with pytest.raises(Conflict):
        await client.job_cancel(str(job.id))


async def test_a_cancel_of_what_is_pending_never_kills_what_has_started(client: SlurmClient) -> None:
    job = await submit(client, partition="gpu")

    async def now() -> Job:
        return (await client.job(str(job.id)))[0]

    await reach(now, lambda j: is_running(j.states))
    with pytest.raises(Conflict):
        await client.job_cancel_pending(str(job.id))
    assert is_running((await now()).states)
    await client.job_cancel(str(job.id))
    held = await submit(client, hold=True)
    await client.job_cancel_pending(str(held.id))
    assert (await client.job(str(held.id)))[0].states == ("CANCELLED",)
    with pytest.raises(NotFound):
        await client.job_cancel_pending("999999")


async def test_the_pending_rest_of_an_array_is_cancelled_without_its_running_tasks(client: SlurmClient) -> None:
    first = (await client.job_submit("#!/bin/sh\nsleep 300\n", {**JOB, "array": "0-5%2"})).job_id

    async def running() -> list[str]:
        return sorted(str(j.id) for j in await client.job(str(first)) if is_running(j.states))

    tasks = await reach(running, lambda found: len(found) == 2)
    written = await client.job_cancel_pending(str(first))
    assert all(t in written.warnings[-1] for t in tasks)
    assert await running() == tasks
    rest = [j for j in await client.job(str(first)) if j.tasks]
    assert [j.states for j in rest] == [("CANCELLED",)]
    for task in tasks:
        await client.job_cancel(task)


async def records(client: SlurmClient, number: int | str) -> list[dict[str, Any]]:
    found = await client.raw(f"job/{number}", "jobs", f"job {number}")
    return found if isinstance(found, list) else [found]


def value(found: dict[str, Any]) -> int | None:
    return int(found["number"]) if found["set"] else None


async def array(client: SlurmClient, spec: str, **job: Any) -> int:
    number = (await client.job_submit("#!/bin/sh\nsleep 300\n", {**JOB, **job, "array": spec})).job_id
    assert number is not None
    return number


@pytest.mark.parametrize(
    ("spec", "shown", "most"),
    [("0-9", "0-9", 0), ("1-5%2", "1-5%2", 2), ("1,3,7", "1,3,7", 0), ("0-10:4", "0,4,8", 0), ("5", "5", 0), ("1,1,2", "1-2", 0), ("0-3%0", "0-3", 0)],
)  # fmt: skip
async def test_a_waiting_array_is_one_record(client: SlurmClient, spec: str, shown: str, most: int) -> None:
    number = await array(client, spec, hold=True)
    (found,) = await records(client, number)
    assert (found["job_id"], value(found["array_job_id"]), value(found["array_task_id"])) == (number, number, None)
    assert (found["array_task_string"], value(found["array_max_tasks"])) == (shown, most)
    assert (found["job_state"], found["state_reason"]) == (["PENDING"], "JobHeldUser")
    await client.job_cancel(str(number))
    (after,) = await records(client, number)
    assert (after["job_state"], after["array_task_string"]) == (["CANCELLED"], shown)
    with pytest.raises(Conflict):
        await client.job_cancel(str(number))


@pytest.mark.parametrize("spec", ["3-1", "abc", "0-200000"])
async def test_a_wrong_array_is_refused(client: SlurmClient, spec: str) -> None:
    with pytest.raises(BadRequest, match="submit"):
        await array(client, spec)


async def test_started_tasks_are_records_of_their_own(client: SlurmClient) -> None:
    number = await array(client, "0-5%2")

    async def look() -> list[dict[str, Any]]:
        return await records(client, number)

    found = await reach(look, lambda rs: rs[0]["state_reason"] == "JobArrayTaskLimit" and len(rs) == 3)
    assert [(r["job_id"] == number, value(r["array_task_id"]), r["array_task_string"]) for r in found] == [
        (True, None, "2-5%2"), (False, 1, ""), (False, 0, ""),
    ]  # fmt: skip
    assert {value(r["array_job_id"]) for r in found} == {number}
    whole = await records(client, f"{number}_4")
    assert len(whole) == 3
    assert {f"{number}_{t}" for t in (2, 3, 4, 5)} <= {s.text for s in await client.jobs_state()}
    await client.job_cancel(str(number))
    ended = await reach(look, lambda rs: all("CANCELLED" in r["job_state"] for r in rs))
    assert len(ended) == 3


async def test_tasks_of_an_array_are_cancelled_one_by_one(client: SlurmClient) -> None:
    number = await array(client, "1-5%2", hold=True)

    async def rest() -> str:
        return str((await records(client, number))[0]["array_task_string"])

    await client.job_cancel(f"{number}_3")
    assert await rest() == "1-2,4-5%2"
    with pytest.raises((BadRequest, NotFound, Unsupported)):  # 26.05 answers 404 without a word
        await client.call("DELETE", f"job/{number}_[1-2]", what="brackets")
    with pytest.raises(NotFound):
        await client.job_cancel(f"{number}_99")
    await client.job_cancel_pending(f"{number}_[1-2]")
    assert await rest() == "4-5%2"
    await client.job_cancel_pending(str(number))
    (found,) = await records(client, number)
    assert (found["job_state"], found["array_task_string"]) == (["CANCELLED"], "4-5%2")


async def test_the_last_task_takes_the_record_of_its_array(client: SlurmClient) -> None:
    number = await array(client, "0-3")

    async def look() -> list[dict[str, Any]]:
        return await records(client, number)

    found = await reach(look, lambda rs: len(rs) == 4 and all("RUNNING" in r["job_state"] for r in rs))
    assert {value(r["array_task_id"]): r["job_id"] == number for r in found} == {0: False, 1: False, 2: False, 3: True}
    await client.job_cancel(f"{number}_2")
    after = await reach(look, lambda rs: any("CANCELLED" in r["job_state"] for r in rs))
    assert [value(r["array_task_id"]) for r in after if "CANCELLED" in r["job_state"]] == [2]
    with pytest.raises(Conflict):
        await client.job_cancel(str(number))
    await reach(look, lambda rs: all("CANCELLED" in r["job_state"] for r in rs))


async def test_jobs_wait_for_others(client: SlurmClient) -> None:
    first = await submit(client, hold=True)
    kinds = ("afterok", "afterany", "after", "afternotok")
    waiting = {k: (await submit(client, dependency=f"{k}:{first.id}")).raw_id for k in kinds}

    async def look() -> dict[str, dict[str, Any]]:
        return {k: (await records(client, n))[0] for k, n in waiting.items()}

    before = await reach(look, lambda found: all(r["state_reason"] == "Dependency" for r in found.values()))
    assert before["afterok"]["dependency"] == f"afterok:{first.id}(unfulfilled)"
    await client.job_cancel(str(first.id))
    after = await reach(look, lambda found: found["afterok"]["state_reason"] == "DependencyNeverSatisfied"
                        and all("RUNNING" in found[k]["job_state"] for k in kinds[1:]))  # fmt: skip
    assert after["afterok"]["dependency"] == f"afterok:{first.id}(failed)"
    assert after["afterany"]["dependency"] == ""
    either = await submit(client, dependency=f"afterok:{first.id}?afterany:{waiting['afterany']}")

    async def text() -> str:
        return str((await records(client, either.raw_id))[0]["dependency"])

    assert await reach(text, bool) == f"afterok:{first.id}(failed)?afterany:{waiting['afterany']}(unfulfilled)"
    for number in (*waiting.values(), either.raw_id):
        await client.job_cancel(str(number))


async def test_a_singleton_waits_for_its_namesake(client: SlurmClient) -> None:
    first = await submit(client, name="only")
    second = await submit(client, name="only", dependency="singleton")

    async def look() -> tuple[list[str], str]:
        (found,) = await records(client, second.raw_id)
        return found["job_state"], found["state_reason"]

    await reach(look, lambda seen: seen == (["PENDING"], "Dependency"))
    await client.job_cancel(str(first.id))
    await reach(look, lambda seen: seen == (["RUNNING"], "None"))
    await client.job_cancel(str(second.id))


@pytest.mark.parametrize("text", ["afterok:999999", "nonsense:1"])
async def test_a_wrong_dependency_is_refused(client: SlurmClient, text: str) -> None:
    with pytest.raises(BadRequest, match="submit"):
        await submit(client, dependency=text)


async def test_a_job_waits_for_its_time(client: SlurmClient) -> None:
    when = int(time.time()) + 1000
    job = await submit(client, begin_time={"set": True, "number": when})

    async def reason() -> str:
        return str((await records(client, job.raw_id))[0]["state_reason"])

    await reach(reason, lambda r: r == "BeginTime")
    (found,) = await records(client, job.raw_id)
    assert (value(found["eligible_time"]), value(found["start_time"])) == (when, when)
    await client.job_cancel(str(job.id))


async def test_requeue_where_there_is_one(client: SlurmClient) -> None:
    """24.11 has none over REST, and the client says so before it asks."""
    job = await submit(client)

    async def look() -> dict[str, Any]:
        return (await records(client, job.raw_id))[0]

    await reach(look, lambda r: "RUNNING" in r["job_state"])
    if "job.requeue" in client.missing():
        with pytest.raises(Unsupported):
            await client.requeue(str(job.id))
    else:
        await client.requeue(str(job.id))
        found = await reach(look, lambda r: r["state_reason"] == "BeginTime")
        assert (found["job_state"], found["restart_cnt"], found["nodes"]) == (["PENDING"], 1, "")
        with pytest.raises(Conflict):
            await client.requeue(str(job.id))
        with pytest.raises(NotFound):
            await client.requeue("999999")
    await client.job_cancel(str(job.id))


async def test_a_reservation_keeps_its_node(client: SlurmClient, world: World) -> None:
    world.reserve("maint1", "gpu-0")
    try:
        found = await client.reservation("maint1")
        assert (found.id.name, found.node_list, found.users) == ("maint1", "gpu-0", "root")
        with pytest.raises(NotFound):
            await client.reservation("zip")
        with pytest.raises((BadRequest, NotFound)):
            await submit(client, reservation="zip")
        inside, outside = await submit(client, reservation="maint1"), await submit(client, required_nodes=["gpu-0"])

        async def look() -> tuple[str, str]:
            (one,), (other,) = await records(client, inside.raw_id), await records(client, outside.raw_id)
            return one["nodes"], other["state_reason"]

        await reach(look, lambda seen: seen[0] == "gpu-0" and seen[1].startswith("ReqNodeNotAvail"))

        async def states() -> tuple[str, ...]:
            return (await client.node("gpu-0")).states

        await reach(states, lambda seen: {"RESERVED", "MAINTENANCE"} <= set(seen))
        for job in (inside, outside):
            await client.job_cancel(str(job.id))

        async def gone() -> tuple[str, ...]:
            return (await client.job(str(inside.id)))[0].states

        await reach(gone, lambda seen: seen == ("CANCELLED",))
    finally:
        world.unreserve("maint1")


async def test_hold_and_release(client: SlurmClient) -> None:
    job = await submit(client, hold=True)
    assert job.hold
    await client.job_release(job.raw_id)
    assert not (await client.job(str(job.id)))[0].hold
    await client.job_cancel(str(job.id))


@pytest.mark.parametrize(
    "wrong", [{"partition": "nope"}, {"current_working_directory": ""}], ids=["partition", "directory"]
)
async def test_bad_submits_are_refused(client: SlurmClient, wrong: dict[str, Any]) -> None:
    with pytest.raises((BadRequest, NotFound)):
        await client.job_submit("#!/bin/sh\n", {**JOB, **wrong})


async def test_a_user_may_not_drain(world: World) -> None:
    alice = SlurmClient(world.transport(), StaticToken(world.token("alice")), RealClock())
    await alice.probe()
    with pytest.raises(NotAllowed) as refused:
        await alice.node_update("gpu-0", {"state": ["DRAIN"], "reason": "x"})
    assert "alice" in refused.value.hint


async def test_a_user_may_not_cancel_the_jobs_of_others() -> None:
    """On the simulator only: real slurmctld answers nobody for ten seconds after such a refusal in this lab."""
    world = SimWorld()
    root, alice = (SlurmClient(world.transport(), StaticToken(world.token(u)), RealClock()) for u in ("root", "alice"))
    await root.probe()
    await alice.probe()
    job = await submit(root, hold=True)
    with pytest.raises(NotAllowed):
        await alice.job_cancel(str(job.id))
    assert (await root.job(str(job.id)))[0].states == ("PENDING",)


async def test_a_bad_token_is_refused(world: World) -> None:
    with pytest.raises(NotAllowed):
        await SlurmClient(world.transport(), StaticToken("nonsense"), RealClock()).probe()


@pytest.mark.parametrize("text", ["a|b=c d", "Ω模型🚀", "[bold red]x[/]", "x" * 900])
async def test_odd_text_comes_back_as_it_went(client: SlurmClient, text: str) -> None:
    job = await submit(client, hold=True, comment=text)
    assert job.comment == text
    await client.job_cancel(str(job.id))


@pytest.mark.slurm
@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_the_command_line_on_real_slurm(
    version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    lab = real(version)
    try:
        (tmp_path / "token").write_text(lab.token)
        where = ["--slurm", lab.url, "--token-file", str(tmp_path / "token")]
        assert main([*where, "get", "gpus", "-o", "name"]) == 0
        assert len(capsys.readouterr().out.split()) == 24
        assert main([*where, "do", "node.drain", "gpu-1", "--reason", "xid 79", "--yes"]) == 0
        assert "State=IDLE+DRAIN" in lab.run("scontrol", "show", "node", "gpu-1")
        number = lab.run("sbatch", "--parsable", "-D", "/tmp", "--gres=gpu:4", "--wrap", "sleep 300").strip()
        assert main([*where, "get", "jobs", number, "-o", "json"]) == 0
        assert main([*where, "do", "job.cancel", number, "--yes"]) == 0
        assert "JobState=CANCELLED" in lab.run("scontrol", "show", "job", number)
        assert main([*where, "do", "job.cancel", "999999", "--yes"]) == 3
        lab.kill_rest()
        assert main([*where, "get", "nodes"]) == 4
        assert capsys.readouterr().err.strip().splitlines()[-1].startswith("slinkytui: ")
    finally:
        lab.stop()


def test_errors_have_a_line() -> None:
    assert SlinkyError("a", detail="b", hint="c").line() == "a: b (c)"


async def test_licences_and_shares_of_a_cluster_that_has_none(client: SlurmClient) -> None:
    assert await client.licenses() == []
    assert await client.shares() == []


async def test_the_servers_own_figures(client: SlurmClient) -> None:
    found = await client.diag()
    assert found.taken is not None
    assert found.jobs_pending is not None
    assert found.jobs_running is not None


async def test_many_jobs_end_by_one_call_and_each_refusal_is_told(client: SlurmClient) -> None:
    first, second = await submit(client, hold=True), await submit(client, hold=True)
    refused = await client.jobs_kill([str(first.id), str(second.id), "4000000"])
    assert list(refused) == ["4000000"]
    for job in (first, second):
        await reach(lambda job=job: client.job(str(job.id)), lambda found: "CANCELLED" in found[0].states)  # type: ignore[misc]
    assert await client.jobs_kill([str(first.id)]) == {}


async def test_tasks_in_brackets_end_and_a_task_that_is_not_there_is_not_found(client: SlurmClient) -> None:
    written = await client.job_submit("#!/bin/sh\nsleep 300\n", {**JOB, "array": "1-4", "hold": True})
    array = written.job_id
    try:
        await client.job_cancel(f"{array}_[1-2]")

        async def rest() -> list[Job]:
            return [j for j in await client.job(str(array)) if j.tasks and "PENDING" in j.states]

        left = await reach(rest, lambda found: bool(found) and found[0].tasks.startswith("3-4"))
        assert left[0].task_count == 2
        with pytest.raises(NotFound):
            await client.job(f"{array}_99")
    finally:
        await client.job_cancel(str(array))


async def test_a_refused_submit_says_why(client: SlurmClient) -> None:
    with pytest.raises(SlinkyError) as caught:
        await client.job_submit("#!/bin/sh\ntrue\n", {**JOB, "array": "nonsense"})
    assert "array" in caught.value.line().lower()
