"""What may happen to a cluster, as data: a schedule is a list of steps that can be drawn, shrunk, written down and replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from slinkytui.backend.sim.nodesets import NODES, NODESETS, PODS
from tests.schedules.ground import SPACE, Ground

NODESET = "nodeset.slinky.slurm.net/"
CORDON, COST = NODESET + "pod-cordon", NODESET + "pod-deletion-cost"
SIZE = 4
"""Kubernetes nodes, and workers at the start."""


class Step(NamedTuple):
    """After `wait` seconds `act` happens with `args`: numbers and words."""

    wait: float
    act: str
    args: tuple[Any, ...] = ()


Schedule = Sequence[Step]


def write(path: Path, schedule: Schedule) -> None:
    path.write_text("[\n" + ",\n".join(f"  {json.dumps(step)}" for step in schedule) + "\n]\n")


def read(path: Path) -> list[Step]:
    return [Step(wait, act, tuple(args)) for wait, act, args in json.loads(path.read_text())]


class Actor:
    """Does the steps, and remembers what persons want: `foreign` drains by Slurm node, `marks` and `costs` by pod UID, and
    `by_hand`, the UIDs of pods that somebody else took away."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.foreign: dict[str, str] = {}
        self.touched: set[str] = set()
        """Slurm nodes that a person has drained at some time."""
        self.marks: set[str] = set()
        self.costs: dict[str, str] = {}
        self.by_hand: set[str] = set()
        self.jobs: list[Any] = []
        self.ends = False
        """The NodeSet is to go."""
        self._lost: dict[str, Any] = {}
        self._gone: dict[str, dict[str, Any]] = {}
        self._until: list[tuple[float, Callable[[], None]]] = []

    async def run(self, schedule: Schedule) -> None:
        for step in schedule:
            await self._wait(step.wait)
            getattr(self, f"do_{step.act}")(*step.args)
        await self.heal()

    async def _wait(self, seconds: float) -> None:
        clock = self.ground.clock
        end = clock.now() + seconds
        while self._until and (due := min(self._until, key=lambda u: u[0]))[0] <= end:
            await clock.sleep(due[0] - clock.now())
            self._until.remove(due)
            due[1]()
        await clock.sleep(end - clock.now())

    async def heal(self) -> None:
        """Faults end and persons take back what they said; the size and the template stay."""
        while self._until:
            await self._wait(max(0.0, min(u[0] for u in self._until) - self.ground.clock.now()))
        for host in list(self._gone):
            self._back(host)
        for at in range(SIZE):
            self.do_uncordon(at)
            self.do_resume(at)
            self.do_unmark(at)
        self.foreign.clear()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._until.append((self.ground.clock.now() + seconds, act))

    def _pod(self, at: int) -> dict[str, Any] | None:
        """The living pod of this number, if there is one."""
        pod = self.ground.pods().get(f"gpu-{at}")
        return None if pod is None or pod["metadata"].get("deletionTimestamp") else pod

    def _annotate(self, pod: dict[str, Any], name: str, value: str | None) -> None:
        held = dict(pod["metadata"].get("annotations") or {})
        if value is None:
            held.pop(name, None)
        else:
            held[name] = value
        self._meta(pod, "annotations", held)

    def _meta(self, pod: dict[str, Any], field: str, value: dict[str, str]) -> None:
        self.ground.world.objects.put(PODS, {**pod, "metadata": {**pod["metadata"], field: value}})

    # -- what persons do with the NodeSet

    def do_scale(self, replicas: int) -> None:
        if not self.ends:
            self.ground.scale(replicas)

    def do_image(self, tag: str) -> None:
        if not self.ends:
            self.ground.template(f"slurmd:{tag}")

    def do_limit(self, limit: int | str) -> None:
        if not self.ends:
            self.ground.strategy(limit)

    def do_delete_nodeset(self) -> None:
        found = self.ground.nodeset()
        if found and not self.ends:
            self.ends = True
            stamp = "2027-01-15T08:00:00Z"
            self.ground.world.objects.put(
                NODESETS, {**found, "metadata": {**found["metadata"], "deletionTimestamp": stamp, "deletionGracePeriodSeconds": 0}}
            )  # fmt: skip

    # -- with pods

    def do_mark(self, at: int) -> None:
        pod = self._pod(at)
        if pod is not None and CORDON not in (pod["metadata"].get("annotations") or {}):
            self.marks.add(pod["metadata"]["uid"])
            self._annotate(pod, CORDON, "true")

    def do_unmark(self, at: int) -> None:
        pod = self._pod(at)
        if pod is not None and pod["metadata"]["uid"] in self.marks:
            self.marks.discard(pod["metadata"]["uid"])
            self._annotate(pod, CORDON, None)

    def do_cost(self, at: int, cost: int) -> None:
        if (pod := self._pod(at)) is not None:
            self.costs[pod["metadata"]["uid"]] = str(cost)
            self._annotate(pod, COST, str(cost))

    def do_strip(self, at: int) -> None:
        """Somebody takes the labels that tell how the pod was made."""
        if (pod := self._pod(at)) is not None:
            held = {k: v for k, v in pod["metadata"]["labels"].items() if k != NODESET + "scaling-mode"}
            self._meta(pod, "labels", held)

    def do_delete_pod(self, at: int) -> None:
        if (pod := self._pod(at)) is not None:
            self.by_hand.add(pod["metadata"]["uid"])
            self.ground.world.objects.drop(PODS, (SPACE, f"gpu-{at}"))

    # -- with machines

    def _host(self, at: int) -> str:
        return f"node-gpu-{at}"

    def do_cordon(self, at: int) -> None:
        if self._host(at) not in self._gone:
            self.ground.cordon(self._host(at))

    def do_uncordon(self, at: int) -> None:
        if self._host(at) not in self._gone:
            self.ground.cordon(self._host(at), False)

    def do_lose_machine(self, at: int, seconds: float) -> None:
        """A machine leaves the cluster with its pods, and comes back."""
        host = self._host(at)
        found = self.ground.world.objects.get(NODES, "", host)
        if found is None:
            return
        self._gone[host] = found
        self.ground.world.objects.drop(NODES, ("", host))
        for name, pod in list(self.ground.pods().items()):
            if pod["spec"].get("nodeName") == host:
                self.by_hand.add(pod["metadata"]["uid"])
                self.ground.world.objects.drop(PODS, (SPACE, name))
        self._later(seconds, lambda: self._back(host))

    def _back(self, host: str) -> None:
        if (found := self._gone.pop(host, None)) is not None:
            meta = {k: v for k, v in found["metadata"].items() if k not in ("uid", "resourceVersion")}
            self.ground.world.objects.put(NODES, {**found, "metadata": meta})

    # -- with Slurm

    def do_drain(self, at: int, reason: str) -> None:
        name = f"gpu-{at}"
        if name in self.ground.world.slurm.nodes:
            self.foreign[name] = reason
            self.touched.add(name)
            self.ground.drain(name, reason)

    def do_resume(self, at: int) -> None:
        """Whoever drained it takes it back; nobody does that under a pod that is going."""
        name = f"gpu-{at}"
        node = self.ground.world.slurm.nodes.get(name)
        if self.foreign.pop(name, None) is not None and node is not None and (node.drain or node.down):
            self.ground.world.slurm.update_node(name, "UNDRAIN", "", "bob")

    def bring_back(self) -> None:
        """A node that went down under a person's words is that person's to resume, once its worker is there again."""
        for name in self.touched:
            node = self.ground.world.slurm.nodes.get(name)
            if node is not None and node.down and node.responding and not node.reason.startswith("slurm-operator:"):
                self.ground.world.slurm.update_node(name, "RESUME", "", "bob")

    def do_job(self, minutes: float, nodes: int) -> None:
        self.jobs.append(self.ground.job(minutes, nodes=nodes))

    def do_lose_nodes(self, seconds: float) -> None:
        """slurmctld comes up without its state: it lists no node."""
        nodes = self.ground.world.slurm.nodes
        if not self._lost:
            self._lost = dict(nodes)
            nodes.clear()
            self._later(seconds, self._find)

    def _find(self) -> None:
        nodes, self._lost = self._lost, {}
        slurm = self.ground.world.slurm
        slurm.nodes.update({k: v for k, v in nodes.items() if k not in slurm.nodes})
        for job in slurm.jobs.values():
            if job.state != "RUNNING":  # what has ended meanwhile is over
                slurm._release(job)

    # -- faults

    def do_slurm_away(self, seconds: float) -> None:
        self.ground.down_s = max(self.ground.down_s, self.ground.clock.now() + seconds)

    def do_fault(self, name: str, share: float, seconds: float) -> None:
        self.ground.world.settings.change({name: share})
        self._later(seconds, lambda: self.ground.world.settings.change({name: 0}))

    def do_crash(self, requests: int) -> None:
        """The operator dies right after that many further writes, and comes back with an empty memory."""
        self.ground.crash_at = len(self.ground.requests) + requests


_WAIT = st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0, 30.0, 90.0])
_AT = st.integers(0, SIZE - 1)


def _step(act: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(lambda wait, got: Step(wait, act, got), _WAIT, st.tuples(*args))


_STEPS = st.one_of(
    _step("scale", st.integers(0, SIZE)),
    _step("image", st.sampled_from(["26.05", "26.05.1", "26.05.2"])),
    _step("limit", st.sampled_from([1, 2, "50%"])),
    _step("job", st.sampled_from([0.5, 2.0, 5.0]), st.integers(1, SIZE)),
    _step("job", st.sampled_from([1.0, 3.0]), st.just(1)),
    _step("cordon", _AT),
    _step("uncordon", _AT),
    _step("drain", _AT, st.sampled_from(["bad gpu", "fan 3"])),
    _step("resume", _AT),
    _step("mark", _AT),
    _step("unmark", _AT),
    _step("cost", _AT, st.integers(-5, 5)),
    _step("strip", _AT),
    _step("delete_pod", _AT),
    _step("lose_machine", _AT, st.sampled_from([5.0, 60.0])),
    _step("lose_nodes", st.sampled_from([2.0, 45.0])),
    _step("slurm_away", st.sampled_from([5.0, 60.0])),
    _step("fault", st.sampled_from(["kube.errors", "kube.conflicts", "slurm.errors", "slurm.refusals"]),
          st.sampled_from([0.1, 0.5]), st.sampled_from([5.0, 60.0])),
    _step("crash", st.integers(1, 12)),
    _step("delete_nodeset"),
)  # fmt: skip

schedules: st.SearchStrategy[list[Step]] = st.lists(_STEPS, min_size=2, max_size=12)
