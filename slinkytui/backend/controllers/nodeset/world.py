"""The frozen world that a NodeSet's decision is made from. What could not be read is unknown, never empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from slinkytui.backend.models import Job, Key, KubeNode, Pod, SlurmNode

STATEFUL: Final = "StatefulSet"
DAEMON: Final = "DaemonSet"
RETAIN: Final = "Retain"
DELETE: Final = "Delete"
NODESET: Final = "nodeset.slinky.slurm.net"
CORDON: Final = f"{NODESET}/pod-cordon"
COST: Final = f"{NODESET}/pod-deletion-cost"
DEADLINE: Final = f"{NODESET}/pod-deadline"
CORDON_REASON: Final = f"{NODESET}/node-cordon-reason"
HOSTNAME_OVERRIDE: Final = f"{NODESET}/hostname-override"
MODE: Final = f"{NODESET}/scaling-mode"
POD_NAME: Final = f"{NODESET}/pod-name"
POD_INDEX: Final = f"{NODESET}/pod-index"
POD_HOSTNAME: Final = f"{NODESET}/pod-hostname"
PROTECT: Final = f"{NODESET}/pod-protect"
HASH: Final = "controller.kubernetes.io/hash"
TOPOLOGY: Final = "topology.slinky.slurm.net/spec"
FEATURES: Final = "features.slinky.slurm.net/spec"
FEATURE_PREFIX: Final = "k8s/"
OURS: Final = "tui.slinky.slurm.net"
CAUSES: Final = f"{OURS}/causes"
DRAIN_FINALIZER: Final = f"{OURS}/drain"
SKIP_DRAIN: Final = f"{OURS}/delete-without-drain"
"""Set to "true" on a NodeSet, its deletion kills what runs on it: a person's explicit choice."""
PREFIX: Final = "slurm-operator: "
"""What the operator's reasons in Slurm begin with; the blank is part of it."""
TERMINATING: Final = f"{PREFIX}Pod is terminating"
"""What the preStop hook of a worker writes when it sets its node DOWN (with a semicolon or without)."""


class Strategy(StrEnum):
    ROLLING = "RollingUpdate"
    ON_DELETE = "OnDelete"
    SCHEDULED = "ScheduledUpdate"


class Prune(StrEnum):
    NEVER = "Never"
    NOT_FOUND = "NodeNotFound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The part of a NodeSet's spec that decides. `max_unavailable` is a number, or a text like 25%."""

    replicas: int = 1
    mode: str = STATEFUL
    padding: int = 0
    strategy: Strategy = Strategy.ROLLING
    max_unavailable: int | str = "25%"
    min_ready_s: int = 0
    protect: bool = True
    pin: bool = False
    prune: Prune = Prune.NEVER
    host_prefix: str = ""
    """The template's hostname, which stands before the padded ordinal."""
    host_network: bool = False
    node_selector: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    required_terms: tuple[Mapping[str, Any], ...] = ()
    """Required node affinity of the template: terms with matchExpressions and matchFields, any of which must match."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    claims: tuple[str, ...] = ()
    """The names of the claim templates."""
    when_deleted: str = RETAIN
    when_scaled: str = RETAIN
    daemon_prefix: str = ""
    """What stands before the host names of daemon pods."""


class Claim(NamedTuple):
    """A worker's claim of a volume. `owners` are its owner references, as the API server has them."""

    name: str
    uid: str
    version: str
    owners: tuple[Mapping[str, Any], ...] = ()
    deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSide:
    """What is known of a Slurm cluster. `why` says why it is unknown; "" while nodes and jobs are fresh and whole.

    `nodes` and `jobs` (by node name) hold the last that was seen, also while unknown. `expected` is False when the
    Controller itself is gone: nobody is left to ask. `absent` has the times of the first of the complete lists in a row
    that lacked a name, `listed` the time of the last complete one.
    """

    cluster: str = ""
    nodes: Mapping[str, SlurmNode] = field(default_factory=dict)
    jobs: Mapping[str, tuple[Job, ...]] = field(default_factory=dict)
    why: str = "no answer yet"
    since: float | None = None
    absent: Mapping[str, float] = field(default_factory=dict)
    expected: bool = True
    listed: float | None = None

    @property
    def known(self) -> bool:
        return not self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One NodeSet and all that decides over it.

    `pods` are the claimed ones. `refused` says why no pod can be made now (no Controller, a bad template), `bad` what is
    wrong with the resource itself. `backoff` holds until when no pod is made for an ordinal or a node (Unix seconds).
    """

    key: Key
    uid: str
    generation: int = 0
    version: str = ""
    deleting: bool = False
    deleted_at: float = 0.0
    """Since when it is to go (Unix seconds)."""
    finalizers: tuple[str, ...] = ()
    spec: Spec = field(default_factory=Spec)
    pods: tuple[Pod, ...] = ()
    nodes: Mapping[str, KubeNode] = field(default_factory=dict)
    update_hash: str = ""
    slurm: SlurmSide = field(default_factory=SlurmSide)
    status: Mapping[str, Any] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    """Slurm node names that pods of other NodeSets hold: name to the pod's name."""
    backoff: Mapping[str, float] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """The claims of its workers, also of those that are gone."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Annotations with hashes of the files of a worker that is not old; empty where files make nobody old."""
    kept: tuple[str, ...] = ()
    """What of the spec is not followed, and why."""
    refused: str = ""
    bad: str = ""
    propagated: tuple[str, ...] = ()
    """Types of node conditions whose texts become the reason of a cordoned node's drain."""
    create_on_cordoned: bool = False
