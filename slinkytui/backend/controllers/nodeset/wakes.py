"""Who is woken by what: from changes of the stores to NodeSets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from slinkytui.backend.controllers.nodeset.adoption import nodeset_name
from slinkytui.backend.controllers.nodeset.index import nodes_of_jobs
from slinkytui.backend.controllers.nodeset.observe import Observer
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.crds.nodeset import parse_nodeset
from slinkytui.backend.crds.shared import BadResource
from slinkytui.backend.models import Controller, Decided, Key, Manifest, NodeId, Pod, RowId, Table
from slinkytui.backend.store import Store


class Wakes:
    """Keeps the expectations too: `woken` has to hear of every change."""

    def __init__(self, facts: Store, held: Store, decisions: Store, observer: Observer, expected: Expectations) -> None:
        self._facts, self._held, self._decisions = facts, held, decisions
        self._observer, self._expected = observer, expected
        self._known: dict[Key, tuple[str, str, str]] = {}
        """Owner's UID, pod's UID and owner's name of pods that were seen: what goes is known by its name alone."""

    def keys(self) -> list[Key]:
        return [k for k in self._held.rows(Table.NODESET_OBJECTS) if isinstance(k, Key)]

    def woken(self, changed: Mapping[Table, Iterable[RowId]]) -> set[Key]:
        """The NodeSets that a change of facts concerns."""
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
                case Table.CONTROLLER_OBJECTS:
                    out |= self._of_controllers(ids)
                case Table.CLUSTERS:
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
                if not pod.meta.owner_uid and (made_by := nodeset_name(pod)):
                    out.add(Key(pod.id.namespace, made_by))
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

    def _of_controllers(self, ids: Iterable[RowId]) -> set[Key]:
        """Those that refer to one of them; one that cannot be read might."""
        changed = set(ids)
        out = set()
        for key, row in self._held.rows(Table.NODESET_OBJECTS).items():
            if isinstance(row, Manifest) and isinstance(key, Key):
                nodeset = parse_nodeset(msgspec.json.decode(row.body))
                if isinstance(nodeset, BadResource) or Key(key.namespace, nodeset.spec.controller_ref.name) in changed:
                    out.add(key)
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
                name = self._observer.cluster_of(row.id)
                spaces[name] = (*spaces.get(name, ()), row.id.namespace)
        return {key for node in nodes for key in self._observer.index.nodeset_of(node, spaces)}

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
