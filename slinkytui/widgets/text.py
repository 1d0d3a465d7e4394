"""Text from clusters is data: made inert before it is drawn, and cut at cell borders."""

from __future__ import annotations

import unicodedata
from textwrap import wrap
from typing import Final

from rich.cells import cell_len, set_cell_size

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
LONGEST = 1_000
_ASCII: Final = str.maketrans(
    {
        "○": "o", "◐": "%", "●": "#", "◌": "c", "▼": "v", "▽": "V", "✖": "X", "↻": "r", "◆": "m", "▶": ">",
        "·": ".", "‖": "=", "✓": "+", "◷": "T", "−": "-", "∥": "s", "▮": "#", "▯": ".", "░": "?", "█": "@",
        "≠": "!", "▸": ">", "┃": "|", "│": "|", "─": "-", "━": "-", "–": "-", "…": "~", "▲": "!", "→": ">",
        "∞": "inf", "×": "x", "↑": "^", "↓": "v", "▾": "v", "←": "<", "⏎": "enter",
        **dict(zip("▁▂▃▄▅▆▇", "1234567", strict=True)),
    }
)  # fmt: skip
"""Our glyphs in the letters of design's `plain` column."""


def inert(text: str, longest: int = LONGEST) -> str:
    """Without anything that a terminal would obey: controls, escapes and direction marks become a dot."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "·" if c in _BIDI or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else c for c in text
    )


def in_ascii(text: str) -> str:
    """For terminals without Unicode: our glyphs as letters, what else is not ASCII as `?`."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def shown(text: str, plain: bool, longest: int = LONGEST) -> str:
    """A text as this terminal may show it."""
    text = inert(text, longest)
    return in_ascii(text) if plain else text


def hang(label: str, text: str, width: int, indent: int) -> str:
    """A labelled text whose further lines stand under its first, `indent` cells in; a line of `width` cells at most."""
    room = max(20, width - indent)
    lines = wrap(text, room, break_long_words=True, break_on_hyphens=False) or [""]
    return f"{label:<{indent}}" + ("\n" + " " * indent).join(lines)


def fit(text: str, width: int, align: str = "left") -> str:
    """Exactly `width` cells: cut with `…`, or padded."""
    size = len(text) if text.isascii() else cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
    pad = " " * (width - size)
    return pad + text if align == "right" else text + pad
