"""The NodeSet controller: who is woken by what, one pass over one NodeSet, and what it leaves behind to be explained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from slinkytui.backend.clock import Clock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Decision, DeletePod, Tell
from slinkytui.backend.controllers.nodeset.effects import Effects, KubeHand, Outcome, SlurmHand
from slinkytui.backend.controllers.nodeset.identity import ordinal, target
from slinkytui.backend.controllers.nodeset.observe import Observer, Settings
from slinkytui.backend.controllers.nodeset.wakes import Wakes
from slinkytui.backend.controllers.nodeset.world import DAEMON, World
from slinkytui.backend.controllers.references import References
from slinkytui.backend.controllers.runtime.breaker import Breaker
from slinkytui.backend.controllers.runtime.events import NORMAL, WARNING, Recorder, Ref
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.controllers.runtime.logs import current
from slinkytui.backend.controllers.runtime.outcome import After, Done, Retry
from slinkytui.backend.controllers.runtime.outcome import Outcome as Result
from slinkytui.backend.controllers.runtime.pool import Pool
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.models import (
    Because,
    Decided,
    Key,
    Manifest,
    Pod,
    RowId,
    Table,
)
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.store import Store

API: Final = "slinky.slurm.net/v1beta1"
_BACKOFF_S: Final = 1.0
_MOST_BACKOFF_S: Final = 900.0
_SOON_S: Final = 1.0
_REFUSED_S: Final = 300.0
"""How soon to look again while something that was written is not seen yet."""

log = logging.getLogger(__name__)


@dataclass
class _Slot:
    """How often the worker of an ordinal or node has failed in a row, and until when none is made."""

    failures: int = 0
    until: float = 0.0


@dataclass(frozen=True)
class Clients:
    """How a pass reaches the servers. `kube_pool` and `slurm_pool` are shared by all NodeSets of a server."""

    kube: KubeClient
    gate: Gate
    kube_pool: Pool
    slurm_pool: Callable[[str], Pool]


class NodeSetController:
    """`facts` are the rows that every engine reads, `held` the whole objects that only an operator reads."""

    def __init__(
        self, facts: Store, held: Store, clusters: Clusters, clients: Clients, recorder: Recorder, clock: Clock,
        decisions: Store, settings: Settings | None = None, references: References | None = None,
    ) -> None:  # fmt: skip
        self._facts, self._held, self._clusters, self._clients = facts, held, clusters, clients
        self._recorder, self._clock, self._decisions = recorder, clock, decisions
        self.expected = Expectations(clock)
        self.observer = Observer(facts, held, clusters, clock, settings or Settings(), references)
        self._wakes = Wakes(facts, held, decisions, self.observer, self.expected)
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._breakers: dict[str, tuple[SlurmClient | None, Breaker]] = {}
        self.hurried: dict[Key, str] = {}
        """NodeSets that wait for Slurm's next word, with their Slurm cluster."""

    def keys(self) -> list[Key]:
        return self._wakes.keys()

    def woken(self, changed: Mapping[Table, Iterable[RowId]]) -> set[Key]:
        """The NodeSets that a change concerns; to be called with every change."""
        return self._wakes.woken(changed)

    # -- one pass

    async def reconcile(self, key: Key) -> Result:
        """Look, decide, do, and note it for people."""
        world, builder, more = self.observer.observe(key, self._backoff(key))
        if world is None:
            self._forget(key)
            return Done()
        self.hurried.pop(key, None)
        pending = self.expected.pending(world.uid)
        if pending:
            return After(min(_SOON_S, pending.next_end_s))
        decision = decide(world, self._clock.now())
        decision = replace(decision, effects=(*more, *decision.effects))
        if decision.hurry:
            self.hurried[key] = world.slurm.cluster
        cluster, clients = world.slurm.cluster, self._clients
        client = self.observer.client(cluster)
        effects = Effects(
            KubeHand(clients.kube, clients.gate, self.expected, self._clock, builder),
            SlurmHand(client, clients.gate, clients.slurm_pool(cluster), self._breaker(cluster, client)),
            clients.kube_pool, lambda tell: self._tell(world, tell), lambda names: self._reread(cluster, names),
        )  # fmt: skip
        done = await effects.perform(world, decision)
        self._count_failures(world, decision, done)
        self._note(key, decision, done)
        if done.retry:
            return Retry(done.retry, decision.after)
        if done.more:
            return After(0.0)
        if decision.after is not None:
            return After(decision.after, "; ".join(done.refused))
        if done.refused:
            # What a server refuses may hang on something that wakes nobody, as a quota or a webhook.
            return After(_REFUSED_S, "; ".join(done.refused))
        return Done()

    def _breaker(self, cluster: str, client: SlurmClient | None) -> Breaker:
        """One a client, kept between passes: what a former client met says nothing of the new one."""
        held = self._breakers.get(cluster)
        if held is None or held[0] is not client:
            held = self._breakers[cluster] = (client, Breaker(f"slurmrestd of {cluster or '?'}", self._clock))
        return held[1]

    async def _reread(self, cluster: str, names: list[str]) -> None:
        poller = self._clusters.poller(cluster)
        if poller is not None:
            await poller.reread(names)

    def _backoff(self, key: Key) -> dict[str, float]:
        """Until when no worker is made, by ordinal or node."""
        row, now = self._held.get(Table.NODESET_OBJECTS, key), self._clock.now()
        uid = row.meta.uid if isinstance(row, Manifest) else ""
        return {slot: held.until for (owner, slot), held in self._slots.items() if owner == uid and held.until > now}

    def _count_failures(self, world: World, decision: Decision, done: Outcome) -> None:
        """A worker that failed comes back after a while; one that was made and lives resets that."""
        now = self._clock.now()
        for effect in decision.effects:
            if isinstance(effect, DeletePod) and effect.ended:
                slot = self._slots.setdefault((world.uid, _slot(world, effect.pod)), _Slot())
                slot.failures += 1
                slot.until = now + min(_MOST_BACKOFF_S, _BACKOFF_S * 2 ** (slot.failures - 1))
        for key in [k for k, s in self._slots.items() if now - s.until > _MOST_BACKOFF_S]:
            del self._slots[key]

    def _forget(self, key: Key) -> None:
        self._decisions.remove(Table.DECISIONS, "nodeset", [key])
        self.hurried.pop(key, None)

    def _tell(self, world: World, tell: Tell) -> None:
        """An event, once for as long as its text stays the same."""
        about = tell.about
        self._recorder.record(
            Ref(API, "NodeSet", world.key.namespace, world.key.name, world.uid), tell.reason, tell.text, action=tell.action,
            type=WARNING if tell.warning else NORMAL,
            related=None if about is None else Ref("v1", "Pod", about.id.namespace, about.id.name, about.meta.uid),
        )  # fmt: skip

    def _note(self, key: Key, decision: Decision, done: Outcome) -> None:
        now = self._clock.now()
        for act in done.did:
            log.log(
                logging.WARNING if act.error else logging.INFO, "%s%s", act.text, f": {act.error}" if act.error else ""
            )
        why = tuple(Because(r.subject, r.text, r.since, r.waits) for r in decision.why)
        before = self._decisions.get(Table.DECISIONS, key)
        did = tuple(done.did)
        acted: float | None = now
        if not did and isinstance(before, Decided):
            did, acted = before.did, before.acted
        row = Decided(
            key,
            "nodeset",
            now,
            did,
            why,
            decision.after,
            done.retry,
            current.get().reconcile_id,
            acted if did else None,
        )
        self._decisions.upsert(Table.DECISIONS, "nodeset", [row])


def _slot(world: World, pod: Pod) -> str:
    return target(pod) if world.spec.mode == DAEMON else str(ordinal(pod.id.name))
