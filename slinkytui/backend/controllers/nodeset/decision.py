"""What a decision consists of: effects in order, the reasons for them, and what is waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slinkytui.backend.models import Pod


@dataclass(frozen=True, slots=True)
class CreatePod:
    """A worker for an ordinal, or for a Kubernetes node."""

    ordinal: int = -1
    node: str = ""

    @property
    def slot(self) -> str:
        return self.node or str(self.ordinal)


@dataclass(frozen=True, slots=True)
class PatchPod:
    """Labels and annotations to set; None removes one. Guarded by the pod's UID and resourceVersion."""

    pod: Pod
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    guarded: bool = True
    """Whether the pod must not have changed since it was looked at."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Drain a Slurm node, or give our own drain its new reason."""

    pod: Pod
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Undrain:
    """Lift a drain that is ours; whether it still is, is read again right before."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a worker, with its UID. `ended`: its phase is terminal. Others are verified by a fresh look at Slurm."""

    pod: Pod
    node: str
    why: str
    ended: bool = False
    forced: bool = False


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """Set fields of a Slurm node's record: comment, topology, features, or RESUME, in one request."""

    node: str
    body: Mapping[str, Any]
    what: str


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """Remove the Slurm record of a worker that is gone for good; read again right before. `orphaned`: its NodeSet goes as
    well, so that it need not have fallen silent."""

    node: str
    why: str
    orphaned: bool = False


@dataclass(frozen=True, slots=True)
class PodConditions:
    """Conditions to set, and types of ours to drop, on a pod's status."""

    pod: Pod
    wanted: tuple[tuple[str, str], ...]
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """The NodeSet's status as it is to be."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finalizers:
    """The whole list of finalizers of the NodeSet."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """An object beside the pods: made where it is missing, patched where it differs."""

    plural: str
    body: Mapping[str, Any]
    exists: bool


@dataclass(frozen=True, slots=True)
class OwnClaim:
    """The owner references of a worker's claim as they are to be. The worker is not deleted before that is written."""

    pod: Pod
    name: str
    uid: str
    version: str
    owners: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Adopt:
    """Make an object that has no controller ours; the NodeSet is read again right before."""

    plural: str
    name: str
    uid: str
    version: str


@dataclass(frozen=True, slots=True)
class RankRevision:
    """Make a revision the newest again."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class ForgetRevision:
    """Delete a revision that no pod is of and that the history has no room for."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Tell:
    """An event about the NodeSet. `about` is a pod that it is related to."""

    reason: str
    action: str
    text: str
    warning: bool = False
    about: Pod | None = None


Effect = (
    CreatePod
    | PatchPod
    | Drain
    | Undrain
    | DeletePod
    | UpdateNode
    | DeleteRecord
    | PodConditions
    | PatchStatus
    | Finalizers
    | Apply
    | OwnClaim
    | Adopt
    | RankRevision
    | ForgetRevision
    | Tell
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is done or waited for. `subject` is a pod's or a node's name, or "" for the NodeSet."""

    subject: str
    text: str
    since: float | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """`after` is in how many seconds to look again at the latest, None: when something changes."""

    effects: tuple[Effect, ...] = ()
    why: tuple[Reason, ...] = ()
    after: float | None = None
    hurry: bool = False
    """Whether Slurm's next word is waited for: a worker drains to leave, or runs and is not registered yet."""
