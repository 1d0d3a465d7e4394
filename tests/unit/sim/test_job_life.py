"""The simulated slurmctld over time: limits, arrays, requeues, reservations. Time is passed in."""

from __future__ import annotations

import random
from typing import Any

from slinkytui.backend.sim.jobs import SimJob
from slinkytui.backend.sim.reservations import SimReservation
from slinkytui.backend.sim.slurm import MIN_JOB_AGE_S, REQUEUE_S, SimNode, SlurmSim

T = 1_000_000.0


def cluster(nodes: int = 2) -> SlurmSim:
    sim = SlurmSim("sim", random.Random(1), T)
    for i in range(nodes):
        sim.register(SimNode(f"n{i}", 16, 64_000, "h100", [0] * 8, (), T, ("p",)))
    return sim


def job(*, limit_min: int = 60, duration_s: float = 600.0, **more: Any) -> SimJob:
    return SimJob(0, "alice", "j", "p", 1, 1, 1, 1000, limit_min, duration_s, 100, T, **more)


def test_a_job_past_its_limit_ends_as_timeout_and_is_forgotten_later() -> None:
    sim = cluster()
    made = sim.submit(job(limit_min=1))
    sim.step(T + 1)
    assert made.state == "RUNNING"
    sim.step(T + 62)
    assert made.state == "TIMEOUT"
    sim.step(T + 70)
    sim.step(T + 70 + MIN_JOB_AGE_S)
    assert made.id not in sim.jobs


def test_the_limit_of_an_array_moves_on_as_tasks_end() -> None:
    sim = cluster()
    made = sim.submit(job(tasks=[0, 1, 2], array_limit=1))
    sim.step(T + 1)
    assert (made.array_text, made.reason) == ("1-2%1", "JobArrayTaskLimit")
    sim.step(T + 602)
    assert {j.task: j.state for j in sim.jobs.values()} == {0: "COMPLETED", 1: "RUNNING", None: "PENDING"}
    sim.step(T + 1203)
    assert (made.task, made.state, made.array_text) == (2, "RUNNING", "")


def test_an_array_is_forgotten_with_its_last_record() -> None:
    sim = cluster()
    sim.submit(job(tasks=[0, 1]))
    for later in (1, 602, 605, 605 + MIN_JOB_AGE_S):
        sim.step(T + later)
    assert sim.jobs == {} and sim.arrays == {}


def test_afterok_of_an_array_waits_for_all_of_its_tasks() -> None:
    sim = cluster()
    first = sim.submit(job(tasks=[0, 1], array_limit=1))
    second = sim.submit(job(dependency=f"afterok:{first.id}"))
    sim.step(T + 1)
    sim.step(T + 602)
    assert second.reason == "Dependency"
    sim.step(T + 1300)
    sim.step(T + 1301)
    assert second.state == "RUNNING"


def test_a_requeued_job_leaves_its_nodes_and_starts_again_after_a_while() -> None:
    sim = cluster()
    made = sim.submit(job())
    sim.step(T + 1)
    sim.requeue(made.id)
    assert (made.state, made.restarts, bool(made.completing_until)) == ("PENDING", 1, True)
    sim.step(T + 4)
    assert (made.reason, made.nodes, sim.nodes["n0"].jobs) == ("BeginTime", {}, set())
    sim.step(T + 5 + REQUEUE_S)
    assert made.state == "RUNNING"


def test_a_held_job_that_waits_says_so_when_it_is_released() -> None:
    sim = cluster()
    made = sim.submit(job(held=True, begin=T + 50))
    assert made.reason == "JobHeldUser"
    sim.hold(made.id, False, "root")
    sim.step(T + 1)
    assert made.reason == "BeginTime"
    sim.step(T + 51)
    assert made.state == "RUNNING"


def test_a_job_waits_for_its_reservation_and_others_for_its_end() -> None:
    sim = cluster(1)
    sim.reserve(SimReservation("m", ("n0",), T + 100, T + 200))
    inside, outside = sim.submit(job(reservation="m", duration_s=10.0)), sim.submit(job())
    sim.step(T + 1)
    assert (inside.reason, outside.state) == ("Reservation", "PENDING")
    sim.step(T + 101)
    assert (inside.state, outside.state) == ("RUNNING", "PENDING")
    sim.step(T + 201)
    assert outside.state == "RUNNING"
