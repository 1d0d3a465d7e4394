"""The work queue: what is wanted, when, by whom it is worked on, and what people see of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.controllers.runtime.queue import BASE_S, Queue, QueueClosed, State
from tests.rules import holds
from tests.unit.controllers.virtual import START, LoopClock, in_virtual_time


def queue_of(clock: LoopClock, **more: float) -> Queue[str]:
    return Queue(clock, jitter=lambda: 0.0, **more)


async def take(queue: Queue[str], count: int) -> list[str]:
    found = []
    for _ in range(count):
        found.append(await queue.get())
        queue.done(found[-1])
    return found


@in_virtual_time
async def test_a_key_stands_in_it_once(clock: LoopClock) -> None:
    queue = queue_of(clock)
    for key in "abcab":
        queue.add(key)
    assert queue.depth == 3
    assert await take(queue, 3) == ["a", "b", "c"]
    assert queue.depth == 0
    assert queue.stats.adds == 3


@in_virtual_time
@holds("W19", "H7")
async def test_w19_the_earliest_moment_wins(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("late", after=900)
    queue.add("late", after=10)
    queue.add("late", after=30)
    assert await queue.get() == "late"
    assert clock.monotonic() == 10
    queue.done("late")
    assert queue.table() == ()


@in_virtual_time
async def test_the_highest_priority_wins(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("a")
    queue.add("b", priority=5)
    queue.add("c", priority=-1)
    queue.add("c", priority=7)
    queue.add("c")
    assert await take(queue, 3) == ["c", "b", "a"]


@in_virtual_time
async def test_one_worker_a_key_and_dirty_comes_again(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a", after=60)
    queue.add("a", after=1, priority=3)
    other = asyncio.create_task(queue.get())
    await asyncio.sleep(30)
    assert not other.done()
    assert queue.table()[0].again
    queue.done("a")
    assert await other == "a"
    assert clock.monotonic() == 30
    assert queue.table()[0].priority == 3


@in_virtual_time
async def test_back_off_doubles_to_its_ceiling_and_is_forgotten(clock: LoopClock) -> None:
    queue = queue_of(clock, ceiling_s=60.0)
    queue.add("a")
    delays = []
    for _ in range(20):
        key = await queue.get()
        delays.append(queue.retry(key, "no answer"))
        queue.done(key)
    assert delays[:4] == [BASE_S, 2 * BASE_S, 4 * BASE_S, 8 * BASE_S]
    assert delays[-1] == 60.0 == max(delays)
    key = await queue.get()
    queue.forget(key)
    assert queue.retry(key, "again") == BASE_S
    assert queue.stats.retries == 21


@in_virtual_time
async def test_a_failure_waits_no_longer_than_it_asks_for(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("a")
    for _ in range(30):
        key = await queue.get()
        assert queue.retry(key, "no answer", within=2.0) <= 2.0
        queue.done(key)


@in_virtual_time
async def test_an_event_cuts_a_back_off_short(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("a")
    for _ in range(20):
        key = await queue.get()
        queue.retry(key, "no answer")
        queue.done(key)
    at = clock.monotonic()
    queue.add("a")
    assert await queue.get() == "a"
    assert clock.monotonic() == at


def test_a_clock_that_wakes_a_hair_early_makes_no_loop_of_it() -> None:
    async def body() -> None:
        clock = VirtualClock()
        queue: Queue[str] = Queue(clock, jitter=lambda: 0.0)
        for at in range(200):
            queue.add("a", after=0.1 + at / 7)
            getter = asyncio.create_task(queue.get())
            await clock.advance(0.1 + at / 7)
            assert getter.done()
            queue.done("a")

    asyncio.run(body())


def test_jitter_takes_off_a_tenth_at_most() -> None:
    queue: Queue[str] = Queue(VirtualClock(), jitter=lambda: 0.999)
    assert 0.9 * BASE_S < queue.retry("a", "x") < BASE_S
    assert 60.0 * 0.9 < [queue.retry("a", "x") for _ in range(2000)][-1] < 60.0


@in_virtual_time
async def test_a_getter_that_leaves_gives_its_turn_away(clock: LoopClock) -> None:
    queue = queue_of(clock)
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"


@in_virtual_time
async def test_a_waiting_getter_hears_of_an_earlier_moment(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("far", after=100)
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add("near", after=2)
    assert await getter == "near"
    assert clock.monotonic() == 3
    assert await queue.get() == "far"
    assert clock.monotonic() == 100


@in_virtual_time
async def test_shut_down_hands_out_what_is_ready_and_waits_for_workers(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("later", after=5)
    for key in ("a", "b"):
        queue.add(key)
    held = await queue.get()
    queue.shut_down()
    queue.add("c")
    drained = asyncio.create_task(queue.drained())
    assert await take(queue, 1) == ["b"]
    await asyncio.sleep(10)
    assert not drained.done()
    queue.done(held)
    await drained
    with pytest.raises(QueueClosed):
        await queue.get()


@in_virtual_time
async def test_shut_down_at_once_wakes_every_getter(clock: LoopClock) -> None:
    queue = queue_of(clock)
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down(drain=False)
    assert [type(e) for e in await asyncio.gather(*getters, return_exceptions=True)] == [QueueClosed] * 3
    await queue.drained()


@in_virtual_time
async def test_the_table_says_what_waits_and_why(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("run")
    await queue.get()
    await asyncio.sleep(4)
    queue.refuse("bad", "spec.replicas: must not be negative")
    queue.add("now", priority=2)
    queue.add("soon", after=8)
    queue.retry("failed", "no answer")
    rows = {row.key: row for row in queue.table()}
    assert [row.key for row in queue.table()] == ["run", "now", "failed", "soon", "bad"]
    assert (rows["run"].state, rows["run"].since) == (State.RUNNING, START)
    assert (rows["now"].state, rows["now"].priority) == (State.READY, 2)
    assert (rows["soon"].state, rows["soon"].due_in) == (State.WAITING, 8)
    assert (rows["failed"].retries, rows["failed"].error, rows["failed"].error_at) == (1, "no answer", START + 4)
    assert (rows["bad"].state, rows["bad"].error) == (State.REFUSED, "spec.replicas: must not be negative")
    assert queue.unfinished() == (4, 4)


@in_virtual_time
async def test_durations_are_counted(clock: LoopClock) -> None:
    queue = queue_of(clock)
    queue.add("a", after=5)
    await asyncio.sleep(7)
    key = await queue.get()
    await asyncio.sleep(3)
    queue.done(key)
    assert (queue.stats.queue_duration.count, queue.stats.queue_duration.total) == (1, 2)
    assert (queue.stats.work_duration.count, queue.stats.work_duration.total) == (1, 3)


@in_virtual_time
async def test_wishes_that_change_often_take_no_memory(clock: LoopClock) -> None:
    queue = queue_of(clock)
    for at in range(100_000):
        queue.add("a", after=1e9 - at, priority=at)
    assert len(queue._waiting) < 200
    queue.add("a")
    assert await take(queue, 1) == ["a"]


@settings(max_examples=60, deadline=None)
@given(
    workers=st.integers(1, 4),
    wishes=st.lists(
        st.tuples(st.floats(0, 20), st.sampled_from("abcd"), st.floats(0, 20), st.integers(-2, 2)), max_size=40
    ),
    seed=st.integers(0, 2**16),
)
@in_virtual_time
async def test_whatever_is_wanted_is_worked_on_after_it_was_wanted_and_by_one(
    workers: int, wishes: list[tuple[float, str, float, int]], seed: int
) -> None:
    clock, rng = LoopClock(), random.Random(seed)
    queue = queue_of(clock)
    busy: Counter[str] = Counter()
    starts: dict[str, list[float]] = {key: [] for key in "abcd"}

    async def worker() -> None:
        while True:
            try:
                key = await queue.get()
            except QueueClosed:
                return
            busy[key] += 1
            assert busy[key] == 1
            starts[key].append(clock.monotonic())
            await asyncio.sleep(rng.random() * 3)
            busy[key] -= 1
            queue.done(key)

    tasks = [asyncio.create_task(worker()) for _ in range(workers)]
    wanted: list[tuple[float, str]] = []
    for at, key, after, priority in sorted(wishes):
        await asyncio.sleep(at - clock.monotonic())
        queue.add(key, after=after, priority=priority)
        wanted.append((clock.monotonic(), key))
    await asyncio.sleep(20 + 3 * (len(wishes) + 1))
    queue.shut_down()
    await asyncio.gather(*tasks)
    for at, key in wanted:
        assert any(start >= at for start in starts[key])
    assert sum(map(len, starts.values())) <= len(wishes)
