"""With whom a worker's claims go: the owner references that carry out the retention policy. Pure.

A claim goes with its pod only while that pod leaves because fewer replicas are wanted. A cordon, an update or a move never
says so, and a reference that was set is taken back when the ordinal is wanted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from slinkytui.backend.controllers.nodeset.decision import Effect, OwnClaim, Tell
from slinkytui.backend.controllers.nodeset.identity import claim_identity, mode_of, ordinal
from slinkytui.backend.controllers.nodeset.world import DELETE, RETAIN, STATEFUL, Claim, Spec, World
from slinkytui.backend.controllers.objects.marks import API_VERSION, owner_named
from slinkytui.backend.controllers.objects.names import claim_name
from slinkytui.backend.models import Pod

Owner = Mapping[str, Any]
_GROUP: Final = API_VERSION.partition("/")[0]


def retention(world: World, chosen: Collection[str]) -> Iterator[Effect]:
    """The references that are not as they should be. `chosen` are the UIDs of living pods that go for a smaller size."""
    if not world.spec.claims:
        return
    coming = _coming(world)
    for pod in world.pods:
        goes = pod.meta.uid in chosen
        if pod.meta.deleted is not None:
            # It cannot be kept any more, but its data can, for the next one of its number.
            goes = ordinal(pod.id.name) not in coming and _is_owned_by(pod, world)
        for claim in claims_of(world, claim_identity(pod, world.key.name)):
            if claim.deleting:
                continue
            refs = repaired(world, pod, claim.owners, goes=goes)
            if refs is not None:
                yield OwnClaim(pod, claim.name, claim.uid, claim.version, tuple(refs))
            if has_foreign_controller(world, pod, claim.owners):
                text = (
                    f"PersistentVolumeClaim {claim.name} has a conflicting OwnerReference that acts as a managing "
                    "controller, the retention policy is ignored for this claim"
                )
                yield Tell("ConflictingController", "Sync", text, warning=True, about=pod)


def claims_of(world: World, identity: str) -> list[Claim]:
    """The claims that are there of one ordinal or host."""
    names = (claim_name(t, world.key.name, identity) for t in world.spec.claims) if identity else ()
    return [world.claims[n] for n in names if n in world.claims]


def lost_claim(world: World, identity: str) -> str:
    """Why a new worker would mount a claim that is about to go, or ""."""
    living = {p.meta.uid for p in world.pods}
    for claim in claims_of(world, identity):
        if claim.deleting:
            return f"its claim {claim.name} is being deleted"
        ours = [o for o in claim.owners if _is_pod(o) and str(o.get("name", "")).startswith(f"{world.key.name}-")]
        if any(o.get("uid") not in living for o in ours):
            return f"its claim {claim.name} goes with a pod that is gone"
    return ""


def wanted_owner(world: World, pod: Pod, *, goes: bool) -> dict[str, Any] | None:
    """Who a claim goes with, None for nobody."""
    if goes and world.spec.when_scaled == DELETE:
        found = {"apiVersion": "v1", "kind": "Pod", "name": pod.id.name, "uid": pod.meta.uid}
        return {**found, "controller": True, "blockOwnerDeletion": True}
    return owner_named(world.key.name, world.uid) if world.spec.when_deleted == DELETE else None


def repaired(world: World, pod: Pod, current: Iterable[Owner], *, goes: bool) -> list[dict[str, Any]] | None:
    """The owner references that a claim shall have, None if they are right or not ours to change.

    References of this NodeSet or pod by kind and name, but with another UID, are of a predecessor: the claim is left
    alone. Beside a foreign controller we own nothing. Other owners stay.
    """
    refs = [dict(o) for o in current]
    ours = [o for o in refs if _names(o, world, pod)]
    if any(o.get("uid") not in (world.uid, pod.meta.uid) for o in ours):
        return None
    wanted = None if has_foreign_controller(world, pod, refs) else wanted_owner(world, pod, goes=goes)
    if len(ours) == (0 if wanted is None else 1) and all(
        o["uid"] == wanted["uid"] and o.get("controller") for o in ours if wanted
    ):
        return None
    others = [o for o in refs if not _names(o, world, pod)]
    return others if wanted is None else [*others, wanted]


def has_foreign_controller(world: World, pod: Pod, current: Iterable[Owner]) -> bool:
    """Whether something else controls a claim, so that the retention policy does not hold for it. Without a policy that
    deletes, nobody minds."""
    if _keeps_all(world.spec):
        return False
    return any(o.get("controller") and not _names(o, world, pod) for o in current)


def _keeps_all(spec: Spec) -> bool:
    return spec.when_deleted == spec.when_scaled == RETAIN


def _coming(world: World) -> set[int]:
    """The ordinals that are made next, once what terminates is gone."""
    live = {ordinal(p.id.name) for p in world.pods if p.meta.deleted is None}
    missing, at, out = world.spec.replicas - len(live), 0, set[int]()
    while len(out) < missing:
        if at not in live:
            out.add(at)
        at += 1
    return set() if world.deleting or world.spec.mode != STATEFUL else out


def _is_owned_by(pod: Pod, world: World) -> bool:
    """Whether a claim of this pod has been given to it."""
    if mode_of(pod, world.key.name) != STATEFUL:
        return False
    held = claims_of(world, claim_identity(pod, world.key.name))
    return any(o.get("uid") == pod.meta.uid for c in held for o in c.owners)


def _is_pod(ref: Owner) -> bool:
    return bool(ref.get("apiVersion") == "v1" and ref.get("kind") == "Pod")


def _names(ref: Owner, world: World, pod: Pod) -> bool:
    """Whether a reference names the NodeSet or the pod, whatever its UID."""
    if ref.get("kind") == "NodeSet" and str(ref.get("apiVersion", "")).partition("/")[0] == _GROUP:
        return bool(ref.get("name") == world.key.name)
    return _is_pod(ref) and ref.get("name") == pod.id.name
