"""What Controller and Accounting have in common: keys, and a daemon that may run outside of Kubernetes."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import model_validator

from slinkytui.backend.crds.core import BadShape
from slinkytui.backend.crds.schema import Cel, Shape, blank, filled
from slinkytui.backend.crds.shared import External, KeyRef

JWT: Final = "Secret key with the key that tokens are signed with."
OLD_JWT: Final = "Deprecated: use jwtKeyRef."


class DaemonSpec(Shape):
    rules: ClassVar[tuple[Cel, ...]] = (
        Cel("!self.external ? has(self.slurmKeyRef) : true", "slurmKeyRef must be set when external is false"),
        Cel("!self.external ? has(self.jwtKeyRef) || has(self.jwtHs256KeyRef) : true",
            "jwtKeyRef or jwtHs256KeyRef must be set when external is false"),
        Cel("self.external ? has(self.externalConfig) : true", "externalConfig must be set when external is true"),
    )  # fmt: skip

    slurm_key_ref: KeyRef | None = blank(None, "Secret key with the key of auth/slurm.")
    jwt_key_ref: KeyRef | None = blank(None, JWT)
    jwt_hs256_key_ref: KeyRef | None = blank(None, OLD_JWT)
    jwks_key_ref: KeyRef | None = blank(None, "ConfigMap key with the public keys of tokens that others sign.")
    external: bool = filled(False, "Whether the daemon runs outside of Kubernetes.")
    external_config: External | None = blank(None, "Where the daemon outside listens.")

    @model_validator(mode="after")
    def _is_whole(self) -> DaemonSpec:
        if self.external and self.external_config is None:
            raise BadShape("externalConfig", "must be set when external is true")
        if not self.external and not (self.slurm_key_ref and self.slurm_key_ref.name):
            raise BadShape("slurmKeyRef", "must be set when external is false")
        return self

    @property
    def jwt_key(self) -> KeyRef | None:
        """The key that tokens are signed with; the old field counts where the new one is away."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref
