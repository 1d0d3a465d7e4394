"""The operator is stopped after each of its requests and started with an empty memory: the same end, and no job lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.schedules.ground import Ground
from tests.unit.controllers.virtual import in_virtual_time, run

Act = Callable[[Ground], Awaitable[None]]


async def grows(ground: Ground) -> None:
    ground.scale(4)
    await ground.settled(600)


async def shrinks(ground: Ground) -> None:
    """Two of three leave, one of them with a job on it."""
    ground.scale(1)
    await ground.settled(900)


async def rolls(ground: Ground) -> None:
    ground.strategy(1)
    ground.template("slurmd:26.05.1")
    await ground.settled(1_800)


ACTS: dict[str, Act] = {"grows": grows, "shrinks": shrinks, "rolls": rolls}


async def lived(act: Act, crash_at: int | None) -> tuple[list[str], list[int], list[str], int]:
    """Pods, killed jobs, how the jobs ended, and how many requests there were, with one crash after so many."""
    async with Ground(3).living() as ground:
        await ground.start_operator()
        await ground.settled()
        jobs = [ground.job(2, cpus=8) for _ in range(3)]
        await ground.until(lambda: all(j.state == "RUNNING" for j in jobs), 60, "the jobs do not run")
        await ground.clock.sleep(15)
        ground.requests.clear()
        ground.crash_at = crash_at
        restart = ground.restart_when_crashed()
        await act(ground)
        await ground.until(lambda: not any(j.state in ("RUNNING", "PENDING") for j in jobs), 600, "the jobs do not end")
        await restart.done()
        images = sorted(f"{n} {p['spec']['containers'][0].get('image')}" for n, p in ground.pods().items())
        return images, ground.killed, [j.state for j in jobs], len(ground.requests)


@pytest.mark.parametrize("name", ACTS)
def test_a_crash_after_any_request_changes_nothing(name: str) -> None:
    pods, killed, ends, count = run(lived(ACTS[name], None))
    assert (killed, ends) == ([], ["COMPLETED"] * 3)
    assert count > 3
    for at in range(1, count + 1):
        got = run(lived(ACTS[name], at))
        assert got[:3] == (pods, [], ends), f"after request {at} of {count}"


@in_virtual_time
async def test_a_dead_operator_sends_nothing() -> None:
    """The ground can tell: after its crash no request arrives."""
    async with Ground(2).living() as ground:
        await ground.start_operator()
        await ground.settled()
        ground.crash_at = 1
        ground.requests.clear()
        ground.scale(5)
        await ground.clock.sleep(120)
        assert len(ground.requests) == 1
