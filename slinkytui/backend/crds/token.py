"""The Token resource: a JWT for Slurm, kept in a Secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from slinkytui.backend.crds.core import BadShape
from slinkytui.backend.crds.daemons import JWT, OLD_JWT
from slinkytui.backend.crds.schema import Cel, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import BadResource, KeyRef, Meta, Moment, PlainStatus, Seconds, read


class TokenSpec(Shape):
    rules: ClassVar[tuple[Cel, ...]] = (
        Cel("has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)", "jwtKeyRef or jwtHs256KeyRef must be set"),
    )

    jwt_key_ref: KeyRef | None = blank(None, JWT)
    jwt_hs256_key_ref: KeyRef | None = blank(None, OLD_JWT)
    username: str = needed("Whose token it is.")
    lifetime: Seconds | None = blank(None, "How long it is valid, like 1h30m.", type="string")
    refresh: bool = filled(True, "Whether it is made anew in time.")
    secret_ref: KeyRef | None = blank(None, "The Secret and the key in it to write it to.")

    @model_validator(mode="after")
    def _is_signed(self) -> TokenSpec:
        if self.jwt_key is None:
            raise BadShape("jwtKeyRef", "must be set")
        return self

    @property
    def jwt_key(self) -> KeyRef | None:
        """The key that it is signed with; the old field counts where the new one is away."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref


class TokenStatus(PlainStatus):
    issued_at: Moment | None = blank(None, "When it was issued.")


class Token(Shape):
    """A JWT for Slurm."""

    meta: Meta = Field(alias="metadata")
    spec: TokenSpec


def parse_token(raw: Mapping[str, Any]) -> Token | BadResource:
    """Never raises: what cannot be read comes back as the field and the reason."""
    return read(Token, raw)
