"""Colours by token, one palette a theme: the only place that names a colour. Silence is good: nearly monochrome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from textual.theme import Theme


@dataclass(frozen=True)
class Palette:
    """`tokens` colour cells and glyphs; `cursor` is a row's background, `mark` a marked row's text, `back`
    what lies behind all.

    `plain` is for terminals without Unicode: everything is drawn in ASCII.
    """

    theme: Theme
    tokens: dict[str, str]
    cursor: str
    cursor_off: str
    mark: str
    back: str
    plain: bool = False


def _palette(
    name: str,
    dark: bool,
    text: str,
    muted: str,
    back: str,
    blue: str,
    red: str,
    yellow: str,
    green: str,
    cursor: str,
    off: str,
) -> Palette:
    theme = Theme(
        name=f"slinky-{name}", primary=blue, secondary=muted, warning=yellow, error=red, success=green, accent=blue,
        foreground=text, background=back, surface=back, panel=off, dark=dark,
        variables={"border": muted, "footer-background": back, "block-cursor-background": blue},
    )  # fmt: skip
    tokens = {
        "text": text,
        "muted": muted,
        "warning": yellow,
        "error": red,
        "info": blue,
        "success": green,
        "accent": blue,
    }
    return Palette(theme, tokens, cursor, off, yellow, back)


PALETTES: Final = {
    "dark": _palette(
        "dark", True, "#d7dae0", "#868c98", "#101216", "#6cb6ff", "#ff6b6b", "#e5c07b", "#7fd88f", "#2a3240", "#1b1f27"
    ),
    "light": _palette(
        "light",
        False,
        "#20242c",
        "#5f6570",
        "#fbfbfa",
        "#0b5cad",
        "#b3141f",
        "#7a5200",
        "#186a2a",
        "#d5e3f5",
        "#ececea",
    ),
    "safe": _palette(
        "safe", True, "#e4e6ea", "#8b919c", "#101216", "#56b4e9", "#ff8c42", "#f0e442", "#56b4e9", "#2a3240", "#1b1f27"
    ),
}
"""`safe` tells red from yellow and both from blue without red-green vision."""


def palette_of(name: str, plain: bool = False) -> Palette:
    """A theme's colours; `plain` draws in ASCII."""
    return replace(PALETTES[name], plain=plain)
