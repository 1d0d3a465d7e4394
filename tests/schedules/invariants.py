"""What must hold at every moment, whatever happens: looked at after each half second and at each request that is sent."""

from __future__ import annotations

import json
from itertools import count, islice
from typing import Any

from slinkytui.backend.http import Request
from slinkytui.backend.sim.nodesets import NODESETS, PODS
from tests.schedules.acts import CORDON, COST, Actor
from tests.schedules.ground import SPACE, Ground, is_ready

_SEEN_S = 5.0
"""What happened so long ago the operator has seen."""


class Watcher:
    """Collects what was broken, each with its time, in `broken`."""

    def __init__(self, ground: Ground, actor: Actor) -> None:
        self.ground, self.actor = ground, actor
        self.broken: list[str] = []
        self._began = ground.clock.now()
        self._away: dict[str, float] = {}
        """Since when a worker, by pod UID, or a missing one, by its number, is away."""
        self._chosen: dict[str, float] = {}
        """Slurm nodes that the operator drained for an update."""
        ground.watchers.append(self.look)
        ground.listeners.append(self.sent)

    def _say(self, text: str) -> None:
        self.broken.append(f"{self.ground.clock.now() - self._began:.1f} s: {text}")

    def look(self) -> None:
        ground, actor = self.ground, self.actor
        pods = ground.pods()
        for uid, job in ground.killed_by:
            if uid not in actor.by_hand:
                self._say(f"job {job} was killed with a pod that we deleted")
        ground.killed_by.clear()
        for name, reason in actor.foreign.items():
            node = ground.world.slurm.nodes.get(name)
            if node is not None and not (node.drain and node.reason == reason):
                self._say(f"the foreign drain '{reason}' of {name} is now drain={node.drain} '{node.reason}'")
                actor.foreign[name] = node.reason
        by_uid = {p["metadata"]["uid"]: p for p in pods.values()}
        for uid in actor.marks & set(by_uid):
            if (by_uid[uid]["metadata"].get("annotations") or {}).get(CORDON) != "true":
                self._say(f"the cordon that a person set on {by_uid[uid]['metadata']['name']} is gone")
                actor.marks.discard(uid)
        for uid, cost in list(actor.costs.items()):
            if uid in by_uid and (by_uid[uid]["metadata"].get("annotations") or {}).get(COST) != cost:
                self._say("a deletion cost was changed")
                del actor.costs[uid]
        hosts = [p["spec"].get("hostname") for p in pods.values() if not p["metadata"].get("deletionTimestamp")]
        if len(set(hosts)) < len(hosts):
            self._say(f"two workers share a Slurm node: {sorted(map(str, hosts))}")
        self._count_away(pods)

    def _count_away(self, pods: dict[str, dict[str, Any]]) -> None:
        now, present = self.ground.clock.now(), set()
        for name, pod in pods.items():
            if pod["metadata"].get("deletionTimestamp") or not is_ready(pod) or self.ground.is_drained(pod):
                present.add(name)
        free = (f"gpu-{at}" for at in count() if f"gpu-{at}" not in pods)
        present |= set(islice(free, max(0, self._wanted() - len(pods))))
        self._away = {name: self._away.get(name, now) for name in present}
        self._chosen = {n: at for n, at in self._chosen.items() if n in present or now - at < 1.0}

    def _wanted(self) -> int:
        found = self.ground.world.objects.get(NODESETS, SPACE, "gpu")
        return int(found["spec"].get("replicas", 0)) if found else 0

    def sent(self, request: Request) -> None:
        """A request of the operator, before it is answered."""
        method, path = request.method, request.path
        kind, _, rest = path.partition("/pods/")
        if kind.endswith(f"namespaces/{SPACE}") and rest:
            body = json.loads(request.body or b"{}")
            if method == "DELETE" and not (body.get("preconditions") or {}).get("uid"):
                self._say(f"a deletion without a UID: {path}")
            if method == "PATCH" and not (body.get("metadata") or {}).get("uid"):
                self._say(f"a patch without a UID: {path}")
            if method == "PATCH" and '"update"' in json.dumps(body).replace("\\", ""):
                self._chose(rest.split("/")[0])

    def _chose(self, name: str) -> None:
        """A worker is marked to go for an update: with it no more may be away than the strategy says."""
        found = self.ground.world.objects.get(NODESETS, SPACE, "gpu")
        pod = self.ground.world.objects.get(PODS, SPACE, name)
        if found is None or pod is None or name in self._chosen or name in self._away:
            return  # an unhealthy one may always be replaced
        now = self.ground.clock.now()
        self._count_away(self.ground.pods())
        self._chosen[name] = now
        want = self._wanted()
        update = (found["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        limit = update.get("maxUnavailable", "25%")
        most = max(1, -(-want * int(limit[:-1]) // 100)) if isinstance(limit, str) else int(limit)
        away = {n for n, at in self._away.items() if now - at >= _SEEN_S} | set(self._chosen)
        surplus = max(0, len(self.ground.pods()) - want)
        if len(away) - surplus > most:
            self._say(f"{sorted(away)} are away for an update to {want}, {most} may be")
