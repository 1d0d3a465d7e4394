"""Where a worker may be scheduled: alone on its machine, or on one machine only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinkytui.backend.controllers.objects.marks import APP, SLURMD

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def apart(affinity: Mapping[str, Any]) -> dict[str, Any]:
    """The affinity with one more required term: no other worker of the namespace on the same machine."""
    anti = affinity.get("podAntiAffinity") or {}
    term = {
        "labelSelector": {"matchExpressions": [{"key": APP, "operator": "In", "values": [SLURMD]}]},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {**affinity, "podAntiAffinity": {**anti, _REQUIRED: [*(anti.get(_REQUIRED) or ()), term]}}


def on_node(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    """The affinity to one machine, in place of the required terms that were there. Preferences stay."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    kept = affinity.get("nodeAffinity") or {}
    return {**affinity, "nodeAffinity": {**kept, _REQUIRED: {"nodeSelectorTerms": terms}}}
