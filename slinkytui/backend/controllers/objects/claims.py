"""The persistent volume claims of workers: their names and their content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinkytui.backend.controllers.objects.marks import selector
from slinkytui.backend.controllers.objects.names import claim_name
from slinkytui.backend.crds.nodeset import NodeSet


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
