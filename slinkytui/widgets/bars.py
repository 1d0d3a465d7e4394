"""Lines of coloured text: header, strip, chain and footer. They take (text, token) pairs and write only on change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Static

from slinkytui.styles.palette import Palette
from slinkytui.widgets.text import inert

Parts = Sequence[tuple[str, str]]


class Bar(Static):
    """One or more lines of parts; `right` stands at the right edge of the first."""

    DEFAULT_CSS = "Bar { height: 1; width: 1fr; padding: 0 1; }"

    def __init__(self, palette: Palette, **kwargs: Any) -> None:
        super().__init__("", markup=False, **kwargs)
        self._palette = palette
        self._shown: tuple[Parts, Parts, int] | None = None

    def say(self, left: Parts, right: Parts = ()) -> None:
        now = (tuple(left), tuple(right), self.size.width)
        if now == self._shown:
            return
        self._shown = now
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        for part, token in left:
            text.append(inert(part), self._palette.tokens.get(token, ""))
        tail = "".join(inert(p) for p, _ in right)
        gap = self.size.width - 2 - cell_len(text.plain) - cell_len(tail)
        if tail and gap > 0:
            text.append(" " * gap)
            for part, token in right:
                text.append(inert(part), self._palette.tokens.get(token, ""))
        self.update(text)
