"""One schedule from its begin to its end, and what was broken meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.schedules.acts import SIZE, Actor, Schedule
from tests.schedules.ground import Ground
from tests.schedules.invariants import Watcher

QUIET_S = 120.0


@dataclass
class Story:
    """What was broken, in words with times; and how much happened."""

    broken: list[str] = field(default_factory=list)
    requests: int = 0
    deleted: int = 0
    jobs: int = 0


async def live(schedule: Schedule, ground: Ground | None = None) -> Story:
    ground = ground or Ground(SIZE)
    async with ground.living():
        actor = Actor(ground)
        watcher = Watcher(ground, actor)
        await ground.start_operator()
        await ground.settled()
        restart = ground.restart_when_crashed()
        await actor.run(schedule)
        ground.crash_at = None
        story = Story(watcher.broken, jobs=len(actor.jobs))
        try:
            if actor.ends:
                await ground.until(lambda: not ground.pods() and not ground.nodeset(), 1_200, "the NodeSet does not go")
            else:
                await ground.settled(1_200)
                actor.bring_back()
                await ground.until(lambda: not _undone(ground, actor), 300, f"left behind: {_undone(ground, actor)}")
        except AssertionError as error:
            story.broken.append(f"{error}; {_state(ground)}")
        if not story.broken:
            try:
                await _all_jobs_over(ground)
            except AssertionError as error:
                story.broken.append(f"{error}; {_state(ground)}")
            await ground.clock.sleep(90)
            before = len(ground.requests)
            await ground.clock.sleep(QUIET_S)
            story.broken += [f"written at rest: {r}" for r in ground.requests[before:]]
        await restart.done()
        story.requests, story.deleted = len(ground.requests), len(ground.deleted)
        return story


async def _all_jobs_over(ground: Ground) -> None:
    """Those that wait for a free node, too."""
    for _ in range(10):
        await ground.until(lambda: not _working(ground), 1_200, "jobs do not end")
        await ground.clock.sleep(30)
        if not _working(ground):
            return


def _working(ground: Ground) -> list[str]:
    """Slurm nodes that hold jobs."""
    return [name for name, node in ground.world.slurm.nodes.items() if node.jobs]


def _undone(ground: Ground, actor: Actor) -> list[str]:
    """Workers that should work and do not."""
    nodes = ground.world.slurm.nodes
    out = []
    for name, pod in ground.pods().items():
        node = nodes.get(pod["spec"].get("hostname", name))
        if node is None or node.down or node.drain:
            out.append(f"{name}: {'unknown to Slurm' if node is None else f'down={node.down} {node.reason}'}")
    return out


def _state(ground: Ground) -> str:
    pods = {
        n: (p["spec"].get("nodeName"), p["metadata"].get("deletionTimestamp"), p["metadata"].get("annotations"))
        for n, p in ground.pods().items()
    }
    nodes = {n: (s.down, s.drain, s.reason, sorted(s.jobs)) for n, s in ground.world.slurm.nodes.items()}
    conditions = {c["type"]: c.get("message") for c in (ground.nodeset().get("status") or {}).get("conditions", [])}
    return f"pods {pods}\nnodes {nodes}\nconditions {conditions}"
