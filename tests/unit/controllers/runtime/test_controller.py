"""Workers: what a reconcile answers or raises, and how they stop."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from slinkytui.backend.controllers.runtime.controller import Controller
from slinkytui.backend.controllers.runtime.gate import Alone, Gate, NotLeading
from slinkytui.backend.controllers.runtime.logs import PassFilter, current
from slinkytui.backend.controllers.runtime.outcome import After, Done, Outcome, Refused, Retry
from slinkytui.backend.controllers.runtime.queue import Queue, State
from slinkytui.backend.errors import Unreachable
from tests.rules import holds
from tests.unit.controllers.virtual import LoopClock, in_virtual_time

Reconcile = Callable[[str], Coroutine[Any, Any, Outcome]]


def controller_of(clock: LoopClock, reconcile: Reconcile, **more: Any) -> Controller[str]:
    ids = (f"id{at}" for at in itertools.count())
    queue: Queue[str] = Queue(clock, jitter=lambda: 0.0)
    return Controller("nodes", reconcile, clock, queue=queue, ids=lambda: next(ids), **more)


class Script:
    """Answers of a reconcile in order, the last for ever; when it was asked."""

    def __init__(self, clock: LoopClock, *answers: Outcome | BaseException) -> None:
        self.clock, self.answers, self.asked = clock, list(answers), list[tuple[float, str]]()

    async def __call__(self, key: str) -> Outcome:
        self.asked.append((self.clock.monotonic(), key))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.asked]


@in_virtual_time
async def test_each_outcome_is_one_act_on_the_queue(clock: LoopClock) -> None:
    script = Script(clock, After(30), Retry("no answer"), Retry("no answer"), Refused("bad field"), Done())
    controller = controller_of(clock, script)
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(100)
    assert script.times == pytest.approx([0, 30, 30.005, 30.015])
    (row,) = controller.queue.table()
    assert (row.state, row.error) == (State.REFUSED, "bad field")
    controller.queue.add("a")
    await asyncio.sleep(1)
    assert controller.queue.table() == ()
    assert controller.stats.results == {"success": 1, "requeue_after": 1, "error": 2, "terminal_error": 1}
    assert controller.stats.errors == 3
    assert controller.stats.time.count == 5
    await controller.stop(0)


@in_virtual_time
async def test_a_part_that_was_refused_stays_visible_while_others_wait(clock: LoopClock) -> None:
    controller = controller_of(clock, Script(clock, After(30, "pod a-1: bad label")))
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(1)
    (row,) = controller.queue.table()
    assert (row.state, row.error, row.due_in) == (State.WAITING, "pod a-1: bad label", 29)
    await controller.stop(0)


@in_virtual_time
@holds("W24", "X33")
async def test_w24_what_one_key_raises_stops_no_other(clock: LoopClock, caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    async def reconcile(key: str) -> Outcome:
        if key == "poison":
            raise TypeError("None has no keys")
        done.append(key)
        return Done()

    controller = controller_of(clock, reconcile)
    caplog.handler.addFilter(PassFilter())
    for key in ("poison", "a", "b"):
        controller.queue.add(key)
    controller.start()
    await asyncio.sleep(0.001)
    assert done == ["a", "b"]
    await asyncio.sleep(600)
    assert controller.unhealthy() == ""
    (row,) = controller.queue.table()
    assert row.error == "TypeError: None has no keys"
    assert controller.stats.panics == row.retries > 10
    record = next(r for r in caplog.records if r.levelno == logging.ERROR)
    assert record.exc_info is not None
    assert [record.__dict__[k] for k in ("controller", "key", "reconcile_id")] == ["nodes", "poison", "id0"]
    await controller.stop(0)


@in_virtual_time
async def test_an_error_of_ours_is_no_panic(clock: LoopClock) -> None:
    controller = controller_of(clock, Script(clock, Unreachable("slurmrestd of a does not answer"), Done()))
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(1)
    assert (controller.stats.panics, controller.stats.results["error"], controller.stats.results["success"]) == (
        0,
        1,
        1,
    )
    await controller.stop(0)


@in_virtual_time
async def test_a_cancelled_call_inside_is_a_failure_and_not_the_end_of_the_worker(clock: LoopClock) -> None:
    controller = controller_of(clock, Script(clock, asyncio.CancelledError(), Done()))
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(1)
    assert controller.stats.results["success"] == 1
    assert controller.unhealthy() == ""
    await controller.stop(0)


@in_virtual_time
@holds("W22")
async def test_w22_a_reconcile_that_hangs_is_cut_off(clock: LoopClock) -> None:
    async def reconcile(key: str) -> Outcome:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    controller = controller_of(clock, reconcile, limit_s=60)
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(60.001)
    (row,) = controller.queue.table()
    assert (row.state, row.error) == (State.WAITING, "cut off: not done after 60 s")
    await controller.stop(0)


@in_virtual_time
async def test_workers_share_the_keys_and_each_line_knows_its_pass(clock: LoopClock) -> None:
    seen: dict[str, str] = {}

    async def reconcile(key: str) -> Outcome:
        await asyncio.sleep(5)
        seen[key] = f"{current.get().controller} {current.get().key} {current.get().reconcile_id}"
        return Done()

    controller = controller_of(clock, reconcile, workers=3)
    for key in "abcd":
        controller.queue.add(key)
    controller.start()
    await asyncio.sleep(1)
    assert controller.active == {"a": "id0", "b": "id1", "c": "id2"}
    await asyncio.sleep(9.5)
    assert seen == {"a": "nodes a id0", "b": "nodes b id1", "c": "nodes c id2", "d": "nodes d id3"}
    assert controller.active == {}
    await controller.stop(0)


@in_virtual_time
async def test_stop_lets_work_end_and_takes_no_further_key(clock: LoopClock) -> None:
    script = Script(clock, Done())

    async def reconcile(key: str) -> Outcome:
        await asyncio.sleep(5)
        return await script(key)

    controller = controller_of(clock, reconcile, workers=2)
    for key in "abc":
        controller.queue.add(key)
    controller.start()
    await asyncio.sleep(1)
    assert await controller.stop(10)
    assert [key for _, key in script.asked] == ["a", "b"]
    assert clock.monotonic() == 5
    assert [row.key for row in controller.queue.table()] == ["c"]


@in_virtual_time
async def test_stop_cancels_what_takes_too_long_and_the_key_is_wanted_again(clock: LoopClock) -> None:
    async def reconcile(key: str) -> Outcome:
        await asyncio.sleep(100)
        return Done()

    controller = controller_of(clock, reconcile)
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(1)
    assert not await controller.stop(8)
    assert clock.monotonic() == 9
    assert [(row.key, row.state) for row in controller.queue.table()] == [("a", State.READY)]
    controller.start()
    await asyncio.sleep(101)
    assert controller.stats.results["success"] == 1
    await controller.stop(0)


@in_virtual_time
async def test_work_that_ignores_its_cancellation_holds_up_nobody(
    clock: LoopClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def reconcile(key: str) -> Outcome:
        for _ in range(50):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue
        return Done()

    controller = controller_of(clock, reconcile)
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(0.5)
    assert not await controller.stop(3)
    assert clock.monotonic() == 5.5
    assert "goes on though it was cancelled" in caplog.text
    await asyncio.sleep(60)


@in_virtual_time
async def test_every_key_is_wanted_at_the_start_and_those_of_events_first(clock: LoopClock) -> None:
    script = Script(clock, Done())
    controller = controller_of(clock, script, keys=lambda: ["a", "b", "c"])
    controller.queue.add("b")
    controller.start()
    await asyncio.sleep(1)
    assert [key for _, key in script.asked] == ["b", "a", "c"]
    await controller.stop(0)


class Until:
    """Leads until a moment of the clock."""

    slack_s = 2.0

    def __init__(self, clock: LoopClock, end: float) -> None:
        self.clock, self.end = clock, end

    def left(self) -> float:
        return self.end - self.clock.monotonic()


@in_virtual_time
async def test_the_gate_begins_nothing_without_the_lease_and_cuts_off_what_outlives_it(clock: LoopClock) -> None:
    gate = Gate(Until(clock, 10), clock)
    written: list[str] = []

    async def write(text: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        written.append(text)
        return text

    assert await gate.write("pod a", write("a", 4)) == "a"
    assert gate.check("pod b") == 8
    assert await gate.write("pod b", write("b", 7)) == "b"
    assert clock.monotonic() == 11
    with pytest.raises(NotLeading, match="pod c: not written"):
        await gate.write("pod c", write("c", 0))
    gate = Gate(Until(clock, 12), clock)
    with pytest.raises(NotLeading) as found:
        await gate.write("pod d", write("d", 60))
    assert "not known" in found.value.detail
    assert clock.monotonic() == 14
    assert written == ["a", "b"]


@in_virtual_time
async def test_an_engine_alone_writes_always(clock: LoopClock) -> None:
    gate = Gate(Alone(), clock)
    assert gate.check("pod a") == math.inf
    assert await gate.write("pod a", asyncio.sleep(1e6, "a")) == "a"
