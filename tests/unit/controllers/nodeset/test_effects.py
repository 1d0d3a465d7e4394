"""A decision carried out against servers: what they are asked, what is done when they refuse, and what is said of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jwt
import msgspec

from slinkytui.backend.controllers.nodeset.decision import (
    CreatePod,
    DeletePod,
    DeleteRecord,
    Drain,
    Effect,
    ForgetRevision,
    PatchPod,
    PatchStatus,
    PodConditions,
    Undrain,
    UpdateNode,
)
from slinkytui.backend.controllers.nodeset.effects_slurm import SlurmHand
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.runtime.breaker import Breaker
from slinkytui.backend.controllers.runtime.gate import Alone, Gate
from slinkytui.backend.controllers.runtime.pool import Limiter, Pool
from slinkytui.backend.errors import Unreachable
from slinkytui.backend.http import CoreTransport, Request, Response
from slinkytui.backend.sim.slurm import SlurmSim
from slinkytui.backend.sim.slurmnode import SimNode
from slinkytui.backend.sim.slurmrest import SlurmRest
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.tokens import StaticToken
from tests.rules import holds
from tests.unit.controllers.nodeset.desk import Builder, Desk
from tests.unit.controllers.nodeset.worlds import pod, record, slurm, world
from tests.unit.controllers.virtual import in_virtual_time

STATUS = {"nodeSetHash": "new", "selector": "a=b"}
OURS = "slurm-operator: Pod (slurm/gpu-0) is pending termination for scale-in"


class Place(Desk):
    """With a slurmrestd of the simulator. `asked` are the requests to it; `turn` may answer in its place."""

    def __init__(self, *hosts: str) -> None:
        super().__init__()
        self.cluster = SlurmSim("c", random.Random(1), self.clock.now())
        for name in hosts or ("gpu-0",):
            self.cluster.register(SimNode(name, 4, 1000, "", [], (), self.clock.now()))
        rest = SlurmRest(self.cluster, b"k" * 32)
        self.asked: list[str] = []
        self.turn: Callable[[Request], Response | None] = lambda _: None

        async def handle(request: Request) -> Response:
            self.asked.append(f"{request.method} {request.path.split('/', 3)[3]}")
            return self.turn(request) or await rest.handle(request)

        token = jwt.encode({"sun": "root", "exp": int(self.clock.now()) + 10**6}, b"k" * 32, algorithm="HS256")
        self.slurm = SlurmClient(CoreTransport(handle), StaticToken(token), self.clock, cluster="c")
        self.slurm.version = "v0.0.45"

    async def _handle(self, request: Request) -> Response:
        if request.method == "POST" and b'"image":""' in request.body.replace(b" ", b""):
            words = 'Pod "gpu-0" is invalid: spec.containers[0].image: Required value'
            return Response(422, json.dumps({"kind": "Status", "reason": "Invalid", "message": words}).encode())
        return await super()._handle(request)

    def written(self) -> list[str]:
        return [a for a in self.asked if not a.startswith("GET")]


def refusing(*names: str, code: int = 2010, words: str = "Invalid user id") -> Callable[[Request], Response | None]:
    said = {"errors": [{"error_number": code, "error": words}], "meta": {"slurm": {"release": "26.05.5"}}}

    def turn(request: Request) -> Response | None:
        hit = request.method != "GET" and request.path.rsplit("/", 1)[1] in names
        return Response(422, json.dumps(said).encode()) if hit else None

    return turn


def update(name: str) -> UpdateNode:
    return UpdateNode(name, {"comment": "x"}, "who it is")


@holds("L3", "X11")
@in_virtual_time
async def test_a_plain_node_is_drained_and_a_drained_one_keeps_its_words() -> None:
    place, one = Place("gpu-0", "gpu-1"), pod(0)
    other = place.cluster.nodes["gpu-1"]
    other.drain, other.reason = True, "bad gpu"
    await place.carry_out(world(one), [Drain(one, "gpu-0", OURS), Drain(pod(1), "gpu-1", OURS)])
    assert (place.cluster.nodes["gpu-0"].drain, place.cluster.nodes["gpu-0"].reason) == (True, OURS)
    assert other.reason == "bad gpu"


@holds("L4", "W53", "X11")
@in_virtual_time
async def test_only_a_drain_of_ours_is_lifted() -> None:
    place = Place("gpu-0", "gpu-1", "gpu-2")
    for name, reason in (("gpu-0", OURS), ("gpu-1", "bad gpu")):
        place.cluster.nodes[name].drain, place.cluster.nodes[name].reason = True, reason
    await place.carry_out(world(pod(0)), [Undrain(pod(n), f"gpu-{n}") for n in range(4)])
    assert [place.cluster.nodes[f"gpu-{n}"].drain for n in range(3)] == [False, True, False]
    assert place.written() == ["POST node/gpu-0"]


@in_virtual_time
async def test_what_a_pass_changes_in_slurm_is_told_by_the_next_one() -> None:
    """Conditions from before a drain or its end would have to be written twice; where Slurm refused they are still true."""
    place, pods = Place("gpu-0", "gpu-1", "gpu-2"), [pod(n) for n in range(3)]
    for one in pods:
        place.put("pods", one.id.name, uid=one.meta.uid)
    place.cluster.nodes["gpu-0"].drain, place.cluster.nodes["gpu-0"].reason = True, OURS
    place.turn = refusing("gpu-1")
    acts: list[Effect] = [Undrain(pods[0], "gpu-0"), Drain(pods[1], "gpu-1", OURS), Drain(pods[2], "gpu-2", OURS)]
    out = await place.carry_out(world(*pods), [*acts, *(PodConditions(p, (("SlurmNodeStateIdle", ""),)) for p in pods)])
    assert [d.text for d in out.did if d.text.startswith("conditions")] == ["conditions of pod gpu-1"]


@holds("L20")
@in_virtual_time
async def test_a_record_goes_only_while_it_is_silent() -> None:
    place = Place("gpu-0", "gpu-1")
    place.cluster.nodes["gpu-0"].down, place.cluster.nodes["gpu-0"].responding = True, False
    await place.carry_out(
        world(replicas=0), [DeleteRecord("gpu-0", "gone"), DeleteRecord("gpu-1", "gone"), DeleteRecord("gpu-9", "gone")]
    )
    assert list(place.cluster.nodes) == ["gpu-1"]


@holds("W23", "K5", "X7")
@in_virtual_time
async def test_a_drain_that_was_lifted_meanwhile_keeps_the_worker() -> None:
    place = Place()
    held = place.put("pods", "gpu-0", spec={"containers": [{"name": "slurmd", "image": "x"}]})
    one = pod(0)
    out = await place.carry_out(world(one), [DeletePod(one, "gpu-0", "scale-in: drained, and no job on it")])
    assert place.get("pods", "gpu-0")["metadata"]["uid"] == held["metadata"]["uid"]
    assert "not drained" in out.retry


@holds("W1", "K6")
@in_virtual_time
async def test_without_a_client_nobody_is_deleted() -> None:
    place = Place()
    place.slurm, one = None, pod(0)
    out = await place.carry_out(world(one), [DeletePod(one, "gpu-0", "scale-in")])
    assert place.sent == []
    assert "no client" in out.retry


@holds("W59", "X20")
@in_virtual_time
async def test_one_refused_write_stops_nothing_and_is_said_with_the_servers_words() -> None:
    place, hosts = Place("gpu-0", "gpu-1", "gpu-2"), ("gpu-0", "gpu-1", "gpu-2")
    place.put("nodesets", "gpu")
    place.turn = refusing("gpu-1")
    found = at(place, world())
    out = await place.carry_out(
        found, [PatchStatus({**STATUS, "replicas": 3}), CreatePod(7), *(update(h) for h in hosts)]
    )
    assert [place.cluster.nodes[h].comment for h in hosts] == ["x", "", "x"]
    assert place.get("pods", "gpu-7")
    assert out.retry == ""
    status = place.get("nodesets", "gpu")["status"]
    assert status["replicas"] == 3
    (one,) = status["conditions"]
    assert (one["type"], one["status"], one["reason"]) == ("Degraded", "True", "Refused")
    assert "gpu-1" in one["message"] and "Invalid user id" in one["message"]


@holds("W59")
@in_virtual_time
async def test_the_refused_do_not_keep_the_others_from_their_turn() -> None:
    bad, good = [f"gpu-{n}" for n in range(100)], [f"gpu-{n}" for n in range(100, 110)]
    place = Place(*bad, *good)
    place.turn = refusing(*bad)
    out = await place.carry_out(world(), [update(h) for h in (*bad, *good)])
    assert [place.cluster.nodes[h].comment for h in good] == ["x"] * 10
    assert not out.more, "or the same ones are asked for again at once, for ever"


@holds("W60", "X21")
@in_virtual_time
async def test_what_the_api_server_refuses_is_on_the_condition_and_told_once() -> None:
    place = Place()
    place.put("nodesets", "gpu")
    found = at(place, world(replicas=1, status=STATUS))
    await place.carry_out(found, [CreatePod(0)], NoImage())
    (one,) = place.get("nodesets", "gpu")["status"]["conditions"]
    assert one["reason"] == "Refused"
    assert "image" in one["message"] and "from spec.slurmd.image of the NodeSet" in one["message"]
    assert [(t.reason, t.warning) for t in place.told] == [("Refused", True)]
    place.sent.clear()
    again = at(place, world(replicas=1, status=place.get("nodesets", "gpu")["status"]))
    await place.carry_out(again, [CreatePod(0)], NoImage())
    assert len(place.told) == 1
    assert not [s for s in place.sent if "status" in s or s.startswith("PATCH")]


@holds("W48")
@in_virtual_time
async def test_a_generation_whose_worker_could_not_be_made_is_not_observed() -> None:
    place = Place()
    place.put("nodesets", "gpu")
    found = at(place, world(replicas=1, status={**STATUS, "observedGeneration": 2}))
    await place.carry_out(found, [CreatePod(0), PatchStatus({**STATUS, "observedGeneration": 3})], NoImage())
    assert place.get("nodesets", "gpu").get("status", {}).get("observedGeneration") != 3


@holds("W21")
@in_virtual_time
async def test_what_the_kubelet_wrote_meanwhile_stays() -> None:
    place = Place()
    made = place.put("pods", "gpu-0", status={"conditions": [{"type": "Ready", "status": "False"}]})
    one = like(made)
    place.put("pods", "gpu-0", {**made["metadata"]}, status={"conditions": [{"type": "Ready", "status": "True"}]})
    await place.carry_out(world(one), [PodConditions(one, (("SlurmNodeStateIdle", ""),))])
    held = {c["type"]: c["status"] for c in place.get("pods", "gpu-0")["status"]["conditions"]}
    assert held == {"Ready": "True", "SlurmNodeStateIdle": "True"}


@holds("T8", "X9")
@in_virtual_time
async def test_a_status_of_a_nodeset_that_is_gone_is_no_error() -> None:
    out = await Place().carry_out(world(), [PatchStatus({"replicas": 0})])
    assert [(d.text, d.error) for d in out.did] == [("status", "")]


@holds("W62", "X32")
@in_virtual_time
async def test_a_status_that_is_right_is_not_written() -> None:
    place = Place()
    await place.carry_out(world(status={"replicas": 2}), [PatchStatus({"replicas": 2})])
    assert place.sent == []


@holds("W61")
@in_virtual_time
async def test_records_are_written_side_by_side() -> None:
    hosts = [f"gpu-{n}" for n in range(40)]
    place = Place(*hosts)
    began = place.clock.monotonic()
    await place.carry_out(world(), [update(h) for h in hosts])
    assert place.clock.monotonic() - began < 1.0
    assert len(place.written()) == 40


@holds("W47")
@in_virtual_time
async def test_many_workers_are_looked_at_in_one_list() -> None:
    hosts = [f"gpu-{n}" for n in range(30)]
    place, pods = Place(*hosts), [pod(n) for n in range(30)]
    await place.carry_out(world(*pods), [DeletePod(p, p.id.name, "scale-in") for p in pods])
    assert [a.rstrip("/") for a in place.asked] == ["GET nodes", "GET jobs/state"]


@holds("W46")
@in_virtual_time
async def test_a_slurmrestd_that_is_away_is_asked_a_few_times_and_holds_up_nothing() -> None:
    place = Place()
    place.turn = lambda _: Response(503, b"no endpoints")
    breaker, pool = Breaker("slurmrestd", place.clock), Pool(Limiter(place.clock), place.clock)
    hand = SlurmHand(place.slurm, Gate(Alone(), place.clock), pool, breaker)
    one = pod(0)
    for _ in range(3):
        (result,) = await pool.run_all([Drain(one, "gpu-0", OURS)], hand.drain)
        assert isinstance(result.error, Unreachable)
    asked, began = len(place.asked), place.clock.monotonic()
    for _ in range(100):
        verdict = (await hand.verdicts(world(one), [DeletePod(one, "gpu-0", "scale-in")]))[one.meta.uid]
        assert verdict.answer.value == "unknown"
    assert len(place.asked) == asked
    assert place.clock.monotonic() - began < 0.1


@holds("W46")
@in_virtual_time
async def test_a_pass_without_slurm_makes_the_workers_all_the_same() -> None:
    place = Place()
    place.turn = lambda _: Response(503, b"no endpoints")
    one = pod(0)
    effects: list[Effect] = [CreatePod(5), Drain(one, "gpu-0", OURS), *(update(f"gpu-{n}") for n in range(500))]
    out = await place.carry_out(world(one), effects)
    assert place.get("pods", "gpu-5")
    assert "slurmctld does not answer" in out.retry or "slurmrestd" in out.retry
    assert not out.more


@holds("W22")
@in_virtual_time
async def test_a_call_without_an_answer_ends() -> None:
    place = Place()

    async def silent(_: Request) -> Response:
        await place.clock.sleep(10**6)
        return Response(200, b"")

    client = SlurmClient(CoreTransport(silent), StaticToken("t"), place.clock, cluster="c")
    client.version = "v0.0.45"
    hand = SlurmHand(
        client, Gate(Alone(), place.clock), Pool(Limiter(place.clock), place.clock), Breaker("slurmrestd", place.clock)
    )
    began = place.clock.monotonic()
    one = pod(0)
    assert (await hand.verdicts(world(one), [DeletePod(one, "gpu-0", "x")]))[one.meta.uid].answer.value == "unknown"
    assert place.clock.monotonic() - began < 60


@holds("W54")
@in_virtual_time
async def test_a_node_that_a_job_has_taken_since_the_last_look_keeps_its_worker() -> None:
    """The caches still say idle and drained; the record that is read right before says allocated."""
    place, one = Place(), pod(0)
    node = place.cluster.nodes["gpu-0"]
    node.drain, node.reason = False, ""
    found = world(one, slurm_side=slurm(record(0, "IDLE", "DRAIN", reason=OURS)))
    out = await place.carry_out(found, [DeletePod(one, "gpu-0", "scale-in: drained")])
    assert place.sent == []
    assert out.retry


@holds("H10", "X9")
@in_virtual_time
async def test_what_is_deleted_goes_by_its_uid_and_what_is_gone_is_no_error() -> None:
    place = Place()
    made = place.put("controllerrevisions", "gpu-a", revision=1)
    other = place.put("controllerrevisions", "gpu-b", revision=2)
    effects: list[Effect] = [
        ForgetRevision("gpu-a", made["metadata"]["uid"]),
        ForgetRevision("gpu-c", "gone"),
        DeletePod(pod(0), "gpu-0", "x", ended=True),
    ]
    out = await place.carry_out(world(), effects)
    assert [d.error for d in out.did] == ["", "", ""]
    assert not place.get("controllerrevisions", "gpu-a")
    await place.carry_out(world(), [ForgetRevision("gpu-b", "another")])
    assert place.get("controllerrevisions", "gpu-b")["metadata"]["uid"] == other["metadata"]["uid"]


@holds("H11")
@in_virtual_time
async def test_marks_are_stored_and_only_on_the_pod_that_was_looked_at() -> None:
    place = Place()
    made = place.put("pods", "gpu-0")
    one = like(made)
    await place.carry_out(world(one), [PatchPod(one, {"a": "b"}, {"c": "d"}, guarded=False)])
    meta = place.get("pods", "gpu-0")["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"a": "b"}, {"c": "d"})
    out = await place.carry_out(world(pod(0)), [PatchPod(pod(0), {"a": "z"}, guarded=False)])
    assert place.get("pods", "gpu-0")["metadata"]["labels"] == {"a": "b"}
    assert out.retry


@holds("T8")
@in_virtual_time
async def test_a_status_that_the_server_refuses_is_said() -> None:
    place = Place()
    place.put("nodesets", "gpu")
    out = await place.carry_out(at(place, world()), [PatchStatus({"replicas": 1})])
    assert "status.selector: Required value" in out.did[0].error


class NoImage(Builder):
    def pod(self, new: CreatePod) -> dict[str, Any]:
        made = super().pod(new)
        made["spec"]["containers"][0]["image"] = ""
        return made


def at(place: Desk, found: World) -> World:
    """The NodeSet as the server has it."""
    return replace(found, uid=place.get("nodesets", "gpu")["metadata"]["uid"])


def like(made: dict[str, Any]) -> Any:
    one = pod(0)
    return msgspec.structs.replace(
        one, meta=msgspec.structs.replace(one.meta, uid=made["metadata"]["uid"]), conditions=()
    )
