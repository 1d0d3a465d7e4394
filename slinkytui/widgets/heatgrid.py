"""One cell a device, or one cell a node where room is short; node names at the left of every line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from slinkytui.styles.palette import Palette
from slinkytui.widgets.text import fit, inert

_GLYPHS = {
    "u": ("▮", "text"),
    "f": ("▯", "muted"),
    "s": ("▮", "info"),
    "d": ("▽", "warning"),
    "x": ("✖", "error"),
    "?": ("░", "warning"),
}
_EIGHTHS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Devices:
    """A node's devices: a letter each (u f s d x ?), and the indexes that are brushed."""

    name: str
    cells: str
    brushed: frozenset[int] = frozenset()


class HeatGrid(ScrollView, can_focus=True):
    DEFAULT_CSS = (
        "HeatGrid { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }"
    )

    def __init__(self, palette: Palette, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._styles = {k: Style(color=v) for k, v in palette.tokens.items()}
        self._devices: Sequence[Devices] = ()
        self.empty = ""
        self.stale = False

    def show(self, nodes: Sequence[Devices]) -> None:
        self._devices = nodes
        self._size_up()
        self.refresh()

    def on_resize(self) -> None:
        self._size_up()

    def _shape(self) -> tuple[int, int, bool]:
        """Cells of a name, nodes a line, and whether each device has its own cell."""
        if not self._devices:
            return 0, 1, True
        name = min(20, max(len(n.name) for n in self._devices))
        devices = max(len(n.cells) for n in self._devices)
        room = max(10, self.size.width - 1)
        single = len(self._devices) * 1.0 / max(1, room // (name + devices + 3)) <= max(1, self.size.height) * 4
        block = name + 1 + devices + 2 if single else 1
        return name, max(1, (room if single else room - name - 1) // block), single

    def _size_up(self) -> None:
        _, across, _ = self._shape()
        self.virtual_size = Size(self.size.width, -(-len(self._devices) // across) if self._devices else 1)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        name, across, single = self._shape()
        line = y + int(self.scroll_offset.y)
        part = self._devices[line * across : (line + 1) * across]
        if not part:
            return Strip([Segment(fit(self.empty if y == 0 else "", width), self._styles["muted"])], width)
        segments: list[Segment] = []
        if not single:
            segments.append(Segment(fit(inert(part[0].name), name) + " ", self._styles["muted"]))
        for node in part:
            if single:
                segments.append(Segment(fit(inert(node.name), name) + " ", self._styles["muted"]))
                segments += [self._cell(node, at) for at in range(len(node.cells))]
                segments.append(Segment("  "))
            else:
                segments.append(self._whole(node))
        dim = Style(dim=True) if self.stale else Style()
        return Strip([Segment(s.text, (s.style or Style()) + dim) for s in segments]).adjust_cell_length(width)

    def _cell(self, node: Devices, at: int) -> Segment:
        glyph, token = _GLYPHS.get(node.cells[at], _GLYPHS["?"])
        return Segment("█", self._styles["accent"]) if at in node.brushed else Segment(glyph, self._styles[token])

    def _whole(self, node: Devices) -> Segment:
        if node.brushed:
            return Segment("█", self._styles["accent"])
        worst = next((c for c in "xd?" if c in node.cells), "")
        if worst:
            glyph, token = _GLYPHS[worst]
            return Segment(glyph, self._styles[token])
        used = sum(c in "us" for c in node.cells)
        if not node.cells:
            return Segment("·", self._styles["muted"])
        return Segment(
            _EIGHTHS[min(7, used * 7 // len(node.cells))] if used else "▯", self._styles["text" if used else "muted"]
        )
