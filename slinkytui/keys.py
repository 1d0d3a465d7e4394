"""The keys by their ids, for a person's own keymap: every binding can be put on another key."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from textual.binding import Binding

from slinkytui.app import SlinkyApp
from slinkytui.backend import ConfigError
from slinkytui.screens.board import Board
from slinkytui.screens.chooser import Chooser, ColumnChooser
from slinkytui.screens.detail import DetailScreen, YamlScreen
from slinkytui.screens.dialogs import AskDialog, PlanDialog
from slinkytui.screens.help import HelpScreen
from slinkytui.screens.listing import KindScreen
from slinkytui.widgets.heatgrid import HeatGrid
from slinkytui.widgets.prompt import Prompt
from slinkytui.widgets.table import ResourceTable

_PLACES: tuple[Any, ...] = (
    SlinkyApp, Board, KindScreen, DetailScreen, YamlScreen, HelpScreen, Chooser, ColumnChooser, AskDialog, PlanDialog, Prompt,
    ResourceTable, HeatGrid,
)  # fmt: skip


def known_keys() -> dict[str, str]:
    """Binding id → its usual keys."""
    out: dict[str, str] = {}
    for place in _PLACES:
        for binding in place.BINDINGS:
            if isinstance(binding, Binding) and binding.id:
                out.setdefault(binding.id, binding.key)
    return out


def check_keys(keys: Mapping[str, str]) -> None:
    """Raises ConfigError for an id that no binding has, with the nearest one."""
    known = known_keys()
    for name, key in keys.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(
                f"no key binding {name!r}", hint=f"did you mean {near[0]}?" if near else f"ids: {', '.join(known)}"
            )
        if not key.strip():
            raise ConfigError(f"{name} has no key", hint="like ctrl+d,x")
