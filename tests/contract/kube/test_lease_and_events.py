"""The runtime's lease and events on both API servers: preconditions, take-over, release, series, refusals."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from slinkytui.backend.clock import RealClock
from slinkytui.backend.controllers.gated import GatedTransport, put_off
from slinkytui.backend.controllers.leases import KubeLease, identity
from slinkytui.backend.controllers.recorder import KubeEvents
from slinkytui.backend.controllers.runtime.events import WARNING, Event, Recorder, Ref
from slinkytui.backend.controllers.runtime.gate import Gate, NotLeading
from slinkytui.backend.controllers.runtime.lease import Elector, LeaseRecord, Timings
from slinkytui.backend.errors import BadRequest, Conflict, NotAllowed, NotFound
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.errors import TooMany, classify
from slinkytui.backend.kube.resources import PODS
from tests.contract.kube.world import Hand, becomes, config, pod

QUICK = Timings(1.6, 1.2, 0.2)


def mine(holder: str = "me") -> LeaseRecord:
    now = float(int(time.time()))
    return LeaseRecord(holder, 15.0, now + 0.25, now + 0.5)


def lease_path(hand: Hand) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{hand.space}/leases/slurm-operator"


async def test_a_lease_is_made_once_and_changed_only_as_it_was_read(hand: Hand) -> None:
    lease = KubeLease(hand.client, hand.space)
    with pytest.raises(NotFound):
        await lease.read()
    made = await lease.create(mine())
    assert replace(made, version="") == mine()
    with pytest.raises(Conflict):
        await lease.create(mine("other"))
    renewed = await lease.replace(replace(made, renewed=made.renewed + 2))
    assert renewed == await lease.read()
    assert renewed.renewed == made.renewed + 2
    with pytest.raises(Conflict):
        await lease.replace(replace(made, holder="other"))
    assert (await lease.read()).holder == "me"


async def test_what_others_keep_in_the_lease_stays(hand: Hand) -> None:
    lease = KubeLease(hand.client, hand.space)
    made = await lease.create(mine())
    _, found = await hand.ask(
        "PATCH", lease_path(hand), {"metadata": {"labels": {"team": "hpc"}}}, kind="application/merge-patch+json"
    )
    with pytest.raises(Conflict):
        await lease.replace(made)
    await lease.replace(replace(made, version=found["metadata"]["resourceVersion"]))
    _, found = await hand.ask("GET", lease_path(hand))
    assert found["metadata"]["labels"] == {"team": "hpc"}


async def test_it_stands_there_in_the_usual_form(hand: Hand) -> None:
    await KubeLease(hand.client, hand.space).create(replace(mine("host_uid"), transitions=4))
    _, found = await hand.ask("GET", lease_path(hand))
    assert set(found["spec"]) == {
        "holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions",
    }  # fmt: skip
    assert found["spec"]["acquireTime"].endswith(".250000Z")
    assert (found["spec"]["leaseDurationSeconds"], found["spec"]["leaseTransitions"]) == (15, 4)


async def test_two_candidates_and_the_second_takes_over_when_the_first_gives_up(hand: Hand) -> None:
    clock = RealClock()
    first, second = (Elector(KubeLease(hand.client, hand.space), identity(), clock, timings=QUICK) for _ in range(2))
    await first.acquire()
    holding, waiting = asyncio.create_task(first.hold()), asyncio.create_task(second.acquire())

    async def renewed() -> bool:
        assert not waiting.done()
        found = second.view()
        return found.holder == first.identity and found.renewed > time.time() - 1 and first.left() > 0

    await becomes(renewed)
    holding.cancel()
    await asyncio.wait([holding])
    await first.release()
    assert first.left() == 0
    await asyncio.wait_for(waiting, 5)
    assert second.left() > 0
    await second.release()
    _, found = await hand.ask("GET", lease_path(hand))
    assert (found["spec"].get("holderIdentity") or "", found["spec"]["leaseTransitions"]) == ("", 1)


async def test_the_second_takes_over_from_one_that_is_dead(hand: Hand) -> None:
    clock = RealClock()
    first, second = (Elector(KubeLease(hand.client, hand.space), identity(), clock, timings=QUICK) for _ in range(2))
    await first.acquire()
    begun = clock.monotonic()
    await asyncio.wait_for(second.acquire(), 10)
    assert first.left() <= 0
    assert clock.monotonic() - begun > QUICK.deadline_s
    assert not await first._attempt(first._renew())
    assert first.left() == 0


async def test_who_may_only_read_waits_with_the_reason(reader: Hand) -> None:
    elector = Elector(KubeLease(reader.client, reader.space), "me", RealClock(), timings=QUICK)
    waiting = asyncio.create_task(elector.acquire())

    async def told() -> bool:
        return "cannot create resource" in elector.view().error

    await becomes(told)
    waiting.cancel()
    await elector.release()


def event_of(hand: Hand, **more: object) -> Event:
    found = Event(
        "gpu.1", Ref("slinky.slurm.net/v1beta1", "NodeSet", hand.space, "gpu", "uid-1"), WARNING, "NodeCordon",
        "Cordon", "Cordoning Pod a/b", 1_800_000_000.25, 1_800_000_000.25,
        related=Ref("v1", "Pod", hand.space, "gpu-0", "uid-2"),
    )  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]


async def core_events(hand: Hand) -> list[dict[str, object]]:
    _, found = await hand.ask("GET", f"/api/v1/namespaces/{hand.space}/events")
    return list(found["items"])


async def test_events_are_taken_and_counted(hand: Hand) -> None:
    sink = KubeEvents(hand.client, "nodeset-controller", "host_uid")
    await sink.create(event_of(hand))
    (found,) = await core_events(hand)
    assert {k: found[k] for k in ("reason", "action", "type", "message", "reportingComponent")} == {
        "reason": "NodeCordon", "action": "Cordon", "type": "Warning", "message": "Cordoning Pod a/b",
        "reportingComponent": "nodeset-controller",
    }  # fmt: skip
    assert found["involvedObject"] == {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "namespace": hand.space, "name": "gpu",
        "uid": "uid-1",
    }  # fmt: skip
    with pytest.raises(Conflict):
        await sink.create(event_of(hand))
    await sink.count(event_of(hand, count=7, last=1_800_000_060.5))
    (found,) = await core_events(hand)
    assert found["series"] == {"count": 7, "lastObservedTime": "2027-01-15T08:01:00.500000Z"}
    with pytest.raises(NotFound):
        await sink.count(event_of(hand, name="gone", count=2))
    await sink.create(event_of(hand, name="whole", count=3, last=1_800_000_060.0))


async def test_whatever_is_recorded_is_taken(hand: Hand) -> None:
    clock = RealClock()
    recorder = Recorder(KubeEvents(hand.client, "nodeset-controller", "i" * 300), clock)
    about = Ref("v1", "ConfigMap", hand.space, "c" * 240)
    recorder.record(about, "R" * 200, "ü" * 5000, action="")
    recorder.record(about, "Scheduled Update", "a\x00b\x1b[0m %s {}\nc", action="Scheduled Update", type=WARNING)
    recorder.record(Ref("v1", "Node", "", "n1"), "NodeCordon", hand.space, action="Cordon")
    for _ in range(3):
        recorder.record(about, "Again", "text", action="Info")
    assert await recorder.stop(20)
    assert (recorder.stats.written, recorder.stats.dropped) == (4, 0)
    by_reason = {e["reason"]: e for e in await core_events(hand)}
    assert len(str(by_reason["R" * 125 + "…"]["message"]).encode()) <= 1024
    assert by_reason["Scheduled Update"]["message"] == "a b [0m %s {}\nc"
    assert by_reason["Again"]["series"]["count"] == 3  # type: ignore[index]
    _, found = await hand.ask("GET", "/api/v1/namespaces/default/events")
    assert hand.space in [e["message"] for e in found["items"]]


async def test_what_cannot_be_taken_is_dropped(hand: Hand, reader: Hand) -> None:
    recorder = Recorder(KubeEvents(reader.client, "nodeset-controller", "i"), RealClock())
    recorder.record(Ref("v1", "Pod", hand.space, "a"), "A", "text", action="Info")
    assert await recorder.stop(20)
    assert recorder.stats.dropped == 1
    assert await core_events(hand) == []


class Switch:
    slack_s = 1.0

    def __init__(self) -> None:
        self.seconds = 5.0

    def left(self) -> float:
        return self.seconds


async def test_behind_the_gate_nothing_is_written_without_the_lease(hand: Hand) -> None:
    leading = Switch()
    gated = Hand(hand.world, hand.space, GatedTransport(hand.wire, Gate(leading, RealClock())))
    await gated.make(gated.maps, config("kept"))
    made = await gated.make(gated.pods, pod("p"))
    leading.seconds = 0.0
    for method, path in (("POST", gated.maps), ("PUT", f"{gated.maps}/kept"), ("PATCH", f"{gated.maps}/kept"),
                         ("DELETE", f"{gated.maps}/kept")):  # fmt: skip
        with pytest.raises(NotLeading):
            await gated.ask(method, path, config("kept", a="1"))
    client: KubeClient = gated.client
    with pytest.raises(NotLeading):
        await client.delete(PODS, gated.space, "p", made["metadata"]["uid"])
    assert (await gated.ask("GET", f"{gated.maps}/kept"))[0] == 200
    assert await client.may("get", PODS, gated.space) == await hand.client.may("get", PODS, gated.space)


def test_only_a_server_with_too_much_to_do_puts_off() -> None:
    busy = classify("pod a", 429, b"Too many requests, please try again later.")
    told = classify("pod a", 429, b'{"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}')
    budget = classify("pod a", 429, b'{"details":{"causes":[{"reason":"DisruptionBudget"}]}}')
    assert isinstance(budget, TooMany)
    assert [put_off(e) for e in (busy, told, budget, BadRequest("x"), NotAllowed("x"))] == [1.0, 7.0, None, None, None]
