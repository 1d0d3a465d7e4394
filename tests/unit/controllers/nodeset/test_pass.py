"""One pass as a whole: every effect gets its turn, and what fails is named, once each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slinkytui.backend.controllers.nodeset.decision import DeletePod, Drain, Effect, PatchPod, UpdateNode
from slinkytui.backend.models import Pod
from tests.rules import case, holds
from tests.unit.controllers.nodeset.test_effects import OURS, STATUS, Place, at, refusing
from tests.unit.controllers.nodeset.worlds import pod, world
from tests.unit.controllers.virtual import in_virtual_time

HOSTS = ("gpu-0", "gpu-1", "gpu-2")
POD = {"spec": {"containers": [{"name": "slurmd", "image": "x"}]}}


def updates(*hosts: str) -> list[Effect]:
    return [UpdateNode(h, {"comment": "x"}, "who it is") for h in hosts]


def stored(place: Place, one: Pod) -> Pod:
    """The pod as the server has it."""
    made = place.put("pods", one.id.name, **POD)["metadata"]
    return replace(one, meta=replace(one.meta, uid=made["uid"], version=made["resourceVersion"]))


CASES = [
    case("S1", "all went well", HOSTS, (), []),
    case("S2", "nothing to do", (), (), []),
    case("S3", "one failed: named, with its cause", HOSTS, ("gpu-1",), ["gpu-1"]),
    case("S4 X30", "all failed: all were tried, each is said", HOSTS, HOSTS, list(HOSTS)),
    case("S7", "the last failed after the others went well", HOSTS, ("gpu-2",), ["gpu-2"]),
]


@pytest.mark.parametrize(("asked", "refused", "failed"), CASES)
@in_virtual_time
async def test_each_gets_its_turn_and_each_failure_is_said(
    asked: tuple[str, ...], refused: tuple[str, ...], failed: list[str]
) -> None:
    place = Place(*HOSTS)
    place.put("nodesets", "gpu", status=STATUS)
    place.turn = refusing(*refused)
    out = await place.carry_out(at(place, world(status=STATUS)), updates(*asked))
    assert [place.cluster.nodes[h].comment for h in asked] == ["" if h in failed else "x" for h in asked]
    said = {d.text: d.error for d in out.did if d.error}
    assert list(said) == [f"update {h}: who it is" for h in failed]
    assert all("Invalid user id" in error for error in said.values())
    assert [t.reason for t in place.told] == ["Refused"] * len(failed)


@holds("S5", "N16", "K6")
@in_virtual_time
async def test_a_note_that_cannot_be_written_keeps_its_pod_from_all_that_follows() -> None:
    place = Place("gpu-0", "gpu-1")
    place.put("pods", "gpu-0", **POD)  # another one of this name
    gone, there = pod(0), stored(place, pod(1))
    notes = [PatchPod(p, {"nodeset.slinky.slurm.net/pod-cordon": "true"}) for p in (gone, there)]
    out = await place.carry_out(
        world(gone, there),
        [*notes, *(Drain(p, p.id.name, OURS) for p in (gone, there)), DeletePod(gone, "gpu-0", "drained")],
    )
    assert gone.meta.uid in out.failed
    assert [place.cluster.nodes[h].drain for h in ("gpu-0", "gpu-1")] == [False, True]
    assert any(d.text == "mark pod gpu-0" and d.error for d in out.did)


@holds("K7", "N17", "N20")
@in_virtual_time
async def test_a_drain_that_slurm_refuses_is_an_error_and_keeps_the_pod() -> None:
    place = Place()
    place.put("nodesets", "gpu")
    one = stored(place, pod(0))
    place.turn = refusing("gpu-0")
    out = await place.carry_out(world(one), [Drain(one, "gpu-0", OURS), DeletePod(one, "gpu-0", "scale-in")])
    assert place.get("pods", "gpu-0")
    assert any(d.text == "drain gpu-0" and "Invalid user id" in d.error for d in out.did)
