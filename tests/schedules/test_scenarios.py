"""What users fear most, on the simulator with virtual time: no job is killed, whatever happens."""

from __future__ import annotations

import os

from slinkytui.backend.sim.nodesets import PODS
from tests.rules import holds
from tests.schedules.ground import Ground, is_ready
from tests.unit.controllers.virtual import in_virtual_time


@in_virtual_time
async def test_the_watcher_sees_a_job_that_dies_with_its_pod() -> None:
    """The ground can tell: a busy pod that somebody deletes by hand kills its job."""
    async with Ground(2).living() as ground:
        job = ground.job(60)
        await ground.until(lambda: job.state == "RUNNING", 30, "the job does not run")
        ground.world.objects.drop(PODS, ("slurm", next(iter(job.nodes))))
        await ground.until(lambda: ground.killed, 30, "nobody saw it")
        assert ground.killed == [job.id]


@holds("E1")
@in_virtual_time
async def test_a_new_nodeset_has_exactly_its_workers() -> None:
    async with Ground(3).living() as ground:
        for name in list(ground.pods()):
            ground.world.objects.drop(PODS, ("slurm", name))
        await ground.start_operator()
        await ground.settled()
        await ground.clock.sleep(60)
        assert sorted(ground.pods()) == ["gpu-0", "gpu-1", "gpu-2"]


@holds("E2")
@in_virtual_time
async def test_workers_that_never_came_up_leave_at_once() -> None:
    async with Ground(3).living() as ground:
        await ground.start_operator()
        await ground.settled()
        ground.strategy("100%")
        ground.template("slurmd:missing")
        await ground.until(lambda: not any(map(is_ready, ground.pods().values())), 300, "they are still ready")
        ground.world.slurm.nodes.clear()
        ground.scale(0)
        await ground.until(lambda: not ground.pods(), 120, "they stay")


@holds("E3")
@in_virtual_time
async def test_idle_workers_are_drained_before_they_go() -> None:
    async with Ground(2).living() as ground:
        await ground.start_operator()
        await ground.settled()
        asked: list[tuple[str, str]] = []
        ground.listeners.append(lambda r: asked.append((r.method, r.path.rsplit("/", 1)[1])))
        ground.scale(0)
        await ground.until(lambda: not ground.pods(), 60, "they stay")
        for name in ("gpu-0", "gpu-1"):
            assert asked.index(("POST", name)) < asked.index(("DELETE", name))


@holds("W1")
@in_virtual_time
async def test_scale_in_waits_for_the_jobs_of_those_that_leave() -> None:
    async with Ground(6).living() as ground:
        await ground.start_operator()
        await ground.settled()
        jobs = [ground.job(5) for _ in range(6)]
        await ground.until(lambda: all(j.state == "RUNNING" for j in jobs), 60, "the jobs do not run")
        ground.scale(2)
        await ground.until(lambda: ground.condition("Draining").get("status") == "True", 30, "nobody drains")
        assert len(ground.pods()) == 6
        reasons = [n.reason for n in ground.world.slurm.nodes.values() if n.drain]
        assert len(reasons) == 4
        assert all(r.startswith("slurm-operator: Pod (slurm/gpu-") for r in reasons)
        await ground.until(lambda: len(ground.pods()) == 2, 900, "they do not leave")
        assert [j.state for j in jobs] == ["COMPLETED"] * 6
        assert ground.killed == []


@in_virtual_time
async def test_an_idle_node_is_acted_on_within_two_seconds_of_its_last_job() -> None:
    async with Ground(2).living() as ground:
        await ground.start_operator()
        await ground.settled()
        job = ground.job(3)
        await ground.until(lambda: job.state == "RUNNING", 30, "the job does not run")
        ground.scale(0)
        await ground.until(lambda: len(ground.pods()) == 1, 60, "the idle one stays")
        (node,) = (ground.world.slurm.nodes[name] for name in job.nodes)
        await ground.until(lambda: not node.jobs, 400, "the node does not get idle")
        last = f"DELETE /api/v1/namespaces/slurm/pods/{next(iter(ground.pods()))}"
        assert await ground.until(lambda: last in ground.requests, 30, "the last one stays") <= 2.0
        assert ground.killed == []


SIZE = 100 if os.environ.get("SLINKYTUI_NIGHTLY") else 20
"""Workers of the rolling update: a hundred take a minute or two."""


@in_virtual_time
async def test_a_rolling_update_under_load() -> None:
    async with Ground(SIZE).living() as ground:
        ground.strategy("10%")
        await ground.start_operator()
        await ground.settled()
        jobs = [ground.job(1 + i % 4) for i in range(SIZE)]
        await ground.until(lambda: sum(j.state == "RUNNING" for j in jobs) > SIZE * 0.8, 120, "the jobs do not run")
        ground.most_away = 0
        ground.template("slurmd:26.05.1")
        await ground.settled(3600)
        assert ground.most_away <= SIZE // 10
        assert ground.killed == []
        assert {j.state for j in jobs} == {"COMPLETED"}


@in_virtual_time
async def test_a_broken_image_stops_at_the_budget_and_heals_by_going_back() -> None:
    async with Ground(10).living() as ground:
        ground.strategy(2)
        await ground.start_operator()
        await ground.settled()
        ground.world.settings.change({"pods.delay": 10**9})
        ground.template("slurmd:broken")
        await ground.clock.sleep(900)
        old = [p for p in ground.pods().values() if p["spec"]["containers"][0]["image"] != "slurmd:broken"]
        assert len(old) == 8
        assert "2 of 10 are away, 2 may be" in ground.condition("Progressing")["message"]
        ground.template("slurmd:26.05")
        ground.world.settings.change({"pods.delay": 0})
        await ground.settled(900)
        assert ground.killed == []


@in_virtual_time
async def test_a_cordon_drains_within_two_seconds_and_its_end_lifts_only_that() -> None:
    async with Ground(3).living() as ground:
        await ground.start_operator()
        await ground.settled()
        nodes = ground.world.slurm.nodes
        ground.drain("gpu-1", "bad gpu")
        ground.cordon("node-gpu-0")
        ground.cordon("node-gpu-1")
        assert await ground.until(lambda: nodes["gpu-0"].drain, 10, "it does not drain") <= 2.0
        assert nodes["gpu-0"].reason.startswith("slurm-operator: Node (node-gpu-0) was cordoned")
        await ground.clock.sleep(30)
        assert nodes["gpu-1"].reason == "bad gpu"
        ground.cordon("node-gpu-0", False)
        ground.cordon("node-gpu-1", False)
        await ground.until(lambda: not nodes["gpu-0"].drain, 30, "it is not lifted")
        await ground.clock.sleep(60)
        assert (nodes["gpu-1"].drain, nodes["gpu-1"].reason) == (True, "bad gpu")


@in_virtual_time
async def test_a_foreign_drain_survives_scale_in_cancel_update_and_restart() -> None:
    async with Ground(4).living() as ground:
        await ground.start_operator()
        await ground.settled()
        job = ground.job(20, nodes=4)
        await ground.until(lambda: job.state == "RUNNING", 60, "the job does not run")
        node = ground.world.slurm.nodes["gpu-3"]
        ground.drain("gpu-3", "bad gpu")
        ground.scale(1)
        await ground.until(lambda: ground.condition("Draining").get("status") == "True", 30, "nobody drains")
        await ground.end_operator(kill=True)
        await ground.start_operator()
        ground.scale(4)
        await ground.until(lambda: ground.condition("Draining").get("status") == "False", 60, "it still drains")
        ground.template("slurmd:26.05.1")
        await ground.clock.sleep(60)
        ground.template("slurmd:26.05")
        await ground.clock.sleep(60)
        assert (node.drain, node.reason) == (True, "bad gpu")
        assert not any(n.drain for name, n in ground.world.slurm.nodes.items() if name != "gpu-3")
        assert job.state == "RUNNING"
        assert ground.deleted == []


@in_virtual_time
async def test_ten_minutes_without_slurm_change_nothing() -> None:
    async with Ground(4).living() as ground:
        await ground.start_operator()
        await ground.settled()
        job = ground.job(4, nodes=4)
        await ground.until(lambda: job.state == "RUNNING", 60, "the job does not run")
        await ground.until(
            lambda: ground.nodeset()["status"].get("slurmAllocated") == 4, 60, "the status does not follow"
        )
        ground.down_s = ground.clock.now() + 600
        ground.scale(1)
        await ground.clock.sleep(590)
        assert job.state == "COMPLETED"
        assert len(ground.pods()) == 4
        assert ground.nodeset()["status"]["slurmAllocated"] == 4
        labels = [p["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-protect") for p in ground.pods().values()]
        assert labels == ["true"] * 4
        told = ground.condition("SlurmAvailable")
        assert told["status"] == "False"
        assert "nothing is deleted" in told["message"]
        await ground.until(lambda: len(ground.pods()) == 1, 120, "it does not go on")
        assert ground.killed == []


@in_virtual_time
async def test_an_empty_list_of_a_restarted_slurmctld_deletes_nothing() -> None:
    """W7."""
    async with Ground(3).living() as ground:
        await ground.start_operator()
        await ground.settled()
        held = dict(ground.world.slurm.nodes)
        ground.world.slurm.nodes.clear()
        ground.scale(1)
        await ground.clock.sleep(300)
        assert len(ground.pods()) == 3
        ground.world.slurm.nodes.update(held)
        await ground.until(lambda: len(ground.pods()) == 1, 120, "it does not go on")
        assert ground.killed == []


@in_virtual_time
async def test_at_rest_nothing_is_written() -> None:
    async with Ground(5).living() as ground:
        await ground.start_operator()
        await ground.settled()
        await ground.clock.sleep(60)
        ground.requests.clear()
        await ground.clock.sleep(3600)
        assert ground.requests == []
