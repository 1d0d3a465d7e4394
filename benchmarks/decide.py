"""A pass over a NodeSet of 5,000 workers: what its parts take when nothing is to be done and when much is.

usage: python -m benchmarks.decide [PODS]

The yardstick is four plain looks at each pod, its labels and annotations as dicts, in the same run: it moves with the machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median

import msgspec

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.clusters import Clusters, Link
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import PatchStatus
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.controllers.nodeset.world import DEADLINE, PROTECT, World
from slinkytui.backend.models import Condition, Job, Key, Manifest, Meta, Pod, Row, Source, Table
from slinkytui.backend.options import Options
from slinkytui.backend.store import Store
from tests.unit.controllers.nodeset.worlds import NOW, SET, job, kube, pod, record, slurm, world

_REPEATS = 15
_LOOKS = 4
_BUSY = 5
"""Every fifth worker has a job."""
_LABELS = {
    "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "gpu", "app.kubernetes.io/component": "worker",
    "app.kubernetes.io/part-of": "slurm", "app.kubernetes.io/managed-by": "slurm-operator", "slinky.slurm.net/cluster": "slurm",
}  # fmt: skip


def worker(at: int) -> Pod:
    """A worker on which everything is as it should be."""
    busy = at % _BUSY == 0
    state = "SlurmNodeStateAllocated" if busy else "SlurmNodeStateIdle"
    other = [Condition(t, "True", since=int(NOW - 9_000)) for t in ("PodScheduled", "Initialized", "ContainersReady")]
    return pod(
        at, conditions=[*other, Condition(state, "True")], labels=_LABELS | ({PROTECT: "true"} if busy else {}),
        notes={"kubectl.kubernetes.io/default-container": "slurmd"} | ({DEADLINE: "2027-01-15T08:50:00Z"} if busy else {}),
    )  # fmt: skip


def settled(count: int) -> World:
    """A world at rest: a decision over it writes nothing."""
    records = [record(at, "ALLOCATED" if at % _BUSY == 0 else "IDLE", "DYNAMIC_NORM") for at in range(count)]
    jobs: dict[int | str, tuple[Job, ...]] = {at: (job(at, nodes=f"gpu-{at}"),) for at in range(0, count, _BUSY)}
    pods, nodes = [worker(at) for at in range(count)], [kube(f"n{at}") for at in range(count)]
    found = world(*pods, nodes=nodes, slurm_side=slurm(*records, jobs=jobs))
    status = next(e.status for e in decide(found, NOW).effects if isinstance(e, PatchStatus))
    found = replace(found, status=status)
    assert decide(found, NOW).effects == ()
    return found


def worlds(count: int) -> Iterator[tuple[str, World, int]]:
    """Each with its name and how many effects it has at least."""
    rest, tenth = settled(count), count // 10
    yield "at rest", rest, 0
    yield f"{tenth} too many", replace(rest, spec=replace(rest.spec, replicas=count - tenth)), tenth
    limited = replace(rest.spec, max_unavailable="10%")
    yield "all old, 10 % may be away", replace(rest, update_hash="other", spec=limited), tenth
    yield f"{tenth} missing", replace(rest, spec=replace(rest.spec, replicas=count + tenth)), tenth
    unseen = replace(rest.slurm, nodes={}, jobs={}, why="no answer")
    yield "Slurm is unknown", replace(rest, slurm=unseen), 0
    yield "none is there yet", replace(rest, pods=(), slurm=slurm()), count


class Seen:
    """The caches of an operator that holds such a world."""

    def __init__(self, found: World) -> None:
        self.facts, self.held, self.world = Store(), Store(), found
        clock, clusters = VirtualClock(), Clusters(Options(), self.facts, VirtualClock(), None)
        clusters.links["a"] = Link("a", "http://a", "bench", name="c", controller=Key("slurm", "slurm"))
        spec = {"controllerRef": {"name": "slurm"}, "slurmd": {"image": "slurmd"}, "replicas": len(found.pods)}
        self._hold(Table.NODESET_OBJECTS, "NodeSet", SET, spec, "set")
        keys = {"slurmKeyRef": {"name": "k", "key": "k"}, "jwtKeyRef": {"name": "j", "key": "j"}}
        self._hold(Table.CONTROLLER_OBJECTS, "Controller", Key("slurm", "slurm"), keys, "c")
        rows: dict[Table, list[Row]] = {
            Table.PODS: [*found.pods], Table.KUBENODES: [*found.nodes.values()], Table.NODES: [*found.slurm.nodes.values()],
            Table.JOBS: [j for held in found.slurm.jobs.values() for j in held],
            Table.SOURCES: [Source(f"slurm/c/{t}", "live", last_success=NOW) for t in ("nodes", "jobs")],
        }  # fmt: skip
        for table, some in rows.items():
            self.facts.upsert(table, "", some)
        self._observer = Observer(self.facts, self.held, clusters, clock)

    def _hold(self, table: Table, kind: str, key: Key, spec: object, uid: str) -> None:
        about = {"name": key.name, "namespace": key.namespace, "uid": uid}
        body = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": about, "spec": spec}
        self.held.upsert(table, "", [Manifest(key, Meta(uid, "1", generation=3), msgspec.json.encode(body))])

    def look(self) -> int:
        found = self._observer.observe(SET)[0]
        assert found is not None
        return len(found.pods)

    def touched(self, version: int) -> None:
        """One pod has another version."""
        one = self.world.pods[0]
        self.facts.upsert(Table.PODS, "", [msgspec.structs.replace(one, meta=msgspec.structs.replace(one.meta, version=str(version)))])  # fmt: skip


def plain(pods: tuple[Pod, ...]) -> int:
    return sum(len(dict(p.meta.labels)) + len(dict(p.meta.annotations)) for p in pods for _ in range(_LOOKS))


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def say(name: str, work: Callable[[], object], yardstick: Callable[[], object], before: Callable[[int], None] | None = None) -> None:  # fmt: skip
    """Both in turns, so that a neighbour on the machine costs both alike."""
    took, sticks = [], []
    for at in range(_REPEATS):
        if before is not None:
            before(at)
        sticks.append(timed(yardstick))
        took.append(timed(work))
    print(
        f"  {name:28} {min(took) * 1e3:6.1f} ms (median {median(took) * 1e3:6.1f}), {min(took) / min(sticks):5.1f} yardsticks"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    cases = list(worlds(count))
    rest = cases[0][1]

    def yardstick() -> int:
        return plain(rest.pods)

    for name, found, least in cases:
        assert len(decide(found, NOW).effects) >= least
        say(f"decide, {name}", partial(decide, found, NOW), yardstick)
    seen = Seen(rest)
    assert seen.look() == count
    say("observe, nothing has changed", seen.look, yardstick)
    say("observe, a pod has changed", seen.look, yardstick, seen.touched)


if __name__ == "__main__":
    main()
