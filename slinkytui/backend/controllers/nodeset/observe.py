"""Looks at one NodeSet: the frozen world of it, who makes its workers, and what has to be written beside its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.clusters import Clusters
from slinkytui.backend.controllers.nodeset.adoption import adoptions, is_orphan_revision
from slinkytui.backend.controllers.nodeset.blueprint import Workshop, revise, shared, with_padding_in_use
from slinkytui.backend.controllers.nodeset.decision import Effect
from slinkytui.backend.controllers.nodeset.doubts import doubtful, say_bad, say_once
from slinkytui.backend.controllers.nodeset.effects import Builder, Nobody
from slinkytui.backend.controllers.nodeset.identity import label, slurm_name, value
from slinkytui.backend.controllers.nodeset.index import Index
from slinkytui.backend.controllers.nodeset.pins import held_pins
from slinkytui.backend.controllers.nodeset.spec import spec_of
from slinkytui.backend.controllers.nodeset.world import HASH, TOPOLOGY, Claim, SlurmSide, World
from slinkytui.backend.controllers.objects.marks import ROLL
from slinkytui.backend.controllers.objects.worker import Extras, config_hashes
from slinkytui.backend.controllers.references import References
from slinkytui.backend.crds.controller import parse_controller
from slinkytui.backend.crds.nodeset import NodeSet, parse_nodeset
from slinkytui.backend.crds.shared import BadResource
from slinkytui.backend.models import Key, KubeNode, Manifest, Pod, Source, Table
from slinkytui.backend.slurm.client import SlurmClient
from slinkytui.backend.store import Store


@dataclass(frozen=True)
class Settings:
    """What the daemon's flags say about NodeSets."""

    propagated: tuple[str, ...] = ()
    create_on_cordoned: bool = False


class Observer:
    """`facts` are the rows that every engine reads, `held` the whole objects that only an operator reads."""

    def __init__(
        self, facts: Store, held: Store, clusters: Clusters, clock: Clock, settings: Settings = Settings(),
        references: References | None = None,
    ) -> None:  # fmt: skip
        self._facts, self._held, self._clusters, self._clock, self._settings = facts, held, clusters, clock, settings
        self._references = references
        self.index = Index(facts)

    def observe(
        self, key: Key, backoff: Mapping[str, float] | None = None
    ) -> tuple[World | None, Builder, Sequence[Effect]]:
        """The world of a NodeSet as the caches have it, who makes its workers, and what has to be written beside its pods.
        The world is None when the NodeSet is gone."""
        row = self._held.get(Table.NODESET_OBJECTS, key)
        if not isinstance(row, Manifest):
            return None, Nobody("the NodeSet is gone"), ()
        body: dict[str, Any] = msgspec.json.decode(row.body)
        pods = self.index.pods_of(row.meta.uid)
        world = World(
            key=key, uid=row.meta.uid, generation=row.meta.generation or 0, version=row.meta.version,
            deleting=row.meta.deleted is not None, deleted_at=row.meta.deleted or 0.0, finalizers=row.meta.finalizers, pods=pods, backoff=backoff or {},
            nodes={n.id.name: n for n in self._facts.rows(Table.KUBENODES).values() if isinstance(n, KubeNode)},
            status=body.get("status") or {},
            propagated=self._settings.propagated, create_on_cordoned=self._settings.create_on_cordoned,
        )  # fmt: skip
        nodeset = parse_nodeset(body)
        if isinstance(nodeset, BadResource):
            world = replace(world, bad=f"the NodeSet cannot be used: {nodeset}")
            return world, Nobody(str(nodeset)), say_bad(world, self._clock.now())
        controller = Key(key.namespace, nodeset.spec.controller_ref.name)
        mine, others = self._revisions(row)
        claims = self._claims(nodeset)
        nodeset, kept = with_padding_in_use(nodeset, pods, claims, mine)
        revised = revise(nodeset, mine, others, {label(p, HASH) for p in pods})
        unsure = doubtful(nodeset.spec)
        more = (
            *self._adoptions(row, mine, others, revised.name), *revised.effects, *self._shared(nodeset),
            *say_once(world, "DoubtfulSpec", unsure),
        )  # fmt: skip
        world = replace(
            world, spec=spec_of(nodeset), slurm=self._slurm_side(controller, pods, key), update_hash=revised.hash, claims=claims,
            taken=self.index.taken(key.namespace, row.meta.uid, controller.name), kept=(*((kept,) if kept else ()), *unsure),
        )  # fmt: skip
        made = self._controller(controller)
        extras, unread = self._extras(nodeset, world.nodes)
        if isinstance(made, str) or unread:
            refused = unread or str(made)
            return replace(world, refused=refused), Nobody(refused), more
        if nodeset.meta.annotations.get(ROLL) == "true":
            world = replace(world, config=config_hashes(nodeset, extras))
        return world, Workshop(nodeset, made, revised.hash, world.nodes, held_pins(world), extras), more

    def _extras(self, nodeset: NodeSet, nodes: Mapping[str, KubeNode]) -> tuple[Extras, str]:
        """What a worker needs from elsewhere, or why that is not known."""
        ssh = nodeset.spec.ssh
        flat = bool(nodes) and not any(value(n.meta.annotations, TOPOLOGY) for n in nodes.values())
        if ssh is None or not ssh.enabled or self._references is None:
            return Extras(flat=flat), ""
        found = self._references.secret(Key(nodeset.meta.namespace, ssh.sssd_conf_ref.name))
        return Extras(sssd=found.hashes.get(ssh.sssd_conf_ref.key, ""), flat=flat), found.why

    def _controller(self, key: Key) -> Any:
        """The Controller as a type, or why there is none."""
        row = self._held.get(Table.CONTROLLER_OBJECTS, key)
        if not isinstance(row, Manifest):
            return f"the Controller {key} is not there"
        found = parse_controller(msgspec.json.decode(row.body))
        return f"the Controller {key} cannot be used: {found}" if isinstance(found, BadResource) else found

    def _claims(self, nodeset: NodeSet) -> dict[str, Claim]:
        """The claims of the NodeSet's workers, of those too that are gone."""
        if not nodeset.spec.volume_claim_templates:
            return {}
        parts = tuple(f"{t['metadata']['name']}-{nodeset.meta.name}-" for t in nodeset.spec.volume_claim_templates)
        out = {}
        for row in self._held.rows(Table.CLAIMS).values():
            if not isinstance(row, Manifest) or row.id.namespace != nodeset.meta.namespace:
                continue
            if row.id.name.startswith(parts):
                owners = msgspec.json.decode(row.body)["metadata"].get("ownerReferences") or ()
                deleting = row.meta.deleted is not None
                out[row.id.name] = Claim(row.id.name, row.meta.uid, row.meta.version, tuple(owners), deleting)
        return out

    def _adoptions(
        self, nodeset: Manifest, mine: Sequence[Manifest], others: Sequence[Manifest], current: str
    ) -> list[Effect]:
        """Orphans that become ours. A NodeSet that goes takes nobody in."""
        if nodeset.meta.deleted is not None:
            return []
        found = [*mine, *(r for r in others if r.id.name == current)]
        return list(adoptions(self.index.orphans_of(nodeset.id), [r for r in found if not r.meta.owner_uid]))

    def _revisions(self, nodeset: Manifest) -> tuple[list[Manifest], list[Manifest]]:
        """The NodeSet's revisions, orphans with its labels among them, and all others of its namespace."""
        mine: list[Manifest] = []
        others: list[Manifest] = []
        for row in self._held.rows(Table.REVISIONS).values():
            if isinstance(row, Manifest) and row.id.namespace == nodeset.id.namespace:
                ours = row.meta.owner_uid == nodeset.meta.uid or is_orphan_revision(row, nodeset.id.name)
                (mine if ours else others).append(row)
        return mine, others

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
        cluster = self.cluster_of(controller)
        expected = self._held.get(Table.CONTROLLER_OBJECTS, controller) is not None
        why = ""
        if not expected:
            why = f"the Controller {controller} is not there"
        elif not cluster or self.client(cluster) is None:
            why = self._why_no_client(controller)
        wanted = [name for p in pods if p.node and (name := slurm_name(p, key.name))]
        return self.index.slurm(cluster, expected=expected, why=why, wanted=wanted)

    def cluster_of(self, controller: Key) -> str:
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

    def client(self, cluster: str) -> SlurmClient | None:
        return self._clusters.client(cluster) if cluster else None
