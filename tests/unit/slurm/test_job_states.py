"""Between two long lists of jobs the states are followed: what changed is read in full, nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.models import Job, JobId, Table
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.jobstates import AT_ONCE, JobStates
from slinkytui.backend.slurm.poller import SlurmPoller
from slinkytui.backend.slurm.tokens import StaticToken
from slinkytui.backend.store import Store


class Server:
    """Jobs by record; a full list takes `slow` seconds of the clock."""

    def __init__(self, clock: VirtualClock, slow: float = 0.0) -> None:
        self.clock, self.slow = clock, slow
        self.jobs: dict[int, dict[str, Any]] = {}
        self.seen: list[str] = []

    def put(self, job_id: int, state: str, **more: Any) -> None:
        self.jobs[job_id] = {"job_id": job_id, "job_state": [state], **more}

    def text(self, record: dict[str, Any]) -> str:
        task = record.get("array_task_id")
        return f"{record['array_job_id']}_{task}" if task is not None else str(record["job_id"])

    async def handle(self, request: Request) -> Response:
        path = request.path.removeprefix("/slurm/v0.0.45/")
        self.seen.append(path)
        rows = list(self.jobs.values())
        if path == "jobs/":
            await self.clock.sleep(self.slow)
        elif path == "jobs/state/":
            rows = [{"job_id": self.text(r), "state": r["job_state"]} for r in rows]
        elif path.startswith("job/"):
            lead = int(path.removeprefix("job/"))
            rows = [r for r in rows if r["job_id"] == lead or r.get("array_job_id") == lead]
            if not rows:
                return Response(404, b'{"errors":[{"error_number":2017,"error":"Invalid job id specified"}]}')
        else:
            return Response(200, json.dumps({path.strip("/"): [], "last_update": 5}).encode())
        return Response(200, json.dumps({"jobs": rows, "last_update": 5}).encode())


def made(clock: VirtualClock, slow: float = 0.0) -> tuple[Server, SlurmClient, Store]:
    server = Server(clock, slow)
    client = SlurmClient(CoreTransport(server.handle), StaticToken("t"), clock, cluster="c")
    client.version = "v0.0.45"
    return server, client, Store()


def states(store: Store) -> dict[str, tuple[str, ...]]:
    return {str(j.id): j.states for j in store.rows(Table.JOBS).values() if isinstance(j, Job)}


async def drive(clock: VirtualClock, states_of: JobStates, newer: set[JobId] = frozenset()) -> None:  # type: ignore[assignment]  # an empty default
    task = asyncio.create_task(states_of.turn(lambda i: i in newer))
    while not task.done():
        await clock.advance(0.01)
    await task


async def test_only_what_changed_is_read_and_the_rest_comes_with_the_next_turn() -> None:
    clock = VirtualClock()
    server, client, store = made(clock)
    for n in range(1, 101):
        server.put(n, "PENDING")
    states_of = JobStates(client, store)
    states_of.seed([Job(JobId("c", n), n, ("PENDING",)) for n in range(1, 101)])
    await drive(clock, states_of)
    assert server.seen == ["jobs/state/"]
    for n in range(1, AT_ONCE + 6):
        server.put(n, "RUNNING")
    await drive(clock, states_of)
    assert list(states(store).values()) == [("RUNNING",)] * AT_ONCE
    await drive(clock, states_of)
    assert len(states(store)) == AT_ONCE + 5
    server.seen.clear()
    await drive(clock, states_of)
    assert server.seen == ["jobs/state/"]


async def test_a_row_read_after_a_write_stands_and_a_job_that_left_is_not_removed() -> None:
    clock = VirtualClock()
    server, client, store = made(clock)
    server.put(1, "RUNNING")
    server.put(2, "RUNNING")
    store.upsert(Table.JOBS, "c", [Job(JobId("c", n), n, ("CANCELLED",)) for n in (1, 2)])
    states_of = JobStates(client, store)
    states_of.seed([Job(JobId("c", n), n, ("PENDING",)) for n in (1, 2)])
    await drive(clock, states_of, {JobId("c", 1)})
    assert states(store) == {"1": ("CANCELLED",), "2": ("RUNNING",)}
    server.jobs.clear()
    await drive(clock, states_of)
    assert set(states(store)) == {"1", "2"}


async def test_the_record_of_pending_tasks_goes_when_the_last_one_has_started() -> None:
    clock = VirtualClock()
    server, client, store = made(clock)
    store.upsert(Table.JOBS, "c", [Job(JobId("c", 9), 9, ("PENDING",), tasks="0-1")])
    server.put(9, "PENDING", array_job_id=9, array_task_id=0)
    states_of = JobStates(client, store)
    await drive(clock, states_of)
    server.put(9, "RUNNING", array_job_id=9, array_task_id=0)
    await drive(clock, states_of)
    assert states(store) == {"9_0": ("RUNNING",)}


async def test_a_poller_with_a_long_list_follows_the_states_in_between() -> None:
    clock = VirtualClock()
    server, client, store = made(clock, slow=10.0)
    server.put(1, "PENDING")
    task = asyncio.create_task(SlurmPoller(client, store, clock).run())
    await clock.advance(20)
    assert states(store) == {"1": ("PENDING",)}
    server.put(1, "RUNNING")
    server.put(2, "RUNNING")
    await clock.advance(6)
    assert states(store) == {"1": ("RUNNING",), "2": ("RUNNING",)}
    await clock.advance(30)
    assert server.seen.count("jobs/") == 1
    assert server.seen.count("jobs/state/") <= 12
    task.cancel()


async def test_a_quick_list_needs_no_states() -> None:
    clock = VirtualClock()
    server, client, store = made(clock, slow=0.1)
    task = asyncio.create_task(SlurmPoller(client, store, clock).run())
    await clock.advance(60)
    assert "jobs/state/" not in server.seen
    task.cancel()
