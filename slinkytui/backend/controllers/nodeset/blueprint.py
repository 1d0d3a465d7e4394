"""What a NodeSet's pass makes beside its pods: its revision, and the objects that its cluster's workers share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from slinkytui.backend.controllers.nodeset.decision import Apply, CreatePod, Effect, ForgetRevision, RankRevision
from slinkytui.backend.controllers.nodeset.identity import is_numbered, padding_in_use
from slinkytui.backend.controllers.nodeset.world import STATEFUL
from slinkytui.backend.controllers.objects.claims import build_claims
from slinkytui.backend.controllers.objects.marks import HASH
from slinkytui.backend.controllers.objects.names import padded
from slinkytui.backend.controllers.objects.revision import (
    build_revision,
    is_same,
    next_number,
    revision_data,
    revision_hash,
    revision_name,
)
from slinkytui.backend.controllers.objects.services import build_ssh_config, build_worker_budget, build_worker_service
from slinkytui.backend.controllers.objects.worker import Extras, OnNode, Unbuildable, build_template, host_of, placed
from slinkytui.backend.crds.controller import Controller
from slinkytui.backend.crds.nodeset import NodeSet
from slinkytui.backend.errors import BadRequest
from slinkytui.backend.models import KubeNode, Manifest, Pod


def with_padding_in_use(
    nodeset: NodeSet, pods: Iterable[Pod], claims: Iterable[str], revisions: Iterable[Manifest]
) -> tuple[NodeSet, str]:
    """The NodeSet with the padding that its workers and claims were made with, and what is to be said of that: another
    one would rename them all and leave their data behind."""
    name, spec = nodeset.meta.name, nodeset.spec
    if spec.scaling_mode != STATEFUL:
        return nodeset, ""
    sets = [f"{t['metadata']['name']}-{name}" for t in spec.volume_claim_templates]
    names = [p.id.name for p in pods if is_numbered(p.id.name, name)]
    names += [c for c in claims if any(is_numbered(c, s) for s in sets)]
    bodies = sorted((_body(m) for m in revisions), key=lambda b: -int(b.get("revision") or 0))
    former = [(b.get("data") or {}).get("spec", {}).get("ordinalPadding") or 0 for b in bodies]
    used = padding_in_use(spec.ordinal_padding, names, former)
    if used == spec.ordinal_padding:
        return nodeset, ""
    kept = spec.model_copy(update={"ordinal_padding": used})
    text = (
        f"spec.ordinalPadding {spec.ordinal_padding} waits until no pod and no claim with a padding of {used} is left"
    )
    return nodeset.model_copy(update={"spec": kept}), text


@dataclass(frozen=True)
class Revised:
    """The revision that pods are made of now, and what has to be written for it."""

    hash: str
    effects: tuple[Effect, ...] = ()
    collisions: int = 0
    """How many names were taken by other data."""
    name: str = ""


def revise(nodeset: NodeSet, owned: Sequence[Manifest], others: Iterable[Manifest], used: Iterable[str]) -> Revised:
    """The revision of the spec as it is: an equal one that is there, whatever its hash, or a new one.

    `owned` are the NodeSet's revisions, `others` all the rest of the namespace, `used` the hashes of living pods. One of
    the rest that has our name and our content is a predecessor's or an orphan: it is used as it is.
    """
    data = revision_data(nodeset)
    held = sorted(((_body(m), m) for m in owned), key=lambda bm: (bm[0].get("revision") or 0, bm[1].id.name))
    newest = next_number([int(b.get("revision") or 0) for b, _ in held])
    equal = [(b, m) for b, m in held if is_same(b.get("data") or {}, data)]
    effects: list[Effect] = []
    if equal:
        body, found = equal[-1]
        current = dict(found.meta.labels).get(HASH, found.id.name)
        if int(body.get("revision") or 0) < newest - 1:
            # The spec went back to what it was: this revision is the newest again.
            effects.append(RankRevision(found.id.name, newest))
        kept = found.id.name
        collisions = 0
    else:
        taken = {m.id.name: m for m in (*owned, *others)}
        collisions, kept = 0, ""
        while not kept or (kept in taken and not is_same(_body(taken[kept]).get("data") or {}, data)):
            collisions += bool(kept)
            current = revision_hash(data, collisions)
            kept = revision_name(nodeset.meta.name, current)
        if kept not in taken:
            effects.append(Apply("controllerrevisions", build_revision(nodeset, newest, collisions), exists=False))
    live = set(used)
    old = [m for _, m in held if m.id.name != kept and dict(m.meta.labels).get(HASH, m.id.name) not in live]
    spare = len(old) - nodeset.spec.kept_revisions
    effects += [ForgetRevision(m.id.name, m.meta.uid) for m in old[: max(0, spare)]]
    return Revised(current, tuple(effects), collisions, kept)


def shared(
    nodeset: NodeSet,
    nodesets: Iterable[NodeSet],
    services: Mapping[str, Manifest],
    budgets: Mapping[str, Manifest],
    configs: Mapping[str, Manifest] | None,
) -> list[Effect]:
    """The Service and the budget of the cluster's workers, and the NodeSet's ssh files, where they are not as they should
    be. `configs` None: the ConfigMaps have not been read, and nothing is said of them."""
    namespace, controller, every = nodeset.meta.namespace, nodeset.spec.controller_ref.name, list(nodesets)
    wanted = [
        ("services", build_worker_service(namespace, controller, every), services),
        ("poddisruptionbudgets", build_worker_budget(namespace, controller, every), budgets),
    ]
    ssh = build_ssh_config(nodeset)
    if ssh is not None and configs is not None:
        wanted.append(("configmaps", ssh, configs))
    out: list[Effect] = []
    for plural, body, held in wanted:
        found = held.get(body["metadata"]["name"])
        if found is None:
            out.append(Apply(plural, body, exists=False))
        elif found.meta.deleted is None and not _holds(_body(found), body, plural):
            out.append(Apply(plural, _without(body, plural), exists=True))
    return out


def _holds(live: Mapping[str, Any], wanted: Mapping[str, Any], plural: str) -> bool:
    if plural == "poddisruptionbudgets" and "maxUnavailable" in (live.get("spec") or {}):
        return False
    # The items of a list do not say what they are; those of a watch do.
    return _contains(live, {k: v for k, v in wanted.items() if k not in ("apiVersion", "kind")})


def _contains(live: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; what a server adds to it is no difference."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(_contains(live.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(_contains, live, wanted))
    return bool(live == wanted)


def _without(body: Mapping[str, Any], plural: str) -> dict[str, Any]:
    """The patch that makes a live object so: what another operator wrote in its place goes."""
    out = {**body}
    if plural == "poddisruptionbudgets":
        out["spec"] = {**body["spec"], "maxUnavailable": None}
    return out


def _body(found: Manifest) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(found.body)
    return body


@dataclass(frozen=True)
class Workshop:
    """Makes the workers of a NodeSet."""

    nodeset: NodeSet
    controller: Controller
    hash: str
    nodes: Mapping[str, KubeNode]
    pins: Mapping[str, str]
    extras: Extras = field(default_factory=Extras)

    @cached_property
    def _template(self) -> dict[str, Any]:
        """What all of them share, made once for a pass that makes thousands."""
        return build_template(self.nodeset, self.controller, self.extras)

    def pod(self, new: CreatePod) -> dict[str, Any]:
        """Raises BadRequest with the field that is wrong."""
        pin = self.pins.get(str(new.ordinal), "")
        place = self._place(new.node) if new.node else new.ordinal
        try:
            return placed(self.nodeset, self._template, place, self.hash, pin)
        except Unbuildable as error:
            raise BadRequest(f"no worker can be made: {error}") from error

    def claims(self, new: CreatePod) -> Sequence[dict[str, Any]]:
        if new.node:
            return build_claims(self.nodeset, host_of(self.nodeset, self._place(new.node)))
        return build_claims(self.nodeset, padded(new.ordinal, self.nodeset.spec.ordinal_padding))

    def _place(self, name: str) -> OnNode:
        node = self.nodes.get(name)
        return OnNode(name, dict(node.meta.annotations) if node is not None else {})
