"""Of several candidates one leads at most, whatever clocks, networks and people do; and one does, when all is well."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinkytui.backend.controllers.runtime.lease import OPERATOR_LEASE, Elector, LeaseRecord, Timings
from slinkytui.backend.errors import NotAllowed
from tests.unit.controllers.runtime.machines import ASLEEP, STOPPED, Call, Machine, Server, Wire, true_time
from tests.unit.controllers.virtual import START, in_virtual_time


class Candidate:
    def __init__(self, server: Server, name: str, machine: Machine | None = None, fate: Callable[[], Call] = Call):
        self.machine = machine or Machine()
        self.elector = Elector(Wire(server, self.machine, fate), name, self.machine, jitter=lambda: 0.0)
        self.task: asyncio.Task[None] | None = None
        self.led: list[float] = []
        """True times at which it began to lead."""

    def start(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await self.machine.goes_on()
        while True:
            await self.elector.acquire()
            self.led.append(true_time())
            await self.elector.hold()

    async def kill(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
            self.elector = Elector(self.elector._io, "dead", self.machine)

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
        await self.elector.release()

    @property
    def writes(self) -> bool:
        """Whether it would send a write at this very moment: a paused process does nothing."""
        return self.machine.paused_until() <= true_time() and self.elector.left() > 0


async def silent(holder: Candidate, *others: Candidate) -> None:
    """Wait until the holder would write nothing any more; until then the others do not either."""
    while holder.writes:
        assert not any(other.writes for other in others)
        await asyncio.sleep(0.1)


def record(holder: str, version: str, duration_s: float = 15.0) -> LeaseRecord:
    return LeaseRecord(holder, duration_s, START - 100, START - 50, 3, version)


def test_the_names_and_times_are_the_usual_ones() -> None:
    assert OPERATOR_LEASE == "slurm-operator"
    assert Timings() == Timings(15, 10, 2)
    with pytest.raises(ValueError, match="deadline < duration"):
        Timings(10, 10, 2)


@in_virtual_time
async def test_the_first_takes_it_at_once_and_renews_in_one_call() -> None:
    server = Server()
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(1)
    assert a.writes
    first = server.read()
    assert (first.holder, first.duration_s, first.transitions) == ("a", 15, 0)
    assert first.acquired == first.renewed == pytest.approx(START + 0.02, abs=0.1)
    await asyncio.sleep(60)
    found = server.read()
    assert found.acquired == first.acquired
    assert found.renewed == pytest.approx(START + 60, abs=2.1)
    assert 28 <= server.writes <= 31
    assert a.elector.slow_path == 0
    assert a.elector.view().ours
    await a.stop()


@in_virtual_time
async def test_the_second_waits_and_takes_over_within_the_lease_time() -> None:
    server = Server()
    a, b = Candidate(server, "a"), Candidate(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(60)
    assert (b.led, b.elector.view().holder) == ([], "a")
    await a.kill()
    await asyncio.sleep(20)
    assert 60 + 13 <= b.led[0] <= 61 + 15 + 3
    assert server.read().transitions == 1
    await b.stop()


@in_virtual_time
async def test_given_up_it_is_taken_at_once() -> None:
    server = Server()
    a, b = Candidate(server, "a"), Candidate(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(30)
    await a.stop()
    assert (server.read().holder, server.read().duration_s) == ("", 1)
    assert not a.writes
    await asyncio.sleep(2.5)
    assert len(b.led) == 1
    await b.stop()


@in_virtual_time
async def test_it_is_given_up_also_if_it_was_taken_without_an_answer() -> None:
    server = Server()
    fates = [Call(), Call(unheard=True)]
    a = Candidate(server, "a", fate=lambda: fates.pop(0) if fates else Call())
    a.start()
    await asyncio.sleep(0.5)
    assert server.read().holder == "a"
    await a.stop()
    assert server.read().holder == ""


@in_virtual_time
async def test_another_s_lease_is_never_given_up() -> None:
    server = Server()
    server.record = record("other", "7")
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(5)
    await a.stop()
    assert server.read() == record("other", "7")


@in_virtual_time
async def test_a_clock_far_off_on_the_other_machine_changes_nothing() -> None:
    server = Server()
    server.record = LeaseRecord("old", 15.0, START - 9e6, START - 9e6, 0, "1")
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(14.9)
    assert a.led == []
    await asyncio.sleep(5)
    assert len(a.led) == 1
    await a.stop()


@in_virtual_time
async def test_a_longer_duration_in_the_lease_is_waited_for() -> None:
    server = Server()
    server.record = record("old", "1", duration_s=60.0)
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(59)
    assert a.led == []
    await asyncio.sleep(5)
    assert len(a.led) == 1
    await a.stop()


@in_virtual_time
async def test_without_answers_it_stops_writing_before_others_may_take_over() -> None:
    server = Server()
    away = False
    a = Candidate(server, "a", fate=lambda: Call(lost=away))
    a.start()
    await asyncio.sleep(9)
    away = True
    await silent(a)
    assert true_time() < 9 + 10.2
    assert a.elector.timings.deadline_s + a.elector.slack_s < a.elector.timings.duration_s
    await asyncio.sleep(20)
    away = False
    await asyncio.sleep(5)
    assert a.writes
    assert len(a.led) == 2
    await a.stop()


@pytest.mark.parametrize("kind", [STOPPED, ASLEEP])
@in_virtual_time
async def test_a_process_that_was_suspended_wakes_and_writes_nothing(kind: str) -> None:
    server = Server()
    a, b = Candidate(server, "a", Machine(pauses=[(20, 60, kind)])), Candidate(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(60 - true_time())
    assert b.writes
    assert a.machine.paused_until() == true_time()
    assert a.elector.left() <= 0
    await asyncio.sleep(3)
    assert not a.writes
    assert (server.read().holder, a.elector.view().holder) == ("b", "b")
    await a.kill()
    await b.stop()


@in_virtual_time
async def test_suspended_with_nobody_else_there_it_goes_on_leading() -> None:
    server = Server()
    a = Candidate(server, "a", Machine(pauses=[(20, 60, STOPPED)]))
    a.start()
    await asyncio.sleep(60.001)
    assert a.elector.left() <= 0
    await asyncio.sleep(3)
    assert a.writes
    assert len(a.led) == 1
    await a.stop()


@pytest.mark.parametrize("by", [-3600.0, -5.0, 9.0, 3600.0])
@in_virtual_time
async def test_a_clock_that_is_set_shuts_the_gate_until_the_next_renewal(by: float) -> None:
    server = Server()
    a = Candidate(server, "a", Machine(jumps=[(20.9, by)]))
    a.start()
    await asyncio.sleep(20.8)
    before = a.elector.left()
    await asyncio.sleep(0.15)
    assert a.elector.left() < (before - 5 if by == 9 else 0.001)
    await asyncio.sleep(3)
    assert a.elector.left() > 7
    assert len(a.led) == 1
    await a.stop()


@in_virtual_time
async def test_a_renewal_without_answer_is_found_to_be_ours() -> None:
    server = Server()
    unheard = False
    a = Candidate(server, "a", fate=lambda: Call(unheard=unheard))
    a.start()
    await asyncio.sleep(5)
    unheard = True
    await asyncio.sleep(2.5)
    unheard = False
    await asyncio.sleep(4)
    assert a.writes
    assert a.elector.slow_path == 1
    assert len(a.led) == 1
    await a.stop()


@in_virtual_time
async def test_a_label_on_the_lease_costs_one_read() -> None:
    server = Server()
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(5)
    server._store(server.read())
    await asyncio.sleep(4)
    assert a.writes
    assert (a.elector.slow_path, len(a.led)) == (1, 1)
    await a.stop()


@in_virtual_time
async def test_deleted_it_is_made_again_by_its_holder_and_by_nobody_who_knew_him() -> None:
    server = Server()
    away = False
    a, b = Candidate(server, "a", fate=lambda: Call(lost=away)), Candidate(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(9)
    server.record = None
    await asyncio.sleep(3)
    assert server.read().holder == "a"
    assert b.led == []
    away, server.record = True, None
    await silent(a, b)
    await asyncio.sleep(10)
    assert b.writes
    await a.kill()
    await b.stop()


@pytest.mark.parametrize("later", range(20))
@in_virtual_time
async def test_deleted_it_is_not_taken_by_one_who_had_not_looked_for_long(later: int) -> None:
    server = Server()
    away = False
    a, b = Candidate(server, "a"), Candidate(server, "b", fate=lambda: Call(lost=away))
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(9)
    away = True
    await asyncio.sleep(15 + later / 10)
    server.record, away = None, False
    for _ in range(100):
        await asyncio.sleep(0.05)
        assert a.writes
        assert not b.writes
    await a.stop()
    await b.kill()


@in_virtual_time
async def test_deleted_it_is_not_taken_by_one_who_last_saw_it_free() -> None:
    server = Server()
    server.record = record("", "1")
    away = False
    a, b = Candidate(server, "a"), Candidate(server, "b", fate=lambda: Call(lost=away))
    b.elector._see(server.read())
    away = True
    a.start()
    b.start()
    await asyncio.sleep(30)
    assert a.writes
    server.record, away = None, False
    for _ in range(100):
        await asyncio.sleep(0.05)
        assert a.writes
        assert not b.writes
    await a.stop()
    await b.kill()


@in_virtual_time
async def test_deleted_while_another_held_it_it_is_not_made_again_by_one_who_wakes() -> None:
    server = Server()
    a, b = Candidate(server, "a", Machine(pauses=[(20, 60, STOPPED)])), Candidate(server, "b")
    a.start()
    await asyncio.sleep(1)
    b.start()
    await asyncio.sleep(60 - 0.001 - true_time())
    assert b.writes
    server.record = None
    for _ in range(400):
        await asyncio.sleep(0.05)
        assert not a.writes
    assert b.writes
    await a.kill()
    await b.stop()


@in_virtual_time
async def test_taken_by_force_it_is_left_at_once() -> None:
    server = Server()
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(5)
    server._store(record("person", ""))
    await asyncio.sleep(2.1)
    assert not a.writes
    assert a.elector.view().holder == "person"
    await a.kill()


@in_virtual_time
async def test_the_reason_is_shown_when_it_may_not_be_read(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()

    def refuse() -> LeaseRecord:
        raise NotAllowed("Lease slinky/slurm-operator: not allowed", detail="cannot get resource leases")

    server.read = refuse  # type: ignore[method-assign]
    a = Candidate(server, "a")
    a.start()
    await asyncio.sleep(60)
    assert "cannot get resource leases" in a.elector.view().error
    assert sum("not allowed" in r.message for r in caplog.records) == 1
    await a.kill()


# -- whatever happens

PAUSES = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0.1, 40), st.sampled_from([STOPPED, ASLEEP])), max_size=3
)  # fmt: skip
JUMPS = st.lists(st.tuples(st.floats(0, 120), st.floats(-60, 60)), max_size=2)
MACHINES = st.tuples(st.floats(0.97, 1.03), PAUSES, JUMPS, st.floats(0, 30), st.sampled_from(["", "kill", "stop"]))
FAULTS = st.tuples(st.floats(0, 0.4), st.floats(0, 0.4), st.floats(0, 6))


def machine_of(rate: float, pauses: list[tuple[float, float, str]], jumps: list[tuple[float, float]]) -> Machine:
    """A machine that sleeps and whose clock is set back meanwhile cannot know it by any clock: left out."""
    asleep = any(kind == ASLEEP for _, _, kind in pauses)
    return Machine(
        rate,
        [(start, start + length, kind) for start, length, kind in pauses],
        [(at, abs(by) if asleep else by) for at, by in jumps],
    )


@settings(max_examples=60, deadline=None)
@given(
    machines=st.lists(MACHINES, min_size=2, max_size=3), faults=FAULTS, seed=st.integers(0, 2**32),
    deleted=st.booleans(),
)  # fmt: skip
@in_virtual_time
async def test_never_two_lead_and_in_the_end_one_does(
    machines: list[tuple[float, list[tuple[float, float, str]], list[tuple[float, float]], float, str]],
    faults: tuple[float, float, float], seed: int, deleted: bool,
) -> None:  # fmt: skip
    rng, server, calm = random.Random(seed), Server(), False
    lost, unheard, slow = faults

    def fate() -> Call:
        if calm:
            return Call()
        return Call(rng.random() * slow, rng.random() * slow, rng.random() < lost, rng.random() < unheard)

    candidates = [
        Candidate(server, f"c{at}", machine_of(rate, pauses, jumps), fate)
        for at, (rate, pauses, jumps, _, _) in enumerate(machines)
    ]
    for at, (_, _, _, start, _) in enumerate(machines):
        asyncio.get_running_loop().call_later(start, candidates[at].start)
    ends = {at: 60 + 10 * at for at, m in enumerate(machines) if m[4]}
    while true_time() < 240:
        await asyncio.sleep(0.25)
        assert sum(c.writes for c in candidates) <= 1
        calm = true_time() > 170
        # One who never saw the lease cannot know that it was there.
        if deleted and 40 < true_time() < 40.3 and all(c.elector._seen is not None for c in candidates):
            server.record = None
        for at, when in list(ends.items()):
            if true_time() >= when:
                del ends[at]
                await (candidates[at].kill() if machines[at][4] == "kill" else candidates[at].stop())
    alive = [c for at, c in enumerate(candidates) if not machines[at][4]]
    assert sum(c.writes for c in candidates) == (1 if alive else 0)
    for candidate in candidates:
        await candidate.kill()
