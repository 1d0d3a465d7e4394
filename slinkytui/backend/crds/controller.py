"""The Controller resource, as far as the objects of a worker need it: how slurmd finds slurmctld and with which keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field, ValidationError, model_validator

from slinkytui.backend.crds.core import BadShape
from slinkytui.backend.crds.shared import BadResource, KeyRef, LocalRef, Meta, Shape, why

SLURMCTLD_PORT: Final = 6817


class External(Shape):
    """Where a daemon outside of Kubernetes listens."""

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)


class Ha(Shape):
    enabled: bool = False
    backups: int = 1


class ControllerSpec(Shape):
    cluster_name: str = ""
    slurm_key_ref: KeyRef | None = None
    jwt_key_ref: KeyRef | None = None
    jwt_hs256_key_ref: KeyRef | None = None
    accounting_ref: LocalRef | None = None
    external: bool = False
    external_config: External | None = None
    ha: Ha = Ha()
    extra_conf: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> ControllerSpec:
        if self.external and self.external_config is None:
            raise BadShape("externalConfig", "must be set when external is true")
        if not self.external and not (self.slurm_key_ref and self.slurm_key_ref.name):
            raise BadShape("slurmKeyRef", "must be set when external is false")
        return self


class Controller(Shape):
    """A slurmctld: a Slurm cluster."""

    meta: Meta = Field(alias="metadata")
    spec: ControllerSpec = ControllerSpec.model_construct()

    @property
    def cluster(self) -> str:
        """ClusterName in slurm.conf."""
        return self.spec.cluster_name or f"{self.meta.namespace}_{self.meta.name}"

    @property
    def conf_server(self) -> str:
        """host:port that slurmd fetches its configuration from."""
        outside = self.spec.external_config if self.spec.external else None
        if outside:
            return f"{outside.host}:{outside.port}"
        return f"{self.meta.name}-controller.{self.meta.namespace}:{SLURMCTLD_PORT}"

    @property
    def jwt_key(self) -> KeyRef | None:
        """The key that tokens are signed with; the old field counts where the new one is away."""
        return self.spec.jwt_key_ref or self.spec.jwt_hs256_key_ref

    @property
    def replicas(self) -> int:
        if self.spec.external or not self.spec.ha.enabled:
            return 1
        return 1 + self.spec.ha.backups


def parse_controller(raw: Mapping[str, Any]) -> Controller | BadResource:
    """Never raises: what cannot be read comes back as the field and the reason."""
    try:
        return Controller.model_validate({**raw, "spec": raw.get("spec") or {}})
    except ValidationError as problem:
        return why(problem)
