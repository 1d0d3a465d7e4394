"""The Token resource: a JWT for Slurm, kept in a Secret."""

from __future__ import annotations

from typing import ClassVar

from slinkytui.backend.crds.daemons import JWT, OLD_JWT
from slinkytui.backend.crds.schema import Cel, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import KeyRef, Moment, PlainStatus, Seconds


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


class TokenStatus(PlainStatus):
    issued_at: Moment | None = blank(None, "When it was issued.")
