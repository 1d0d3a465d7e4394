"""Lines of coloured text: header, strip, chain and footer. They take (text, token) pairs and write only on change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Static

from slinkytui.styles.palette import Palette
from slinkytui.widgets.text import shown

Parts = Sequence[tuple[str, str]]


class Bar(Static):
    """One or more lines of parts; a part "\n" begins the next line, `right` stands at the right edge of the first."""

    DEFAULT_CSS = "Bar { height: auto; width: 1fr; padding: 0 1; }"

    def __init__(self, palette: Palette, **kwargs: Any) -> None:
        super().__init__("", markup=False, **kwargs)
        self._palette = palette
        self._shown: tuple[Parts, Parts, int] | None = None
        self._height = 0

    def on_resize(self) -> None:
        if self._shown is not None:
            self.say(self._shown[0], self._shown[1])

    def say(self, left: Parts, right: Parts = ()) -> None:
        now = (tuple(left), tuple(right), self.size.width)
        if now == self._shown:
            return
        self._shown = now
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        room, lines = max(1, self.size.width - 2), _lines(left)
        for at, line in enumerate(lines):
            if at:
                text.append("\n")
            self._line(text, line, right if at == 0 else (), room)
        self.update(text, layout=len(lines) != self._height)
        self._height = len(lines)

    def _line(self, text: Text, left: Parts, right: Parts, room: int) -> None:
        """The right part stays whole: it has what needs a person."""
        tail = "".join(self._say(p) for p, _ in right)
        left_room = room - cell_len(tail) - 1 if tail else room
        line = Text()
        for part, token in left:
            line.append(self._say(part), self._palette.tokens.get(token, ""))
        if line.cell_len > left_room:
            line.truncate(max(1, left_room), overflow="ellipsis")
            if self._palette.plain:
                line = Text.assemble(line[:-1], "~")
        text.append_text(line)
        if tail:
            text.append(" " * max(1, room - line.cell_len - cell_len(tail)))
            for part, token in right:
                text.append(self._say(part), self._palette.tokens.get(token, ""))

    def _say(self, text: str) -> str:
        return shown(text, self._palette.plain)


def _lines(parts: Parts) -> list[list[tuple[str, str]]]:
    out: list[list[tuple[str, str]]] = [[]]
    for part in parts:
        if part[0] == "\n":
            out.append([])
        else:
            out[-1].append(part)
    return out
