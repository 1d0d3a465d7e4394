"""Lean wire structs per kind: only what the rows need, unknown fields ignored, every part nullable."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from slinkytui.backend.models import (
    Accounting,
    Budget,
    Condition,
    ContainerState,
    Controller,
    Event,
    Key,
    KubeNode,
    Labels,
    LoginSet,
    Manifest,
    Meta,
    Namespace,
    NodeSet,
    Operator,
    Pod,
    RestApi,
    Token,
)

Map = dict[str, str] | None


class Wire(msgspec.Struct, gc=False, rename="camel"):
    """A part of an object."""


class WireOwner(Wire):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class WireMeta(Wire):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Map = None
    annotations: Map = None
    owner_references: list[WireOwner] | None = None
    finalizers: list[str] | None = None


class WireSecret(Wire):
    metadata: WireMeta
    data: Map = None


def secret_row(w: WireSecret) -> Manifest:
    """The SHA-256 of what stands under each key, by the key; the content itself is kept nowhere."""
    hashes = {k: hashlib.sha256(base64.b64decode(v)).hexdigest() for k, v in (w.data or {}).items()}
    return Manifest(key(w.metadata), meta_row(w.metadata), msgspec.json.encode(hashes))


class WireCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str | None = ""
    message: str | None = ""
    last_transition_time: str | None = None


class WireRef(Wire):
    name: str = ""
    namespace: str = ""


def when(text: str | None) -> int | None:
    """Unix seconds of an RFC 3339 time; None for none and for nonsense."""
    if not text:
        return None
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None


@lru_cache(16_384)
def _pair(key: str, value: str) -> tuple[str, str]:
    """Objects of a kind repeat their labels: one pair stands for all that are alike."""
    return intern(key), value


def pairs(found: Map) -> Labels:
    return tuple(_pair(k, v) for k, v in sorted(found.items())) if found else ()


_DROPPED = "kubectl.kubernetes.io/last-applied-configuration"


def meta_row(m: WireMeta, *, controlled: bool = False) -> Meta:
    """`controlled`: only a controller counts as the owner."""
    owners = m.owner_references or ()
    owner = next((o for o in owners if o.controller), owners[0] if owners and not controlled else WireOwner())
    annotations = {k: v for k, v in m.annotations.items() if k != _DROPPED} if m.annotations else None
    return Meta(
        m.uid, m.resource_version, m.generation, when(m.creation_timestamp), when(m.deletion_timestamp),
        pairs(m.labels), pairs(annotations), intern(owner.kind), intern(owner.name), intern(owner.uid),
        tuple(intern(f) for f in m.finalizers or ()),
    )  # fmt: skip


class _WithMeta(Wire):
    metadata: WireMeta


_with_meta = msgspec.json.Decoder(_WithMeta)


def manifest_row(raw: msgspec.Raw) -> Manifest:
    """A whole object as a row."""
    meta = _with_meta.decode(raw).metadata
    return Manifest(key(meta), meta_row(meta), bytes(raw))


def key(m: WireMeta) -> Key:
    return Key(intern(m.namespace), m.name)


_condition = lru_cache(16_384)(Condition)


def condition_rows(found: list[WireCondition] | None) -> tuple[Condition, ...]:
    return tuple(
        _condition(c.type, c.status, c.reason or "", c.message or "", when(c.last_transition_time)) for c in found or ()
    )


class WireRunning(Wire):
    started_at: str | None = None


class WireEnded(Wire):
    reason: str | None = ""
    exit_code: int | None = None
    finished_at: str | None = None


class WireWaiting(Wire):
    reason: str | None = ""


class WireStates(Wire):
    running: WireRunning | None = None
    waiting: WireWaiting | None = None
    terminated: WireEnded | None = None


class WireContainer(Wire):
    name: str = ""
    ready: bool | None = False
    restart_count: int | None = 0
    image: str | None = ""
    state: WireStates | None = None


class WireField(Wire):
    key: str = ""
    values: list[str] | None = None


class WireTerm(Wire):
    match_fields: list[WireField] | None = None


class WireRequired(Wire):
    node_selector_terms: list[WireTerm] | None = None


class WireNodeAffinity(Wire):
    required_during_scheduling_ignored_during_execution: WireRequired | None = None


class WireAffinity(Wire):
    node_affinity: WireNodeAffinity | None = None


class WirePodSpec(Wire):
    affinity: WireAffinity | None = None
    node_name: str | None = ""
    hostname: str | None = ""
    subdomain: str | None = ""
    host_network: bool | None = False


class WirePodStatus(Wire):
    phase: str | None = ""
    reason: str | None = ""
    pod_i_p: str | None = msgspec.field(default="", name="podIP")
    host_i_p: str | None = msgspec.field(default="", name="hostIP")
    start_time: str | None = None
    conditions: list[WireCondition] | None = None
    container_statuses: list[WireContainer] | None = None
    init_container_statuses: list[WireContainer] | None = None


class WirePod(Wire):
    metadata: WireMeta
    spec: WirePodSpec | None = None
    status: WirePodStatus | None = None


def _container(c: WireContainer, init: bool) -> ContainerState:
    states = c.state or WireStates()
    if states.terminated is not None:
        ended = states.terminated
        return ContainerState(intern(c.name), bool(c.ready), c.restart_count or 0, "terminated", ended.reason or "",
                              ended.exit_code, when(ended.finished_at), intern(c.image or ""), init)  # fmt: skip
    running, waiting = states.running, states.waiting
    return ContainerState(
        intern(c.name), bool(c.ready), c.restart_count or 0, "running" if running else "waiting" if waiting else "",
        (waiting.reason or "") if waiting else "", None, when(running.started_at) if running else None, intern(c.image or ""), init,
    )  # fmt: skip


def _pinned(spec: WirePodSpec) -> str:
    """The single node of a required match on metadata.name, or ""."""
    node = spec.affinity.node_affinity if spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    for term in (required.node_selector_terms or ()) if required else ():
        for found in term.match_fields or ():
            if found.key == "metadata.name" and found.values and len(found.values) == 1:
                return intern(found.values[0])
    return ""


def pod_row(w: WirePod) -> Pod:
    spec, status = w.spec or WirePodSpec(), w.status or WirePodStatus()
    return Pod(
        key(w.metadata), meta_row(w.metadata, controlled=True), intern(status.phase or ""), status.reason or "", spec.node_name or "",
        status.pod_i_p or "", status.host_i_p or "", spec.hostname or "", spec.subdomain or "", bool(spec.host_network),
        when(status.start_time), condition_rows(status.conditions),
        tuple(_container(c, True) for c in status.init_container_statuses or ())
        + tuple(_container(c, False) for c in status.container_statuses or ()),
        _pinned(spec),
        intern(w.metadata.generate_name),
    )  # fmt: skip


class WireTaint(Wire):
    key: str = ""
    value: str | None = ""
    effect: str = ""


class WireNodeSpec(Wire):
    unschedulable: bool | None = False
    taints: list[WireTaint] | None = None


class WireAddress(Wire):
    type: str = ""
    address: str = ""


class WireNodeInfo(Wire):
    kubelet_version: str | None = ""
    os_image: str | None = ""


class WireNodeStatus(Wire):
    conditions: list[WireCondition] | None = None
    addresses: list[WireAddress] | None = None
    allocatable: dict[str, str] | None = None
    node_info: WireNodeInfo | None = None


class WireKubeNode(Wire):
    metadata: WireMeta
    spec: WireNodeSpec | None = None
    status: WireNodeStatus | None = None


def kubenode_row(w: WireKubeNode) -> KubeNode:
    spec, status = w.spec or WireNodeSpec(), w.status or WireNodeStatus()
    can = status.allocatable or {}
    gpus = can.get("nvidia.com/gpu") or can.get("amd.com/gpu") or ""
    info = status.node_info or WireNodeInfo()
    return KubeNode(
        Key("", w.metadata.name), meta_row(w.metadata), bool(spec.unschedulable),
        tuple(f"{t.key}{'=' + t.value if t.value else ''}:{t.effect}" for t in spec.taints or ()),
        condition_rows(status.conditions), tuple((a.type, a.address) for a in status.addresses or ()),
        intern(can.get("cpu", "")), intern(can.get("memory", "")), int(gpus) if gpus.isdigit() else None,
        intern(info.kubelet_version or ""), intern(info.os_image or ""),
    )  # fmt: skip


class WireImage(Wire):
    image: str | None = ""


class WireExtra(Wire):
    host_network: bool | None = False


class WireTemplate(Wire):
    spec: WireExtra | None = None


class WireEnabled(Wire):
    enabled: bool | None = None


class WireStrategy(Wire):
    type: str | None = ""


class WireNodeSetSpec(Wire):
    controller_ref: WireRef | None = None
    scaling_mode: str | None = ""
    replicas: int | None = None
    partition: WireEnabled | None = None
    template: WireTemplate | None = None
    ordinal_padding: int | None = None
    update_strategy: WireStrategy | None = None
    slurmd: WireImage | None = None
    extra_conf: str | None = ""


class WireNodeSetStatus(Wire):
    selector: str | None = ""
    replicas: int | None = None
    desired: int | None = None
    updated_replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    unavailable_replicas: int | None = None
    slurm_idle: int | None = None
    slurm_allocated: int | None = None
    slurm_down: int | None = None
    slurm_drain: int | None = None
    conditions: list[WireCondition] | None = None


class WireNodeSet(Wire):
    metadata: WireMeta
    spec: WireNodeSetSpec | None = None
    status: WireNodeSetStatus | None = None


def _ref(found: WireRef | None, own: str) -> Key:
    """A reference without namespace means the object's own."""
    return Key(found.namespace or own, found.name) if found else Key(own, "")


def nodeset_row(w: WireNodeSet) -> NodeSet:
    spec, s = w.spec or WireNodeSetSpec(), w.status or WireNodeSetStatus()
    mode = spec.scaling_mode or "StatefulSet"
    replicas = spec.replicas if spec.replicas is not None else 1
    pod = spec.template.spec if spec.template and spec.template.spec else WireExtra()
    return NodeSet(
        key(w.metadata), meta_row(w.metadata), _ref(spec.controller_ref, w.metadata.namespace), mode,
        None if mode == "DaemonSet" else replicas, spec.partition.enabled if spec.partition else None,
        bool(pod.host_network), spec.ordinal_padding, (spec.update_strategy.type or "") if spec.update_strategy else "",
        (spec.slurmd.image or "") if spec.slurmd else "", spec.extra_conf or "", s.selector or "", s.replicas, s.desired,
        s.updated_replicas, s.ready_replicas, s.available_replicas, s.unavailable_replicas, s.slurm_idle,
        s.slurm_allocated, s.slurm_down, s.slurm_drain, condition_rows(s.conditions),
    )  # fmt: skip


class WireKeyRef(Wire):
    name: str | None = ""
    key: str | None = ""


class WireHost(Wire):
    host: str | None = ""


class WireControllerSpec(Wire):
    cluster_name: str | None = ""
    external: bool | None = False
    external_config: WireHost | None = None
    jwt_key_ref: WireKeyRef | None = None
    jwt_hs256_key_ref: WireKeyRef | None = msgspec.field(default=None, name="jwtHs256KeyRef")
    slurmctld: WireImage | None = None


class WireConditions(Wire):
    conditions: list[WireCondition] | None = None
    replicas: int | None = None


class WireController(Wire):
    metadata: WireMeta
    spec: WireControllerSpec | None = None
    status: WireConditions | None = None


def controller_row(w: WireController) -> Controller:
    spec = w.spec or WireControllerSpec()
    jwt = spec.jwt_key_ref or spec.jwt_hs256_key_ref or WireKeyRef()
    return Controller(
        key(w.metadata), meta_row(w.metadata), spec.cluster_name or f"{w.metadata.namespace}_{w.metadata.name}", bool(spec.external),
        (spec.external_config.host or "") if spec.external_config else "", jwt.name or "", jwt.key or "",
        (spec.slurmctld.image or "") if spec.slurmctld else "", condition_rows(w.status.conditions if w.status else None),
    )  # fmt: skip


class WireService(Wire):
    port: int | None = None


class WireMemberSpec(Wire):
    controller_ref: WireRef | None = None
    replicas: int | None = None
    service: WireService | None = None


REST_PORT = 6820


class WireMember(Wire):
    metadata: WireMeta
    spec: WireMemberSpec | None = None
    status: WireConditions | None = None


def loginset_row(w: WireMember) -> LoginSet:
    spec, status = w.spec or WireMemberSpec(), w.status or WireConditions()
    return LoginSet(key(w.metadata), meta_row(w.metadata), _ref(spec.controller_ref, w.metadata.namespace),
                    spec.replicas, status.replicas, condition_rows(status.conditions))  # fmt: skip


def restapi_row(w: WireMember) -> RestApi:
    """Its service is NAME-restapi, on the port that it asks for."""
    spec, status = w.spec or WireMemberSpec(), w.status or WireConditions()
    port = (spec.service and spec.service.port) or REST_PORT
    return RestApi(key(w.metadata), meta_row(w.metadata), _ref(spec.controller_ref, w.metadata.namespace),
                   spec.replicas, f"{w.metadata.name}-restapi", port, condition_rows(status.conditions))  # fmt: skip


class WireStorage(Wire):
    host: str | None = ""
    database: str | None = ""


class WireAccountingSpec(Wire):
    external: bool | None = False
    external_config: WireHost | None = None
    storage_config: WireStorage | None = None
    slurmdbd: WireImage | None = None


class WireAccounting(Wire):
    metadata: WireMeta
    spec: WireAccountingSpec | None = None
    status: WireConditions | None = None


def accounting_row(w: WireAccounting) -> Accounting:
    spec = w.spec or WireAccountingSpec()
    store = spec.storage_config or WireStorage()
    storage = "/".join(p for p in (store.host, store.database) if p)
    return Accounting(
        key(w.metadata), meta_row(w.metadata), (spec.external_config.host or "") if spec.external_config else "", storage,
        (spec.slurmdbd.image or "") if spec.slurmdbd else "", condition_rows(w.status.conditions if w.status else None),
    )  # fmt: skip


class WireTokenSpec(Wire):
    username: str | None = ""
    lifetime: str | None = ""
    refresh: bool | None = None
    secret_ref: WireRef | None = None


class WireTokenStatus(Wire):
    issued_at: str | None = None
    conditions: list[WireCondition] | None = None


class WireToken(Wire):
    metadata: WireMeta
    spec: WireTokenSpec | None = None
    status: WireTokenStatus | None = None


def token_row(w: WireToken) -> Token:
    spec, status = w.spec or WireTokenSpec(), w.status or WireTokenStatus()
    return Token(
        key(w.metadata), meta_row(w.metadata), spec.username or "", spec.lifetime or "", spec.refresh,
        spec.secret_ref.name if spec.secret_ref else "", when(status.issued_at), condition_rows(status.conditions),
    )  # fmt: skip


class WirePhase(Wire):
    phase: str | None = ""


class WireNamespace(Wire):
    metadata: WireMeta
    status: WirePhase | None = None


def namespace_row(w: WireNamespace) -> Namespace:
    return Namespace(key(w.metadata), meta_row(w.metadata), (w.status.phase or "") if w.status else "")


class WireLeaseSpec(Wire):
    holder_identity: str | None = ""
    renew_time: str | None = None
    lease_duration_seconds: int | None = None


class WireLease(Wire):
    metadata: WireMeta
    spec: WireLeaseSpec | None = None


def operator_row(w: WireLease) -> Operator:
    spec = w.spec or WireLeaseSpec()
    return Operator(key(w.metadata), spec.holder_identity or "", when(spec.renew_time), spec.lease_duration_seconds)


class WireObject(Wire):
    kind: str | None = ""
    namespace: str | None = ""
    name: str | None = ""


class WireSource(Wire):
    component: str | None = ""


class WireSeries(Wire):
    count: int | None = None
    last_observed_time: str | None = None


class WireEvent(Wire):
    metadata: WireMeta
    involved_object: WireObject | None = None
    type: str | None = ""
    reason: str | None = ""
    message: str | None = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: WireSeries | None = None
    source: WireSource | None = None
    reporting_component: str | None = ""


def event_row(w: WireEvent) -> Event:
    about, series = w.involved_object or WireObject(), w.series or WireSeries()
    first = when(w.first_timestamp) or when(w.event_time) or when(w.metadata.creation_timestamp)
    last = when(series.last_observed_time) or when(w.last_timestamp) or first
    return Event(
        key(w.metadata), about.kind or "", about.namespace or "", about.name or "", w.type or "", w.reason or "",
        w.message or "", series.count or w.count or 1, first, last,
        w.reporting_component or ((w.source.component or "") if w.source else ""),
    )  # fmt: skip


class WireSelector(Wire):
    match_labels: Map = None


class WireBudgetSpec(Wire):
    selector: WireSelector | None = None


class WireBudgetStatus(Wire):
    disruptions_allowed: int | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None


class WireBudget(Wire):
    metadata: WireMeta
    spec: WireBudgetSpec | None = None
    status: WireBudgetStatus | None = None


def budget_row(w: WireBudget) -> Budget:
    s = w.status or WireBudgetStatus()
    match: Any = w.spec.selector.match_labels if w.spec and w.spec.selector else None
    return Budget(key(w.metadata), ",".join(f"{k}={v}" for k, v in pairs(match)), s.disruptions_allowed,
                  s.current_healthy, s.desired_healthy)  # fmt: skip
