"""The requests to Slurm. Whether a worker may go and whether a drain may be lifted is asked once more, right before: a
decision is made from what was read a moment ago. While slurmrestd is away the breaker answers in its place, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from slinkytui.backend.controllers.nodeset.causes import is_older, is_ours
from slinkytui.backend.controllers.nodeset.decision import DeletePod, DeleteRecord, Drain, Undrain, UpdateNode
from slinkytui.backend.controllers.nodeset.drained import Verdict, judge, unknown, yes
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.runtime.breaker import Breaker
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.controllers.runtime.pool import Pool
from slinkytui.backend.errors import NotFound, SlinkyError
from slinkytui.backend.models import Job, SlurmNode
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.slurm.hostlist import HostlistError, expand
from slinkytui.backend.slurm.states import is_busy, is_drain

_ONE_BY_ONE: Final = 8
"""Up to so many nodes are read singly; more are read in one list."""
T = TypeVar("T")


@dataclass
class SlurmHand:
    """`client` is that of the NodeSet's cluster, None while there is none; `breaker` is the cluster's."""

    client: SlurmClient | None
    gate: Gate
    pool: Pool
    breaker: Breaker

    async def _ask(self, act: Callable[[SlurmClient], Coroutine[Any, Any, T]]) -> T:
        client = self.client
        if client is None:
            raise NotFound("no client of the Slurm cluster")
        return await self.breaker.call(lambda: act(client))

    async def _write(self, what: str, act: Callable[[SlurmClient], Coroutine[Any, Any, Any]]) -> None:
        await self.gate.write(what, self._ask(act))

    async def _node(self, name: str) -> SlurmNode:
        return await self._ask(lambda c: c.node(name))

    async def drain(self, effect: Drain) -> None:
        node = await self._node(effect.node)
        if is_drain(node.states) and "UNDRAIN" not in node.states and not is_ours(node.reason):
            return  # somebody was faster: their words stay
        body = {"state": ["DRAIN"], "reason": effect.reason}
        await self._write("drain", lambda c: c.node_update(effect.node, body))

    async def undrain(self, effect: Undrain) -> None:
        try:
            node = await self._node(effect.node)
        except NotFound:
            return
        if not is_drain(node.states) or "INVALID_REG" in node.states or (node.reason and not is_ours(node.reason)):
            return
        if "DOWN" in node.states and is_older(node, effect.pod):
            return  # it went down meanwhile: with the drain its words would go, and nobody could tell whose end that was
        await self._write("undrain", lambda c: c.node_update(effect.node, {"state": ["UNDRAIN"]}))

    async def update(self, effect: UpdateNode) -> None:
        try:
            await self._write("node", lambda c: c.node_update(effect.node, dict(effect.body)))
        except NotFound:
            return

    async def forget(self, effect: DeleteRecord) -> None:
        try:
            node = await self._node(effect.node)
        except NotFound:
            return
        quiet = effect.orphaned and (is_drain(node.states) or "DOWN" in node.states)
        if is_busy(node.states) or not (quiet or {"DOWN", "NOT_RESPONDING"} <= set(node.states)):
            return
        await self._write("record", lambda c: c.node_delete(effect.node))

    async def verdicts(self, world: World, deletes: Sequence[DeletePod]) -> Mapping[str, Verdict]:
        """A fresh look at each worker's node, and then at the jobs that a node does not show."""
        if not deletes:
            return {}
        try:
            nodes = await self._nodes([d.node for d in deletes])
            quiet = await self._quiet_jobs()
        except SlinkyError as error:
            return {d.pod.meta.uid: unknown(error.line()) for d in deletes}
        out: dict[str, Verdict] = {}
        for effect in deletes:
            node = nodes.get(effect.node)
            if node is not None:
                out[effect.pod.meta.uid] = judge(node, quiet.get(effect.node, ()), effect.pod)
            elif effect.node in world.slurm.nodes:
                out[effect.pod.meta.uid] = unknown(f"Slurm no longer lists {effect.node}; looked at again")
            else:
                out[effect.pod.meta.uid] = yes(effect.why)
        return out

    async def _nodes(self, names: Sequence[str]) -> dict[str, SlurmNode]:
        """The records of these nodes now; one that is not known is left out."""
        if len(names) > _ONE_BY_ONE:
            listing = await self._ask(lambda c: c.nodes())
            if listing.lost:
                raise SlinkyError(f"{listing.lost} node records could not be read", retryable=True)
            wanted = set(names)
            rows = [r for r in listing.rows if isinstance(r, SlurmNode)]
            return {r.id.name: r for r in rows if r.id.name in wanted}
        out: dict[str, SlurmNode] = {}
        for result in await self.pool.run_all(dict.fromkeys(names), self._node):
            if result.value is not None:
                out[result.item] = result.value
            elif not isinstance(result.error, NotFound):
                raise result.error or NotFound(f"node {result.item}")
            elif self.client is None:
                raise result.error
        return out

    async def _quiet_jobs(self) -> dict[str, tuple[Job, ...]]:
        """Jobs that hold nodes which Slurm calls idle: suspended and stopped ones."""
        states = await self._ask(lambda c: c.jobs_state())
        out: dict[str, tuple[Job, ...]] = {}
        for state in (s for s in states if {"SUSPENDED", "STOPPED"} & set(s.states)):
            try:
                jobs = await self._job(state.text)
            except NotFound:
                continue
            for job in jobs:
                try:
                    names: Iterable[str] = expand(job.nodes, limit=100_000) if job.nodes else ()
                except HostlistError as error:
                    raise SlinkyError(f"the nodes of job {job.id} cannot be read: {error}", retryable=True) from error
                for name in names:
                    out[name] = (*out.get(name, ()), job)
        return out

    async def _job(self, text: str) -> list[Job]:
        return await self._ask(lambda c: c.job(text))
