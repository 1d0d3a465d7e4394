"""The settings that a file or the environment may hold, checked; an error names the place, the key and what is valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from slinkytui.backend.errors import ConfigError
from slinkytui.config import FIELDS, near
from slinkytui.kinds import KINDS, find_kind


class Config(BaseModel):
    """The settings. `keys` maps a binding's id to its keys ("ctrl+d,x"), `columns` a kind to its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    theme: Literal["dark", "light", "safe"] = Field(default="dark", description="colours; safe is for the colour-blind")
    plain: bool = Field(default=False, description="ASCII only")
    read_only: bool = Field(default=False, description="bind no verb that writes")
    screen: str = Field(default="board", description="first screen: board, or a kind")
    namespace: str = Field(default="", description="one namespace; empty is all")
    context: str = Field(default="", description="kubeconfig context; empty is the current one")
    keys: dict[str, str] = Field(default_factory=dict, description='binding id to keys, like "node.drain" = "ctrl+d"')
    columns: dict[str, list[str]] = Field(
        default_factory=dict, description="kind to the fields of its columns, in order"
    )


def check(found: Mapping[str, Any], place: str) -> Config:
    """The settings of one place. Raises ConfigError for the first one that cannot be."""
    try:
        config = Config.model_validate(dict(found))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"{place}: no setting {key!r}", hint=near(key, FIELDS)) from None
        raise ConfigError(f"{place}: {key} = {first['input']!r}", detail=str(first["msg"])) from None
    if config.screen != "board" and find_kind(config.screen) is None:
        raise ConfigError(f"{place}: screen: no kind {config.screen!r}", hint=near(config.screen, ("board", *KINDS)))
    for name, fields in config.columns.items():
        kind = KINDS.get(name)
        if kind is None:
            raise ConfigError(f"{place}: columns: no kind {name!r}", hint=near(name, tuple(KINDS)))
        wrong = next((f for f in fields if kind.column(f) is None), None)
        if wrong is not None:
            raise ConfigError(f"{place}: columns.{name}: no field {wrong!r}", hint=near(wrong, kind.fields))
    return config
