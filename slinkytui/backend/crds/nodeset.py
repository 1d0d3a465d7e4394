"""The NodeSet resource as a type, with the defaults that hold when the API server has not filled them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from slinkytui.backend.crds.core import BadShape, canonical
from slinkytui.backend.crds.schema import EITHER, As, Cel, Int32, Int64, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import (
    BadResource,
    Container,
    Doubt,
    KeyRef,
    LocalRef,
    Meta,
    Moment,
    PlainStatus,
    PodTemplate,
    Seconds,
    why,
)

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_OPAQUE: Final = {"slurmd": "Container", "logfile": "Container"}
WIDEST: Final = 10
"""More digits than an ordinal of 32 bits has."""


@dataclass(frozen=True, slots=True)
class MaxUnavailable:
    """How many workers may be away at once: a number, or a text like 25%."""

    given: int | str = "25%"

    def of(self, total: int) -> int:
        """Of `total` workers: percentages round up, what cannot be read is 1, and never more than all."""
        number, share = self._read()
        return max(0, min(-(-number * total // 100) if share else number, total))

    def doubt(self) -> str:
        """What is odd about it, or ""."""
        number, share = self._read()
        if self._unreadable():
            return f"{self.given!r} is neither a number nor a percentage; 1 is taken"
        if number < 1:
            return f"{self.given} lets no worker go: nothing would ever be updated"
        return f"{self.given} is more than all" if share and number > 100 else ""

    def _unreadable(self) -> bool:
        return isinstance(self.given, str) and not re.fullmatch(r"[0-9]+%", self.given, re.ASCII)

    def _read(self) -> tuple[int, bool]:
        if isinstance(self.given, int):
            return self.given, False
        return (1, False) if self._unreadable() else (int(self.given[:-1]), True)


def _limit(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a number or a text like 25%")
    return MaxUnavailable(value)


Retention = Literal["Retain", "Delete"]


class RollingUpdate(Shape):
    max_unavailable: Annotated[MaxUnavailable, BeforeValidator(_limit), As(EITHER)] = filled(
        MaxUnavailable(), "How many may be away at once: a number or a percentage.", default="25%"
    )


class ScheduledUpdate(Shape):
    """`duration` in seconds."""

    start_time: Moment | None = blank(None, "When the reservation starts.")
    duration: Seconds = filled(1800.0, "How long it lasts, like 1h30m.", default="30m")
    flags: list[str] = blank([], "Further flags of the reservation.")


class UpdateStrategy(Shape):
    rules: ClassVar[tuple[Cel, ...]] = (
        Cel("self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime) && "
            "has(self.scheduledUpdate.duration))",
            "scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate"),
    )  # fmt: skip

    type: Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"] = filled("RollingUpdate", "When pods are replaced.")
    rolling_update: RollingUpdate = blank(RollingUpdate.model_construct(), "Bounds of a rolling update.")
    scheduled_update: ScheduledUpdate | None = blank(None, "The reservation in which it is done.")


class Retain(Shape):
    """What becomes of the pods' claims."""

    when_deleted: Retention = filled("Retain", "When the NodeSet is deleted.")
    when_scaled: Retention = filled("Retain", "When their pod is scaled in.")


class Ssh(Shape):
    enabled: bool = filled(False, "Whether users can log in to workers.", required=True)
    extra_sshd_config: str = blank("", "Lines put at the end of sshd_config.")
    sssd_conf_ref: KeyRef = needed("Secret key with sssd.conf.")

    @model_validator(mode="after")
    def _has_sssd(self) -> Ssh:
        if self.enabled and not self.sssd_conf_ref.name:
            raise BadShape("sssdConfRef.name", "must not be empty when ssh is enabled")
        return self


class Partition(Shape):
    enabled: bool = filled(False, "Whether there is one.", required=True)
    config: Annotated[str, Field(pattern=r"\A[^\n]*\z")] = blank("", "Options on its line.", pattern=r"^[^\n]+$")


def _canonical(about: str, **schema: Any) -> Any:
    """A part that `canonical_spec` always gives, though the resource need not have it."""
    return Field(description=about, json_schema_extra={"schema": schema, "required": False})


class NodeSetSpec(Shape):
    """`template` (metadata and spec), `slurmd`, `logfile` and the claim templates are in their canonical form. Nobody writes
    into them."""

    controller_ref: LocalRef = needed("The Controller of its cluster. It cannot be changed.")
    replicas: Annotated[Int32, Field(ge=0)] = filled(1, "How many pods; without meaning in DaemonSet mode.")
    scaling_mode: Literal["StatefulSet", "DaemonSet"] = filled(
        "StatefulSet", "A number of pods, or one on each matching node.", enum=["DaemonSet", "StatefulSet"]
    )
    slurmd: Container = _canonical("A core/v1 Container laid over the slurmd container.")
    logfile: Container = _canonical("A core/v1 Container laid over the log sidecar.")
    ssh: Ssh | None = blank(None, "SSH into the workers.")
    template: Annotated[dict[str, Any], As(PodTemplate)] = _canonical(
        "Laid over the pods; its hostname is the prefix of their names."
    )
    extra_conf: str = blank("", "Key=Value words of slurmd's --conf.")
    partition: Partition = blank(Partition.model_construct(), "A partition of its own.")
    volume_claim_templates: Annotated[list[dict[str, Any]], As({"x-kubernetes-preserve-unknown-fields": True})] = blank(
        [], "Claims made for each pod. They cannot be changed.", nullable=True
    )
    update_strategy: UpdateStrategy = blank(UpdateStrategy.model_construct(), "How pods are brought to a new template.")
    revision_history_limit: Int32 = filled(0, "How many old revisions are kept.")
    persistent_volume_claim_retention_policy: Retain = blank(
        Retain.model_construct(), "What becomes of the pods' claims."
    )
    min_ready_seconds: Int32 = blank(0, "How long a pod is ready before it counts.")
    ordinal_padding: Annotated[int, Field(ge=0)] = filled(0, "Digits of the pods' numbers.")
    pin_to_node: bool = filled(False, "Whether a pod stays on its node.")
    workload_disruption_protection: bool = filled(True, "Whether pods with jobs are kept from eviction.")
    prune_slurm_node_records: Literal["Never", "NodeNotFound"] = filled(
        "Never", "When records of nodes that are gone are deleted."
    )
    oversubscribe_node: bool = filled(False, "Whether a node may run several workers.")

    @model_validator(mode="after")
    def _is_whole(self) -> NodeSetSpec:
        if not self.controller_ref.name:
            raise BadShape("controllerRef.name", "must not be empty")
        host = self.host_prefix
        if host and (len(host) > 253 or not _NAME.fullmatch(host.rstrip("-"))):
            raise BadShape("template.spec.hostname", f"{host!r} is not a host name in lower case")
        names = [str(c["metadata"].get("name", "")) for c in self.volume_claim_templates]
        if not all(names) or len(set(names)) < len(names):
            raise BadShape("volumeClaimTemplates", "need names, each its own")
        return self

    @property
    def host_prefix(self) -> str:
        """The template's hostname, which stands before a worker's ordinal."""
        return str(self.template["spec"].get("hostname", ""))

    @property
    def host_network(self) -> bool:
        return bool(self.template["spec"].get("hostNetwork", False))

    @property
    def min_ready_s(self) -> int:
        return max(0, self.min_ready_seconds)

    @property
    def kept_revisions(self) -> int:
        """How many revisions that no pod is of are kept."""
        return max(0, self.revision_history_limit)

    @property
    def has_ssh(self) -> bool:
        return self.ssh is not None and self.ssh.enabled


class NodeSetStatus(PlainStatus):
    replicas: Int32 = blank(0, "How many pods there are.")
    updated_replicas: Int32 = blank(0, "How many pods are of the newest revision.")
    ready_replicas: Int32 = blank(0, "How many pods are ready.")
    available_replicas: Int32 = blank(0, "How many pods are available.")
    unavailable_replicas: Int32 = blank(0, "How many pods are not available.")
    desired: Int32 = blank(0, "How many pods there shall be.")
    slurm_idle: Int32 = blank(0, "How many Slurm nodes are idle.")
    slurm_allocated: Int32 = blank(0, "How many Slurm nodes are allocated or mixed.")
    slurm_down: Int32 = blank(0, "How many Slurm nodes are down.")
    slurm_drain: Int32 = blank(0, "How many Slurm nodes are drained.")
    observed_generation: Int64 = blank(0, "The generation that this is of.")
    node_set_hash: str = needed("The newest revision's hash.")
    collision_count: Int32 = blank(0, "How often a revision's name was taken.")
    ordinal_to_node: dict[str, str] = blank({}, "Which node each number is pinned to.")
    selector: str = needed("The selector of its pods.")


class NodeSet(Shape):
    """A set of worker pods, each one Slurm node."""

    meta: Meta = Field(alias="metadata")
    spec: NodeSetSpec
    status: dict[str, Any] = {}

    @property
    def slurm_name(self) -> str:
        """The name of its NodeSet line in slurm.conf, and the feature that its nodes carry."""
        words = self.spec.host_prefix.split()
        return (words[0].strip("-") if words else "") or self.meta.name

    @property
    def is_deleting(self) -> bool:
        return self.meta.deletion_timestamp is not None


def canonical_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec with its opaque parts in their canonical form. Raises BadShape."""
    template = _map(spec.get("template"), "spec.template")
    meta = _map(template.get("metadata"), "spec.template.metadata")
    claims = spec.get("volumeClaimTemplates")
    return {
        **spec,
        **{k: canonical(_map(spec.get(k), f"spec.{k}"), kind, f"spec.{k}") for k, kind in _OPAQUE.items()},
        "template": {
            "metadata": {
                k: found for k in ("labels", "annotations")
                if (found := canonical(_map(meta.get(k), f"spec.template.metadata.{k}"), "{}string", f"spec.template.metadata.{k}"))
            },
            "spec": canonical(_map(template.get("spec"), "spec.template.spec"), "PodSpec", "spec.template.spec"),
        },
        "volumeClaimTemplates": canonical([] if claims is None else claims, "[]PersistentVolumeClaim", "spec.volumeClaimTemplates"),
    }  # fmt: skip


def _map(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadShape(path, "must be an object")
    return value


def parse_nodeset(raw: Mapping[str, Any]) -> NodeSet | BadResource:
    """Never raises: what cannot be read comes back as the field and the reason."""
    try:
        return NodeSet.model_validate({**raw, "spec": canonical_spec(_map(raw.get("spec"), "spec"))})
    except BadShape as problem:
        return BadResource(problem.path, problem.message)
    except ValidationError as problem:
        return why(problem)


def malformed_conf(text: str) -> str:
    """The first word of an extraConf that is no Key=Value, or ""."""
    return next((w for w in text.split() if "=" not in w), "")


def doubts(spec: NodeSetSpec) -> tuple[Doubt, ...]:
    """What is accepted, and what is done with it."""
    found = [
        ("spec.updateStrategy.rollingUpdate.maxUnavailable", spec.update_strategy.rolling_update.max_unavailable.doubt()),
        ("spec.minReadySeconds", "is negative; 0 is taken" if spec.min_ready_seconds < 0 else ""),
        ("spec.revisionHistoryLimit", "is negative; 0 is taken" if spec.revision_history_limit < 0 else ""),
        ("spec.ordinalPadding", f"is more than {WIDEST} digits" if spec.ordinal_padding > WIDEST else ""),
        ("spec.extraConf", "has a line break" if "\n" in spec.extra_conf.strip("\n") else ""),
    ]  # fmt: skip
    word = malformed_conf(spec.extra_conf)
    if word:
        found.append(("spec.extraConf", f"{word!r} is no Key=Value; all of it is ignored"))
    update = spec.update_strategy
    if update.type == "ScheduledUpdate" and (
        update.scheduled_update is None or update.scheduled_update.start_time is None
    ):
        found.append(("spec.updateStrategy.scheduledUpdate.startTime", "is not given; nothing is updated"))
    unnamed = any(not c["name"] for c in spec.template["spec"]["containers"] or ())
    found.append(
        ("spec.template.spec.containers", "one has no name; the API server will refuse the pods" if unnamed else "")
    )
    return tuple(Doubt(path, message) for path, message in found if message)
