"""The NodeSet controller: who is woken by what, one pass over one NodeSet, and what it leaves behind to be explained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.controllers.nodeset.blueprint import Workshop, revise, shared
from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.decision import Decision, DeletePod, Effect, Tell
from slinkytui.backend.controllers.nodeset.effects import Builder, Effects, Nobody, Outcome
from slinkytui.backend.controllers.nodeset.identity import label, ordinal, slurm_name, target
from slinkytui.backend.controllers.nodeset.index import Index, nodes_of_jobs
from slinkytui.backend.controllers.nodeset.spec import spec_of
from slinkytui.backend.controllers.nodeset.world import DAEMON, HASH, SlurmSide, World
from slinkytui.backend.controllers.runtime.events import NORMAL, WARNING, Recorder, Ref
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.controllers.runtime.logs import current
from slinkytui.backend.controllers.runtime.outcome import After, Done, Retry
from slinkytui.backend.controllers.runtime.outcome import Outcome as Result
from slinkytui.backend.controllers.runtime.pool import Pool
from slinkytui.backend.crds.controller import parse_controller
from slinkytui.backend.crds.nodeset import NodeSet, parse_nodeset
from slinkytui.backend.crds.shared import BadResource
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.models import (
    Because,
    Controller,
    Decided,
    Key,
    KubeNode,
    Manifest,
    NodeId,
    Pod,
    RowId,
    Source,
    Table,
)
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.store import Store

API: Final = "slinky.slurm.net/v1beta1"
_BACKOFF_S: Final = 1.0
_MOST_BACKOFF_S: Final = 900.0
_SOON_S: Final = 1.0
"""How soon to look again while something that was written is not seen yet."""

log = logging.getLogger(__name__)


@dataclass
class _Slot:
    """How often the worker of an ordinal or node has failed in a row, and until when none is made."""

    failures: int = 0
    until: float = 0.0


@dataclass(frozen=True)
class Settings:
    """What the daemon's flags say about NodeSets."""

    propagated: tuple[str, ...] = ()
    create_on_cordoned: bool = False


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
        decisions: Store, settings: Settings = Settings(),
    ) -> None:  # fmt: skip
        self._facts, self._held, self._clusters, self._clients = facts, held, clusters, clients
        self._recorder, self._clock, self._decisions, self._settings = recorder, clock, decisions, settings
        self._index = Index(facts)
        self._expected = Expectations(clock)
        self._slots: dict[tuple[str, str], _Slot] = {}
        self.draining: dict[Key, str] = {}
        """NodeSets of which a worker drains to leave, with their Slurm cluster."""
        self._known: dict[Key, tuple[str, str, str]] = {}
        """Owner's UID, pod's UID and owner's name of pods that were seen: what goes is known by its name alone."""

    # -- who is woken

    def keys(self) -> list[Key]:
        return [k for k in self._held.rows(Table.NODESET_OBJECTS) if isinstance(k, Key)]

    def woken(self, changed: Mapping[Table, Iterable[RowId]]) -> set[Key]:
        """The NodeSets that a change of facts concerns; to be called with every change, since it also keeps the index."""
        self._index.note(changed)
        out: set[Key] = set()
        for table, ids in changed.items():
            match table:
                case Table.NODESET_OBJECTS:
                    out.update(i for i in ids if isinstance(i, Key))
                case Table.PODS:
                    out |= self._of_pods(ids)
                case Table.KUBENODES:
                    out |= self._of_kubenodes(ids)
                case Table.NODES:
                    out |= self._of_slurm({i for i in ids if isinstance(i, NodeId)})
                case Table.JOBS:
                    out |= self._of_slurm(nodes_of_jobs(self._facts, ids))
                case Table.CONTROLLER_OBJECTS | Table.CLUSTERS:
                    out.update(self.keys())
                case Table.SOURCES:
                    if any(str(getattr(i, "name", "")).startswith("slurm/") for i in ids):
                        out |= self._waiting()
                case Table.REVISIONS | Table.SERVICES | Table.BUDGETS | Table.CLAIMS | Table.CONFIGMAPS:
                    out |= self._of_owned(table, ids)
                case _:
                    continue
        return out

    def _of_pods(self, ids: Iterable[RowId]) -> set[Key]:
        out = set()
        for row_id in ids:
            pod = self._facts.get(Table.PODS, row_id)
            if isinstance(pod, Pod):
                if pod.meta.owner_kind == "NodeSet":
                    out.add(Key(pod.id.namespace, pod.meta.owner_name))
                    if pod.meta.deleted is None:
                        self._expected.seen(pod.meta.owner_uid, pod.meta.uid, pod.meta.version)
                    else:
                        self._expected.gone(pod.meta.owner_uid, pod.meta.uid)
                    self._known[pod.id] = (pod.meta.owner_uid, pod.meta.uid, pod.meta.owner_name)
            elif isinstance(row_id, Key) and (held := self._known.pop(row_id, None)) is not None:
                self._expected.gone(held[0], held[1])
                out.add(Key(row_id.namespace, held[2]))
        return out

    def _of_kubenodes(self, ids: Iterable[RowId]) -> set[Key]:
        """A node's pods, and every NodeSet in daemon mode: it may want a pod there."""
        names = {i.name for i in ids if isinstance(i, Key)}
        out = {
            Key(p.id.namespace, p.meta.owner_name) for p in self._facts.rows(Table.PODS).values()
            if isinstance(p, Pod) and p.node in names and p.meta.owner_kind == "NodeSet"
        }  # fmt: skip
        for key, row in self._held.rows(Table.NODESET_OBJECTS).items():
            if isinstance(row, Manifest) and isinstance(key, Key) and b'"DaemonSet"' in row.body:
                out.add(key)
        return out

    def _of_slurm(self, nodes: set[NodeId]) -> set[Key]:
        spaces: dict[str, tuple[str, ...]] = {}
        for row in self._facts.rows(Table.CONTROLLERS).values():
            if isinstance(row, Controller):
                name = self._cluster_of(row.id)
                spaces[name] = (*spaces.get(name, ()), row.id.namespace)
        return {key for node in nodes for key in self._index.nodeset_of(node, spaces)}

    def _waiting(self) -> set[Key]:
        """NodeSets whose last pass did not know Slurm, or waits for it to be sure."""
        out = set()
        for row_id, row in self._decisions.rows(Table.DECISIONS).items():
            if isinstance(row, Decided) and isinstance(row_id, Key) and any(b.waits for b in row.why):
                out.add(row_id)
        return out

    def _of_owned(self, table: Table, ids: Iterable[RowId]) -> set[Key]:
        out = set()
        for row_id in ids:
            row = self._held.get(table, row_id)
            if isinstance(row, Manifest) and row.meta.owner_kind == "NodeSet":
                out.add(Key(row.id.namespace, row.meta.owner_name))
            elif row is None and isinstance(row_id, Key):
                out.update(k for k in self.keys() if k.namespace == row_id.namespace)
        return out

    # -- one pass

    async def reconcile(self, key: Key) -> Result:
        """Look, decide, do, and note it for people."""
        world, builder, more = self.observe(key)
        if world is None:
            self._forget(key)
            return Done()
        self.draining.pop(key, None)
        pending = self._expected.pending(world.uid)
        if pending:
            return After(min(_SOON_S, pending.next_end_s))
        decision = decide(world, self._clock.now())
        decision = replace(decision, effects=(*more, *decision.effects))
        if decision.draining:
            self.draining[key] = world.slurm.cluster
        effects = Effects(
            self._clients.kube, self._client(world.slurm.cluster), builder, self._clients.gate, self._clients.kube_pool,
            self._clients.slurm_pool(world.slurm.cluster), self._expected, self._clock, lambda tell: self._tell(world, tell),
            lambda names: self._reread(world.slurm.cluster, names),
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
        return Done()

    def observe(self, key: Key) -> tuple[World | None, Builder, Sequence[Effect]]:
        """The world of a NodeSet as the caches have it, who makes its workers, and what has to be written beside its pods.
        The world is None when the NodeSet is gone."""
        row = self._held.get(Table.NODESET_OBJECTS, key)
        if not isinstance(row, Manifest):
            return None, Nobody("the NodeSet is gone"), ()
        body: dict[str, Any] = msgspec.json.decode(row.body)
        now = self._clock.now()
        pods = self._index.pods_of(row.meta.uid)
        backoff = {slot: s.until for (uid, slot), s in self._slots.items() if uid == row.meta.uid and s.until > now}
        world = World(
            key=key, uid=row.meta.uid, generation=row.meta.generation or 0, version=row.meta.version,
            deleting=row.meta.deleted is not None, finalizers=row.meta.finalizers, pods=pods, backoff=backoff,
            nodes={n.id.name: n for n in self._facts.rows(Table.KUBENODES).values() if isinstance(n, KubeNode)},
            status=body.get("status") or {}, taken=self._index.taken(key.namespace, row.meta.uid),
            propagated=self._settings.propagated, create_on_cordoned=self._settings.create_on_cordoned,
        )  # fmt: skip
        nodeset = parse_nodeset(body)
        if isinstance(nodeset, BadResource):
            return replace(world, bad=f"the NodeSet cannot be used: {nodeset}"), Nobody(str(nodeset)), ()
        controller = Key(key.namespace, nodeset.spec.controller_ref.name)
        world = replace(world, spec=spec_of(nodeset), slurm=self._slurm_side(controller, pods, key))
        used = {label(p, HASH) for p in pods}
        mine, names = self._revisions(row)
        revised = revise(nodeset, mine, names, used)
        more = (*revised.effects, *self._shared(nodeset))
        world = replace(world, update_hash=revised.hash)
        made = self._controller(controller)
        if isinstance(made, str):
            return replace(world, refused=made), Nobody(made), more
        pins = world.status.get("ordinalToNode")
        return world, Workshop(nodeset, made, revised.hash, world.nodes, pins if isinstance(pins, dict) else {}), more

    def _controller(self, key: Key) -> Any:
        """The Controller as a type, or why there is none."""
        row = self._held.get(Table.CONTROLLER_OBJECTS, key)
        if not isinstance(row, Manifest):
            return f"the Controller {key} is not there"
        found = parse_controller(msgspec.json.decode(row.body))
        return f"the Controller {key} cannot be used: {found}" if isinstance(found, BadResource) else found

    def _revisions(self, nodeset: Manifest) -> tuple[list[Manifest], list[str]]:
        rows = [
            r for r in self._held.rows(Table.REVISIONS).values()
            if isinstance(r, Manifest) and r.id.namespace == nodeset.id.namespace
        ]  # fmt: skip
        return [r for r in rows if r.meta.owner_uid == nodeset.meta.uid], [r.id.name for r in rows]

    def _shared(self, nodeset: NodeSet) -> list[Effect]:
        """The objects of the cluster's workers; nothing is made any more for a NodeSet that is being deleted."""
        if nodeset.is_deleting:
            return []
        every = [
            found for r in self._held.rows(Table.NODESET_OBJECTS).values()
            if isinstance(r, Manifest) and r.id.namespace == nodeset.meta.namespace and r.meta.deleted is None
            and not isinstance(found := parse_nodeset(msgspec.json.decode(r.body)), BadResource)
        ]  # fmt: skip

        def held(table: Table) -> dict[str, Manifest]:
            rows = self._held.rows(table).values()
            return {r.id.name: r for r in rows if isinstance(r, Manifest) and r.id.namespace == nodeset.meta.namespace}

        return shared(nodeset, every, held(Table.SERVICES), held(Table.BUDGETS), held(Table.CONFIGMAPS))

    def _slurm_side(self, controller: Key, pods: Sequence[Pod], key: Key) -> SlurmSide:
        """The Slurm cluster of a Controller; a cluster that is expected and has no client is unknown, not empty."""
        cluster = self._cluster_of(controller)
        expected = self._held.get(Table.CONTROLLER_OBJECTS, controller) is not None
        why = ""
        if not expected:
            why = f"the Controller {controller} is not there"
        elif not cluster or self._client(cluster) is None:
            why = self._why_no_client(controller)
        wanted = [name for p in pods if p.node and (name := slurm_name(p, key.name))]
        return self._index.slurm(cluster, expected=expected, why=why, wanted=wanted)

    def _cluster_of(self, controller: Key) -> str:
        """The name of the Slurm cluster that the link of a Controller leads to, "" while none does."""
        found = next((link.name for link in self._clusters.links.values() if link.controller == controller), "")
        if found:
            return found
        given = [link.name for link in self._clusters.links.values() if link.controller is None and link.name]
        return given[0] if len(given) == 1 else ""

    def _why_no_client(self, controller: Key) -> str:
        sources = (s for s in self._facts.rows(Table.SOURCES).values() if isinstance(s, Source))
        told = next((s.error for s in sources if s.name == f"slurm/{controller}" and s.error), "")
        return f"no client of the Slurm cluster of {controller}: {told or 'no RestApi of it answers yet'}"

    async def _reread(self, cluster: str, names: list[str]) -> None:
        poller = self._clusters.poller(cluster)
        if poller is not None:
            await poller.reread(names)

    def _client(self, cluster: str) -> SlurmClient | None:
        return self._clusters.client(cluster) if cluster else None

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
        self.draining.pop(key, None)

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
        row = Decided(key, "nodeset", now, tuple(done.did), why, decision.after, done.retry, current.get().reconcile_id)
        self._decisions.upsert(Table.DECISIONS, "nodeset", [row])


def _slot(world: World, pod: Pod) -> str:
    return target(pod) if world.spec.mode == DAEMON else str(ordinal(pod.id.name))
