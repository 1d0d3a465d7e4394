"""The order in which everything starts and stops, and what keeps it from starting."""

from __future__ import annotations

import asyncio

import pytest

from slinkytui.backend.controllers.runtime.controller import Controller
from slinkytui.backend.controllers.runtime.manager import Manager
from slinkytui.backend.controllers.runtime.outcome import Done, Outcome
from tests.unit.controllers.virtual import LoopClock, in_virtual_time


class Cache:
    def __init__(self, name: str, told: list[str], after: float, clock: LoopClock) -> None:
        self.name, self.told, self.after, self.clock = name, told, after, clock
        self.hangs = False

    async def start(self) -> None:
        self.told.append(f"start {self.name}")

    async def synced(self) -> None:
        await asyncio.sleep(self.after - self.clock.monotonic())
        self.told.append(f"synced {self.name}")

    def unsynced(self) -> str:
        return "" if self.clock.monotonic() >= self.after else "list under way"

    async def stop(self) -> None:
        self.told.append(f"stop {self.name}")
        if self.hangs:
            await asyncio.get_running_loop().create_future()


class Lease:
    """Held from `free` on; lost when `gone` is set."""

    def __init__(self, told: list[str], free: float, clock: LoopClock) -> None:
        self.told, self.free, self.clock, self.gone = told, free, clock, asyncio.Event()

    async def acquire(self) -> None:
        await asyncio.sleep(self.free - self.clock.monotonic())
        self.told.append("lease")

    async def hold(self) -> None:
        await self.gone.wait()
        self.gone.clear()
        self.told.append("lost")

    async def release(self) -> None:
        self.told.append("release")


class Recorder:
    def __init__(self, told: list[str]) -> None:
        self.told = told

    def start(self) -> None:
        self.told.append("start recorder")

    async def stop(self, grace_s: float) -> None:
        self.told.append("stop recorder")


class Stage:
    def __init__(self, clock: LoopClock, *, free: float = 0.0, work_s: float = 0.0) -> None:
        self.told: list[str] = []
        self.clock, self.work_s = clock, work_s
        self.caches = [Cache("pods", self.told, 3, clock), Cache("nodes", self.told, 7, clock)]
        self.lease = Lease(self.told, free, clock)
        self.controllers = [
            Controller(name, self.reconcile, clock, keys=lambda name=name: [name])  # type: ignore[misc]
            for name in ("first", "second")
        ]
        self.manager = Manager(
            clock, sources=self.caches, elector=self.lease, controllers=self.controllers,
            helpers=[Recorder(self.told)], grace_s=10,
        )  # fmt: skip

    async def reconcile(self, key: str) -> Outcome:
        self.told.append(f"begin {key}")
        try:
            await asyncio.sleep(self.work_s)
        except asyncio.CancelledError:
            self.told.append(f"cut {key}")
            raise
        self.told.append(f"end {key}")
        return Done()


@in_virtual_time
async def test_sources_then_lease_then_workers_and_back(clock: LoopClock) -> None:
    stage = Stage(clock, free=20, work_s=1)
    running = asyncio.create_task(stage.manager.run())
    await asyncio.sleep(5)
    assert str(stage.manager.phase) == "syncing"
    assert stage.manager.unready() == {"nodes": "list under way"}
    await asyncio.sleep(5)
    assert str(stage.manager.phase) == "following"
    assert stage.manager.unready() == {}
    await asyncio.sleep(20)
    assert str(stage.manager.phase) == "leading"
    stage.manager.stop()
    await running
    assert str(stage.manager.phase) == "stopped"
    assert stage.told == [
        "start pods", "start nodes", "synced pods", "synced nodes", "lease", "start recorder", "begin first",
        "begin second", "end first", "end second", "stop recorder", "release", "stop nodes", "stop pods",
    ]  # fmt: skip
    assert clock.monotonic() == 30


@in_virtual_time
async def test_work_that_does_not_end_is_cut_within_the_grace(clock: LoopClock) -> None:
    stage = Stage(clock, work_s=1000)
    stage.caches[1].hangs = True
    running = asyncio.create_task(stage.manager.run())
    await asyncio.sleep(60)
    stage.manager.stop()
    await running
    assert clock.monotonic() <= 70 + 0.5
    assert stage.told[-6:] == ["cut second", "cut first", "stop recorder", "release", "stop nodes", "stop pods"]


@in_virtual_time
async def test_a_lost_lease_cuts_work_at_once_and_is_not_given_up(clock: LoopClock) -> None:
    stage = Stage(clock, work_s=1000)
    running = asyncio.create_task(stage.manager.run())
    await asyncio.sleep(60)
    stage.lease.free = 90
    stage.lease.gone.set()
    await asyncio.sleep(1)
    assert str(stage.manager.phase) == "following"
    assert stage.told[-4:] == ["lost", "cut second", "cut first", "stop recorder"]
    await asyncio.sleep(40)
    assert str(stage.manager.phase) == "leading"
    assert stage.manager.terms == 2
    assert stage.told[-2:] == ["begin first", "begin second"]
    assert "release" not in stage.told
    stage.manager.stop()
    await running
    assert stage.told.count("release") == 1


@in_virtual_time
async def test_stopped_while_it_syncs_or_follows_no_work_is_begun(clock: LoopClock) -> None:
    for seconds, last in ((5.0, "stop pods"), (10.0, "stop pods")):
        stage = Stage(clock, free=clock.monotonic() + 100)
        for cache in stage.caches:
            cache.after += clock.monotonic()
        running = asyncio.create_task(stage.manager.run())
        await asyncio.sleep(seconds)
        stage.manager.stop()
        await running
        assert stage.told[-1] == last
        assert "start recorder" not in stage.told


@in_virtual_time
async def test_cancelled_it_ends_in_the_same_order(clock: LoopClock) -> None:
    stage = Stage(clock, work_s=2)
    running = asyncio.create_task(stage.manager.run())
    await asyncio.sleep(8)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stage.told[-6:] == ["end first", "end second", "stop recorder", "release", "stop nodes", "stop pods"]


@in_virtual_time
async def test_without_a_lease_it_leads_and_lets_work_end(clock: LoopClock) -> None:
    stage = Stage(clock, work_s=3)
    manager = Manager(clock, controllers=stage.controllers)
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(1)
    assert str(manager.phase) == "leading"
    manager.stop()
    await running
    assert stage.told == ["begin first", "begin second", "end first", "end second"]


@in_virtual_time
async def test_a_worker_that_died_is_told(clock: LoopClock) -> None:
    stage = Stage(clock)
    manager = Manager(clock, controllers=stage.controllers)
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(1)
    assert manager.unhealthy() == {}
    stage.controllers[0]._ids = lambda: 1 / 0  # type: ignore[assignment, return-value]
    stage.controllers[0].queue.add("again")
    await asyncio.sleep(1)
    assert list(manager.unhealthy()) == ["first"]
    manager.stop()
    await running
