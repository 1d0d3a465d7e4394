"""Events are told once, counted, combined and bounded; recording neither waits nor fails."""

from __future__ import annotations

import asyncio

import pytest

from slinkytui.backend.controllers.runtime.events import COMBINED, WARNING, Event, Limits, Recorder, Ref, cut
from slinkytui.backend.errors import BadRequest, Conflict, NotFound, SlinkyError, Unreachable
from tests.rules import holds
from tests.unit.controllers.virtual import START, LoopClock, in_virtual_time

SET = Ref("slinky.slurm.net/v1beta1", "NodeSet", "slurm", "gpu", "uid-1")


class Server:
    """Events as a server keeps them; `fails` is raised by the calls to come, in order."""

    def __init__(self, clock: LoopClock) -> None:
        self.clock = clock
        self.kept: dict[str, Event] = {}
        self.calls: list[tuple[float, str, int]] = []
        self.fails: list[SlinkyError] = []
        self.unheard = False

    async def create(self, event: Event) -> None:
        self._call("create", event)
        if event.name in self.kept:
            raise Conflict("exists")
        self.kept[event.name] = event
        if self.unheard:
            self.unheard = False
            raise Unreachable("no answer")

    async def count(self, event: Event) -> None:
        self._call("count", event)
        if event.name not in self.kept:
            raise NotFound("event")
        self.kept[event.name] = event

    def _call(self, verb: str, event: Event) -> None:
        self.calls.append((self.clock.monotonic(), verb, event.count))
        if self.fails:
            raise self.fails.pop(0)

    @property
    def told(self) -> list[tuple[str, str, int]]:
        return [(e.reason, e.note, e.count) for e in self.kept.values()]


def recorder_of(server: Server, limits: Limits | None = None) -> Recorder:
    recorder = Recorder(server, server.clock, limits=limits)
    recorder.start()
    return recorder


@in_virtual_time
async def test_an_event_is_written_at_once_with_all_that_the_server_wants(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    pod = Ref("v1", "Pod", "slurm", "gpu-0", "uid-2")
    await asyncio.sleep(5)
    recorder.record(SET, "NodeCordon", "Cordoning {pod} 100%s", action="Cordon", type=WARNING, related=pod)
    recorder.record(SET, "SyncFailed", "no action", action="")
    await asyncio.sleep(0.01)
    one, other = server.kept.values()
    assert (one.note, one.at, one.last, one.type, one.related) == (
        "Cordoning {pod} 100%s", START + 5, START + 5, "Warning", pod,
    )  # fmt: skip
    assert other.action == "SyncFailed"
    assert one.name.startswith("gpu.")
    assert one.name != other.name
    assert await recorder.stop(1)


@in_virtual_time
@holds("W39")
async def test_repeated_it_is_one_event_with_a_count_and_few_writes(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    for _ in range(300):
        recorder.record(SET, "SyncFailed", "no answer", action="Sync")
        await asyncio.sleep(1)
    assert len(server.kept) == 1
    assert [verb for _, verb, _ in server.calls] == ["create", "count", "count", "count", "count"]
    assert await recorder.stop(1)
    assert server.told == [("SyncFailed", "no answer", 300)]
    assert next(iter(server.kept.values())).last == START + 299


@in_virtual_time
async def test_after_a_while_it_is_news_again(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    for _ in range(2):
        recorder.record(SET, "ScalingUp", "2 pods", action="ScaleUp")
        await asyncio.sleep(400)
    assert server.told == [("ScalingUp", "2 pods", 1)] * 2
    await recorder.stop(1)


@in_virtual_time
async def test_many_that_are_alike_are_combined(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    for at in range(1000):
        recorder.record(SET, "SuccessfulCreate", f"Created pod: gpu-{at}", action="Create")
    await asyncio.sleep(1)
    assert len(server.kept) == 11
    assert server.told[-1] == ("SuccessfulCreate", f"{COMBINED}Created pod: gpu-10", 990)
    assert len(server.calls) == 11
    recorder.record(SET, "ScalingUp", "1000 pods", action="ScaleUp")
    await asyncio.sleep(1)
    assert server.told[-1] == ("ScalingUp", "1000 pods", 1)
    await recorder.stop(1)


@in_virtual_time
async def test_an_object_with_too_much_to_say_is_cut_short_and_others_are_not(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    for at in range(100):
        recorder.record(SET, f"Reason{at}", "text", action="Info")
    other = Ref("v1", "Pod", "slurm", "gpu-0")
    recorder.record(other, "Reason", "text", action="Info")
    await asyncio.sleep(1)
    assert len(server.kept) == 26
    assert recorder.stats.spam == 75
    await asyncio.sleep(300)
    recorder.record(SET, "Late", "text", action="Info")
    recorder.record(SET, "Later", "text", action="Info")
    await asyncio.sleep(1)
    assert [reason for reason, _, _ in server.told[26:]] == ["Late"]
    await recorder.stop(1)


@in_virtual_time
async def test_without_a_server_nothing_waits_and_little_is_kept(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server, Limits(waiting=50))
    server.fails = [Unreachable("away")] * 70
    for at in range(200):
        recorder.record(Ref("v1", "Pod", "slurm", f"gpu-{at}"), "Failed", "text", action="Info")
    assert clock.monotonic() == 0
    assert recorder.stats.dropped == 150
    await asyncio.sleep(30)
    assert len(server.kept) == 50
    assert await recorder.stop(1)


@in_virtual_time
async def test_what_the_server_refuses_is_dropped_and_logged_once(
    clock: LoopClock, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    server.fails = [BadRequest("Event gpu: refused", detail="action: Required value")] * 2
    for reason in ("A", "B", "C"):
        recorder.record(SET, reason, "text", action="Info")
    await asyncio.sleep(60)
    assert [reason for reason, _, _ in server.told] == ["C"]
    assert recorder.stats.dropped == 2
    assert len([r for r in caplog.records if "could not be written" in r.message]) == 1
    await recorder.stop(1)


@in_virtual_time
async def test_after_too_many_tries_it_is_dropped(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    server.fails = [Unreachable("away")] * 12
    recorder.record(SET, "A", "text", action="Info")
    await asyncio.sleep(300)
    assert (server.kept, len(server.calls), recorder.stats.dropped) == ({}, 12, 1)
    await recorder.stop(1)


@in_virtual_time
async def test_a_lost_answer_makes_no_second_event(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    server.unheard = True
    recorder.record(SET, "A", "text", action="Info")
    await asyncio.sleep(1)
    recorder.record(SET, "A", "text", action="Info")
    await asyncio.sleep(60)
    assert server.told == [("A", "text", 2)]
    await recorder.stop(1)


@in_virtual_time
async def test_an_event_that_the_server_forgot_is_told_anew(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    recorder.record(SET, "A", "text", action="Info")
    await asyncio.sleep(1)
    server.kept.clear()
    recorder.record(SET, "A", "text", action="Info")
    await asyncio.sleep(61)
    assert server.told == [("A", "text", 2)]
    await recorder.stop(1)


@in_virtual_time
async def test_stop_keeps_to_its_grace(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)

    async def hang(event: Event) -> None:
        await asyncio.get_running_loop().create_future()

    server.create = hang  # type: ignore[method-assign]
    recorder.record(SET, "A", "text", action="Info")
    await asyncio.sleep(1)
    assert not await recorder.stop(2)
    assert clock.monotonic() == 3


@in_virtual_time
async def test_at_rest_it_keeps_nothing_and_does_nothing(clock: LoopClock) -> None:
    server = Server(clock)
    recorder = recorder_of(server)
    for at in range(20):
        recorder.record(SET, "A", f"text {at}", action="Info")
    await asyncio.sleep(1e5)
    calls = len(server.calls)
    recorder.record(SET, "B", "text", action="Info")
    await asyncio.sleep(1)
    assert len(server.calls) == calls + 1
    assert len(recorder._told) == 1
    assert len(recorder._windows) == 1
    await recorder.stop(1)


@pytest.mark.parametrize(
    ("text", "limit", "found"),
    [
        ("short", 10, "short"),
        ("exactly ten"[:10], 10, "exactly te"),
        ("more than ten", 10, "more th…"),
        ("ééééé", 9, "ééé…"),
        ("a\x1b[31mb\tc\x00d\ne", 99, "a [31mb c d\ne"),
        ("\ud800", 10, " "),
    ],
)
def test_texts_are_cut_in_bytes_between_characters(text: str, limit: int, found: str) -> None:
    assert cut(text, limit) == found
    assert len(cut(text, limit).encode()) <= limit
