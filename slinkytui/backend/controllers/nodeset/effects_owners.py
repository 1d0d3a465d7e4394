"""Carries out who owns what: claims that go with a worker or a NodeSet, and orphans that become ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinkytui.backend.controllers.nodeset.decision import Adopt, OwnClaim
from slinkytui.backend.controllers.nodeset.world import World
from slinkytui.backend.controllers.objects.marks import owner_named
from slinkytui.backend.controllers.runtime.expectations import Expectations
from slinkytui.backend.controllers.runtime.gate import Gate
from slinkytui.backend.errors import Conflict, NotFound
from slinkytui.backend.kube.client import KubeClient
from slinkytui.backend.kube.resources import CLAIMS, NODESETS, PODS, REVISIONS

_ADOPTED: Final = {r.plural: r for r in (PODS, REVISIONS)}


async def own_claim(kube: KubeClient, gate: Gate, world: World, effect: OwnClaim) -> None:
    """The whole list, guarded by the version that it was made from."""
    meta = {"uid": effect.uid, "resourceVersion": effect.version, "ownerReferences": list(effect.owners) or None}
    try:
        await gate.write("claim", kube.patch(CLAIMS, world.key.namespace, effect.name, {"metadata": meta}))
    except NotFound:
        return  # gone: nobody has to own it


async def adopt(kube: KubeClient, gate: Gate, expected: Expectations, world: World, effect: Adopt) -> None:
    """Only for a NodeSet that the server itself still has: a cache may not have heard of its end."""
    found = await kube.get(NODESETS, world.key.namespace, world.key.name)
    meta: Mapping[str, Any] = found["metadata"]
    if meta.get("uid") != world.uid or meta.get("deletionTimestamp"):
        raise Conflict(f"{effect.plural} {effect.name} is not adopted: the NodeSet is gone or goes", retryable=True)
    body = {
        "metadata": {
            "uid": effect.uid,
            "resourceVersion": effect.version,
            "ownerReferences": [owner_named(world.key.name, world.uid)],
        }
    }
    with expected.changing(world.uid, effect.uid) as change:
        try:
            resource = _ADOPTED[effect.plural]
            write = kube.patch(resource, world.key.namespace, effect.name, body, kind="strategic")
            made = await gate.write("adoption", write)
        except NotFound:
            return
        if effect.plural == PODS.plural:  # of others it is not said when they are seen
            change.made(str(made["metadata"].get("resourceVersion") or ""))
