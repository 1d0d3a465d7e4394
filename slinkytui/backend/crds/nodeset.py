"""The NodeSet resource as a type, with the defaults that hold when the API server has not filled them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from slinkytui.backend.crds.core import BadShape, canonical
from slinkytui.backend.crds.shared import BadResource, Doubt, KeyRef, LocalRef, Meta, Moment, Shape, parse_duration, why

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


def _seconds(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(_seconds)]
Retention = Literal["Retain", "Delete"]


class RollingUpdate(Shape):
    max_unavailable: Annotated[MaxUnavailable, BeforeValidator(_limit)] = MaxUnavailable()


class ScheduledUpdate(Shape):
    """`duration` in seconds."""

    start_time: Moment | None = None
    duration: Seconds = 1800.0
    flags: list[str] = []


class UpdateStrategy(Shape):
    type: Literal["RollingUpdate", "OnDelete", "ScheduledUpdate"] = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()
    scheduled_update: ScheduledUpdate | None = None


class Retain(Shape):
    """What becomes of the pods' claims."""

    when_deleted: Retention = "Retain"
    when_scaled: Retention = "Retain"


class Ssh(Shape):
    enabled: bool = False
    extra_sshd_config: str = ""
    sssd_conf_ref: KeyRef

    @model_validator(mode="after")
    def _has_sssd(self) -> Ssh:
        if self.enabled and not self.sssd_conf_ref.name:
            raise BadShape("sssdConfRef.name", "must not be empty when ssh is enabled")
        return self


class Partition(Shape):
    enabled: bool = False
    config: Annotated[str, Field(pattern=r"\A[^\n]*\z")] = ""


class NodeSetSpec(Shape):
    """`template` (metadata and spec), `slurmd`, `logfile` and the claim templates are in their canonical form. Nobody writes
    into them."""

    controller_ref: LocalRef
    replicas: Annotated[int, Field(ge=0)] = 1
    scaling_mode: Literal["StatefulSet", "DaemonSet"] = "StatefulSet"
    slurmd: dict[str, Any]
    logfile: dict[str, Any]
    ssh: Ssh | None = None
    template: dict[str, Any]
    extra_conf: str = ""
    partition: Partition = Partition()
    volume_claim_templates: list[dict[str, Any]] = []
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int = 0
    persistent_volume_claim_retention_policy: Retain = Retain()
    min_ready_seconds: int = 0
    ordinal_padding: Annotated[int, Field(ge=0)] = 0
    pin_to_node: bool = False
    workload_disruption_protection: bool = True
    prune_slurm_node_records: Literal["Never", "NodeNotFound"] = "Never"
    oversubscribe_node: bool = False

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
