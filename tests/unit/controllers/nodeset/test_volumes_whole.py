"""Claims, pins, orphans and paddings under the whole operator, on the simulator with virtual time."""

from __future__ import annotations

from typing import Any

from slinkytui.backend.sim.nodesets import CLAIMS, NODESETS, PODS
from slinkytui.backend.sim.objects import BY_PLURAL
from tests.rules import holds
from tests.schedules.ground import SPACE, Ground
from tests.unit.controllers.virtual import in_virtual_time

REVISIONS = BY_PLURAL["apps", "controllerrevisions"]
DATA = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def spec(ground: Ground, **found: Any) -> None:
    ground.world.objects.change(NODESETS, (SPACE, "gpu"), {"spec": found})


def claims(ground: Ground) -> dict[str, str]:
    """The claims by name, with their UIDs: a new one under the same name is another."""
    return {name: found["metadata"]["uid"] for (_, name), found in ground.world.objects.all(CLAIMS, SPACE)}


def clear(ground: Ground) -> None:
    """Without the pods that the simulator began with: those mount no claims."""
    for name in ground.pods():
        ground.world.objects.drop(PODS, (SPACE, name))


@holds("W16")
@in_virtual_time
async def test_volumes_go_with_a_smaller_size_and_with_nothing_else() -> None:
    async with Ground(3).living() as ground:
        policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
        spec(ground, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
        clear(ground)
        await ground.start_operator()
        await ground.settled()
        first = claims(ground)
        assert sorted(first) == ["data-gpu-0", "data-gpu-1", "data-gpu-2"]
        ground.strategy(1)
        ground.template("slurmd:next")
        await ground.settled(900)
        assert claims(ground) == first, "an update keeps the data"
        node = next(p["spec"]["nodeName"] for p in ground.pods().values())
        ground.cordon(node)
        await ground.until(
            lambda: any(n.drain for n in ground.world.slurm.nodes.values()), 60, "the cordon is not seen"
        )
        ground.cordon(node, False)
        await ground.settled()
        assert claims(ground) == first, "so does a cordon"
        ground.scale(2)
        await ground.until(lambda: len(claims(ground)) == 2, 120, "the third claim stays")
        assert len(ground.pods()) == 2
        assert claims(ground).items() <= first.items()
        ground.scale(3)
        await ground.settled()
        assert sorted(claims(ground)) == sorted(first)
        assert ground.killed == []


@holds("W52", "W27", "C6", "R3")
@in_virtual_time
async def test_what_an_orphaning_deletion_leaves_is_taken_in_as_it_is() -> None:
    """`kubectl delete --cascade=orphan`, and the same NodeSet made again: nobody is restarted."""
    async with Ground(3).living() as ground:
        await ground.start_operator()
        await ground.settled()
        before = {name: pod["metadata"]["uid"] for name, pod in ground.pods().items()}

        def revisions() -> list[str]:
            return [name for (_, name), _ in ground.world.objects.all(REVISIONS, SPACE)]

        await ground.until(revisions, 30, "there is no revision")
        kept = revisions()
        await ground.end_operator()
        old = ground.nodeset()
        for served in (PODS, REVISIONS):
            for name, _ in list(ground.world.objects.all(served, SPACE)):
                ground.world.objects.change(served, name, {"metadata": {"ownerReferences": None}})
        ground.world.objects.change(NODESETS, (SPACE, "gpu"), {"metadata": {"uid": "made-anew"}, "status": {}})
        assert old["metadata"]["uid"] != "made-anew"
        await ground.start_operator()

        def is_ours(pod: dict[str, Any]) -> bool:
            return any(o["uid"] == "made-anew" for o in pod["metadata"].get("ownerReferences") or ())

        await ground.until(lambda: all(map(is_ours, ground.pods().values())), 60, "they are not adopted")
        await ground.settled()
        assert {name: pod["metadata"]["uid"] for name, pod in ground.pods().items()} == before
        assert revisions() == kept


@holds("W36")
@in_virtual_time
async def test_another_padding_renames_nobody() -> None:
    async with Ground(3).living() as ground:
        await ground.start_operator()
        await ground.settled()
        before = {name: pod["metadata"]["uid"] for name, pod in ground.pods().items()}
        spec(ground, ordinalPadding=3)
        await ground.until(lambda: ground.condition("Degraded").get("status") == "True", 30, "nobody says it")
        assert "spec.ordinalPadding 3 waits" in ground.condition("Degraded")["message"]
        ground.scale(4)
        await ground.settled()
        assert {name: p["metadata"]["uid"] for name, p in ground.pods().items() if name in before} == before
        assert sorted(ground.pods()) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
        ground.scale(0)
        await ground.until(lambda: not ground.pods(), 60, "they do not go")
        ground.scale(1)
        await ground.until(lambda: list(ground.pods()) == ["gpu-000"], 60, "the new padding is not followed")


@holds("W37")
@in_virtual_time
async def test_a_pinned_worker_waits_for_its_cordoned_machine() -> None:
    async with Ground(3).living() as ground:
        spec(ground, pinToNode=True)
        await ground.start_operator()
        await ground.settled()

        def pins() -> dict[str, str]:
            return dict((ground.nodeset().get("status") or {}).get("ordinalToNode") or {})

        await ground.until(lambda: len(pins()) == 3, 30, "nothing is pinned")
        first = pins()
        node = first["1"]
        ground.cordon(node)
        ground.world.objects.drop(PODS, (SPACE, "gpu-1"))
        await ground.until(lambda: "gpu-1" in ground.pods(), 60, "it is not made again")
        await ground.clock.sleep(30)
        assert pins() == first
        again = ground.pods()["gpu-1"]
        assert again["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        }


@holds("W40", "Q6", "Q19")
@in_virtual_time
async def test_another_sssd_conf_rolls_those_who_asked_for_it() -> None:
    async with Ground(2).living() as ground:
        secrets = BY_PLURAL["", "secrets"]
        kept = ground.world.objects.put(
            secrets, {"metadata": {"name": "sssd", "namespace": SPACE}, "data": {"conf": "YQ=="}}
        )
        spec(ground, ssh={"enabled": True, "sssdConfRef": {"name": "sssd", "key": "conf"}})
        await ground.start_operator()
        await ground.settled()

        def hashes() -> set[str]:
            return {
                p["metadata"]["annotations"].get("slinky.slurm.net/sssd-conf-hash", "") for p in ground.pods().values()
            }

        await ground.until(lambda: len(hashes()) == 1 and "" not in hashes(), 300, "the first roll does not end")
        (first,) = hashes()
        ground.world.objects.put(secrets, {**kept, "data": {"conf": "Yg=="}})
        await ground.clock.sleep(60)
        assert hashes() == {first}, "without being asked for nobody is restarted"
        note = {"metadata": {"annotations": {"tui.slinky.slurm.net/roll-on-config": "true"}}}
        ground.world.objects.change(NODESETS, (SPACE, "gpu"), note)
        await ground.until(lambda: first not in hashes() and len(hashes()) == 1, 600, "they keep the old file")
        await ground.settled()
        (second,) = hashes()
        ground.world.objects.put(secrets, {**kept, "data": {"conf": "Yw=="}})
        await ground.until(lambda: second not in hashes() and len(hashes()) == 1, 600, "the Secret is not watched")
        assert ground.killed == []
