"""While a server is away nobody waits for it, and it is noticed soon when it is back."""

from __future__ import annotations

import asyncio

import pytest

from slinkytui.backend.controllers.runtime.breaker import Breaker, Patience
from slinkytui.backend.errors import BadRequest, NotAllowed, Unreachable
from tests.rules import holds
from tests.unit.controllers.virtual import START, LoopClock, in_virtual_time


class Server:
    def __init__(self) -> None:
        self.away: type[Exception] | None = None
        self.hangs = False
        self.calls = 0

    async def ask(self) -> str:
        self.calls += 1
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.away is not None:
            raise self.away("slurmrestd of a")
        return "nodes"


async def asked(breaker: Breaker, server: Server) -> str:
    try:
        return await breaker.call(server.ask)
    except Unreachable as error:
        return error.line()


@in_virtual_time
@holds("W46", "W22")
async def test_w46_a_server_that_hangs_costs_its_deadline_a_few_times_and_then_nothing(clock: LoopClock) -> None:
    server, breaker = Server(), Breaker("slurmrestd of a", clock, jitter=lambda: 0.0)
    server.hangs = True
    for _ in range(3):
        await asked(breaker, server)
    assert (clock.monotonic(), server.calls) == (90, 3)
    texts = [await asked(breaker, server) for _ in range(100)]
    assert (clock.monotonic(), server.calls) == (90, 3)
    assert texts[0] == "slurmrestd of a is away: no answer within 30 s (it is asked again in 1 s)"
    assert breaker.away_since == START + 30


@in_virtual_time
async def test_one_tries_and_all_may_when_it_is_back(clock: LoopClock) -> None:
    server, breaker = Server(), Breaker("a", clock, jitter=lambda: 0.0)
    server.away = Unreachable
    for _ in range(3):
        await asked(breaker, server)
    server.away, server.hangs = None, True
    await asyncio.sleep(1)
    trying = asyncio.create_task(asked(breaker, server))
    await asyncio.sleep(0.1)
    assert "is away" in await asked(breaker, server)
    assert server.calls == 4
    await trying
    server.hangs = False
    await asyncio.sleep(1)
    assert "asked again in 1 s" in await asked(breaker, server)
    await asyncio.sleep(1)
    assert await asked(breaker, server) == "nodes"
    assert (breaker.open, breaker.away_since, breaker.error) == (False, 0.0, "")
    assert await asked(breaker, server) == "nodes"


@in_virtual_time
async def test_it_is_asked_twice_a_minute_however_long_it_is_away(clock: LoopClock) -> None:
    server, breaker = Server(), Breaker("a", clock, jitter=lambda: 0.0)
    server.away = Unreachable
    while clock.monotonic() < 3600:
        await asked(breaker, server)
        await asyncio.sleep(0.5)
    assert 120 <= server.calls <= 135
    server.away = None
    back = clock.monotonic()
    while await asked(breaker, server) != "nodes":
        await asyncio.sleep(0.5)
    assert clock.monotonic() - back <= 30


@pytest.mark.parametrize("answer", [BadRequest, NotAllowed])
@in_virtual_time
async def test_a_refusal_is_an_answer(answer: type[Exception]) -> None:
    server, breaker = Server(), Breaker("a", LoopClock())
    server.away = answer
    for _ in range(10):
        with pytest.raises(answer):
            await breaker.call(server.ask)
    assert not breaker.open


@in_virtual_time
async def test_failures_between_answers_open_nothing(clock: LoopClock) -> None:
    server, breaker = Server(), Breaker("a", clock, patience=Patience(failures=2))
    for at in range(20):
        server.away = Unreachable if at % 2 else None
        await asked(breaker, server)
    assert server.calls == 20


@in_virtual_time
async def test_who_leaves_while_he_tries_leaves_the_turn_to_the_next(clock: LoopClock) -> None:
    server, breaker = Server(), Breaker("a", clock, patience=Patience(failures=1), jitter=lambda: 0.0)
    server.away = Unreachable
    await asked(breaker, server)
    server.away, server.hangs = None, True
    await asyncio.sleep(1)
    trying = asyncio.create_task(asked(breaker, server))
    await asyncio.sleep(0.1)
    trying.cancel()
    await asyncio.wait([trying])
    server.hangs = False
    assert await asked(breaker, server) == "nodes"


@in_virtual_time
async def test_calls_that_fail_together_are_one_failure_once_it_is_open(clock: LoopClock) -> None:
    server, breaker = Server(), Breaker("a", clock, jitter=lambda: 0.0)
    server.hangs = True
    await asyncio.gather(*(asked(breaker, server) for _ in range(50)))
    assert breaker.open
    assert breaker.wait_s() <= 2
