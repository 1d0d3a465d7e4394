"""Writes side by side: as many as the server bears, past single failures."""

from __future__ import annotations

import asyncio

import pytest

from slinkytui.backend.controllers.runtime.pool import TRIES, Bounds, Limiter, Pool
from slinkytui.backend.errors import BadRequest, SlinkyError
from tests.rules import holds
from tests.unit.controllers.virtual import LoopClock, in_virtual_time


class Busy(SlinkyError):
    """Too many requests."""


class Server:
    """Answers after `seconds`, more slowly beyond `width` calls at once, and refuses beyond `most`."""

    def __init__(self, seconds: float = 0.01, *, width: int = 10**6, most: int = 10**6) -> None:
        self.seconds, self.width, self.most = seconds, width, most
        self.now = self.peak = self.calls = self.refused = 0

    async def write(self, item: int) -> str:
        self.calls += 1
        if self.now >= self.most:
            self.refused += 1
            raise Busy("too many requests")
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await asyncio.sleep(self.seconds * max(1.0, self.now / self.width))
        finally:
            self.now -= 1
        return f"made {item}"


def put_off(error: Exception) -> float | None:
    return 1.0 if isinstance(error, Busy) else None


def pool_of(clock: LoopClock, bounds: Bounds | None = None) -> Pool:
    return Pool(Limiter(clock, bounds), clock, put_off)


@in_virtual_time
@holds("W61")
async def test_w61_an_idle_server_is_not_left_idle(clock: LoopClock) -> None:
    pool, server = pool_of(clock), Server()
    results = await pool.run_all(range(1000), server.write)
    assert [r.value for r in results] == [f"made {at}" for at in range(1000)]
    assert server.peak >= 64
    assert clock.monotonic() <= 1000 / 64 * 0.01 + 0.01


@in_virtual_time
@holds("W14")
async def test_w14_one_failure_keeps_nobody_from_his_turn(clock: LoopClock) -> None:
    async def act(item: int) -> int:
        if item % 10 == 0:
            raise BadRequest(f"item {item}") if item else KeyError("a fault of ours")
        return item

    results = await pool_of(clock).run_all(range(100), act)
    assert [r.item for r in results if r.ok] == [at for at in range(100) if at % 10]
    assert isinstance(results[0].error, KeyError)
    assert str(results[90].error) == "item 90"


@in_virtual_time
async def test_pushed_back_it_narrows_waits_and_loses_nothing(clock: LoopClock) -> None:
    pool, server = pool_of(clock), Server(0.1, most=20)
    results = await pool.run_all(range(2000), server.write)
    assert all(r.ok for r in results)
    assert pool.limiter.limit < 40
    assert server.refused < 0.1 * server.calls
    assert clock.monotonic() < 2 * 2000 / 20 * 0.1


@in_virtual_time
async def test_requests_refused_together_halve_it_once(clock: LoopClock) -> None:
    limiter = Limiter(clock)
    limiter.under_way = 64
    for _ in range(44):
        limiter.refused(sent=0.0)
    assert (limiter.limit, limiter.pushed_back) == (32, 44)
    await asyncio.sleep(2)
    limiter.refused(sent=1.5)
    assert limiter.limit == 16


@in_virtual_time
async def test_who_is_put_off_again_and_again_is_told(clock: LoopClock) -> None:
    pool, server = pool_of(clock), Server(most=0)
    (result,) = await pool.run_all([1], server.write)
    assert isinstance(result.error, Busy)
    assert server.calls == TRIES
    assert clock.monotonic() == TRIES - 1
    assert pool.limiter.under_way == 0


@in_virtual_time
async def test_slow_answers_narrow_it_and_quick_ones_widen_it(clock: LoopClock) -> None:
    pool, slow = pool_of(clock), Server(0.05, width=8)
    await pool.run_all(range(8), slow.write)
    await pool.run_all(range(2000), slow.write)
    narrow = pool.limiter.limit
    assert narrow < 48
    await pool.run_all(range(20_000), Server(0.02).write)
    assert pool.limiter.limit > 2 * narrow


@in_virtual_time
async def test_a_limit_that_is_not_reached_does_not_grow(clock: LoopClock) -> None:
    pool, server = pool_of(clock), Server()
    for at in range(500):
        await pool.run_all([at], server.write)
    assert pool.limiter.limit == 64


@pytest.mark.parametrize(
    ("fails", "calls", "made"), [(0, 1, 0), (99, 10, 10), (5, 7, 5)], ids=["all fail", "none fails", "after five"]
)
@in_virtual_time
@holds("H8")
async def test_slow_start_stops_at_the_first_batch_that_fails(fails: int, calls: int, made: int) -> None:
    begun: list[int] = []

    async def create(item: int) -> int:
        begun.append(item)
        if item >= fails:
            raise BadRequest("quota")
        return item

    results = await pool_of(LoopClock()).run_all(range(10), create, slow_start=True)
    assert len(begun) == calls
    assert sum(r.ok for r in results) == made
    assert [r.item for r in results] == list(range(10))
    assert [r.begun for r in results] == [at < calls for at in range(10)]


@in_virtual_time
async def test_slow_start_costs_a_thousand_creates_little(clock: LoopClock) -> None:
    pool, server = pool_of(clock), Server(0.01)
    assert all(r.ok for r in await pool.run_all(range(1000), server.write, slow_start=True))
    assert clock.monotonic() < 0.3


@in_virtual_time
async def test_cancelled_nothing_goes_on_and_every_place_is_free(clock: LoopClock) -> None:
    pool, server = pool_of(clock, Bounds(start=8, most=32)), Server(10)
    task = asyncio.create_task(pool.run_all(range(100), server.write))
    other = asyncio.create_task(pool.run_all(range(100, 104), server.write))
    await asyncio.sleep(15)
    task.cancel()
    await asyncio.wait([task])
    assert all(r.ok for r in await other)
    assert (server.now, pool.limiter.under_way) == (0, 0)
    assert server.calls <= 24
    assert await pool.run_all([], server.write) == []


@in_virtual_time
async def test_places_are_shared_by_all_who_write(clock: LoopClock) -> None:
    pool, server = pool_of(clock, Bounds(start=8, most=8)), Server(1)
    await asyncio.gather(*(pool.run_all(range(40), server.write) for _ in range(3)))
    assert server.peak == 8
    assert clock.monotonic() == 15
