"""The persistent volume claims of workers: their names, their content and who owns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slinkytui.backend.controllers.objects.marks import API_VERSION, owner, selector
from slinkytui.backend.controllers.objects.names import claim_name
from slinkytui.backend.crds.nodeset import NodeSet

Owner = Mapping[str, Any]


def claims_of(nodeset: NodeSet, identity: str) -> dict[str, str]:
    """The claims of one worker by their template: template's name to claim's name."""
    names = (t["metadata"]["name"] for t in nodeset.spec.volume_claim_templates)
    return {name: claim_name(name, nodeset.meta.name, identity) for name in names}


def build_claims(nodeset: NodeSet, identity: str) -> list[dict[str, Any]]:
    """`identity` is the padded ordinal, in DaemonSet mode the pod's host name."""
    names = claims_of(nodeset, identity)
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **{k: v for k, v in t["metadata"].items() if k in ("annotations", "finalizers")},
                "name": names[t["metadata"]["name"]],
                "namespace": nodeset.meta.namespace,
                "labels": {**t["metadata"].get("labels", {}), **selector(nodeset.meta.name)},
            },
            "spec": t["spec"],
        }
        for t in nodeset.spec.volume_claim_templates
    ]


def with_claims(nodeset: NodeSet, identity: str, volumes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A pod's volumes with its claims, which stand first and replace volumes of their names."""
    names = claims_of(nodeset, identity)
    ours = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in names.items()]
    return ours + [v for v in volumes if v["name"] not in names]


def holds_claims(nodeset: NodeSet, identity: str, pod: Mapping[str, Any]) -> bool:
    """Whether a pod mounts the claims that it shall."""
    volumes = {
        v["name"]: (v.get("persistentVolumeClaim") or {}).get("claimName") for v in pod["spec"].get("volumes") or ()
    }
    return all(volumes.get(name) == claim for name, claim in claims_of(nodeset, identity).items())


def wanted_owner(nodeset: NodeSet, pod: Mapping[str, Any], *, goes: bool) -> dict[str, Any] | None:
    """Who a claim goes with, None for nobody. `goes`: the replica is no longer wanted (a cordon alone does not say so)."""
    policy = nodeset.spec.persistent_volume_claim_retention_policy
    if goes and policy.when_scaled == "Delete":
        meta = pod["metadata"]
        found = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        return {**found, "controller": True, "blockOwnerDeletion": True}
    return owner(nodeset) if policy.when_deleted == "Delete" else None


def repaired_owners(
    nodeset: NodeSet, pod: Mapping[str, Any], current: Iterable[Owner], *, goes: bool
) -> list[dict[str, Any]] | None:
    """The owner references that a claim shall have, None if they are right or not ours to change.

    References of this NodeSet or pod by kind and name, but with another UID, are of a predecessor: the claim is left
    alone. Beside a foreign controller we own nothing. Other owners stay.
    """
    refs = [dict(o) for o in current]
    ours = [o for o in refs if _names(o, nodeset, pod)]
    if any(o.get("uid") not in (nodeset.meta.uid, pod["metadata"]["uid"]) for o in ours):
        return None
    wanted = None if foreign_controller(nodeset, pod, refs) else wanted_owner(nodeset, pod, goes=goes)
    if len(ours) == (0 if wanted is None else 1) and all(
        o["uid"] == wanted["uid"] and o.get("controller") for o in ours if wanted
    ):
        return None
    others = [o for o in refs if not _names(o, nodeset, pod)]
    return others if wanted is None else [*others, wanted]


def foreign_controller(nodeset: NodeSet, pod: Mapping[str, Any], current: Iterable[Owner]) -> bool:
    """Whether something else controls a claim, so that the retention policy does not hold for it. Without a policy that
    deletes, nobody minds."""
    policy = nodeset.spec.persistent_volume_claim_retention_policy
    if policy.when_deleted == policy.when_scaled == "Retain":
        return False
    return any(o.get("controller") and not _names(o, nodeset, pod) for o in current)


def _names(ref: Owner, nodeset: NodeSet, pod: Mapping[str, Any]) -> bool:
    """Whether a reference names the NodeSet or the pod, whatever its UID."""
    group = str(ref.get("apiVersion", "")).partition("/")[0]
    if ref.get("kind") == "NodeSet" and group == API_VERSION.partition("/")[0]:
        return bool(ref.get("name") == nodeset.meta.name)
    return bool(
        ref.get("apiVersion") == "v1" and ref.get("kind") == "Pod" and ref.get("name") == pod["metadata"]["name"]
    )
