"""From the resource as a type to the part of its spec that decides. Pure."""

from __future__ import annotations

from slinkytui.backend.controllers.nodeset.world import Prune, Spec, Strategy
from slinkytui.backend.controllers.objects.marks import host_prefix
from slinkytui.backend.crds.nodeset import NodeSet

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spec_of(nodeset: NodeSet) -> Spec:
    spec = nodeset.spec
    pod = spec.template["spec"]
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    return Spec(
        replicas=spec.replicas, mode=spec.scaling_mode, padding=spec.ordinal_padding,
        strategy=Strategy(spec.update_strategy.type), max_unavailable=spec.update_strategy.rolling_update.max_unavailable.given,
        min_ready_s=spec.min_ready_s, protect=spec.workload_disruption_protection, pin=spec.pin_to_node,
        prune=Prune(spec.prune_slurm_node_records), host_prefix=spec.host_prefix, host_network=spec.host_network,
        node_selector=pod.get("nodeSelector") or {}, required_terms=tuple(terms), tolerations=tuple(pod.get("tolerations") or ()),
        annotations=nodeset.meta.annotations, claims=tuple(c["metadata"]["name"] for c in spec.volume_claim_templates),
        when_deleted=spec.persistent_volume_claim_retention_policy.when_deleted,
        when_scaled=spec.persistent_volume_claim_retention_policy.when_scaled,
        daemon_prefix=host_prefix(nodeset),
    )  # fmt: skip
