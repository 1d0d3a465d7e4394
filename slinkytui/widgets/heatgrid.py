"""One cell a device, or one cell a node where room is short; node names at the left of every line."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from slinkytui.styles.palette import Palette
from slinkytui.widgets.lines import LineView

_GLYPHS: Final = {
    "u": ("▮", "text"),
    "f": ("▯", "muted"),
    "s": ("▮", "info"),
    "d": ("▽", "warning"),
    "x": ("✖", "error"),
    "?": ("░", "warning"),
}
_EIGHTHS: Final = "▁▂▃▄▅▆▇█"


class Devices(NamedTuple):
    """A node's devices: a letter each (u f s d x ?)."""

    name: str
    cells: str


Lit = Mapping[Hashable, frozenset[int]]
"""The devices that are brushed, by node."""
_NONE: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True)
class Shape:
    """`name` cells for a name, `across` nodes a line, `single` when each device has its own cell."""

    name: int
    across: int
    single: bool


def shape_of(nodes: int, name: int, devices: int, width: int, height: int) -> Shape:
    """One cell a device while all nodes fit into four screens, else one cell a node."""
    room = max(10, width - 1)
    name = min(20, name)
    block = name + 1 + devices + 2
    across = max(1, room // block)
    if nodes <= across * max(1, height) * 4:
        return Shape(name, across, True)
    return Shape(name, max(1, room - name - 1), False)


class HeatGrid(LineView):
    """`cursor` is a node. Its arrows move over nodes; what a node shows is asked for when its line is drawn."""

    BINDINGS = [
        Binding("h,left", "move(-1, 0)", "left", show=False, id="grid.left"),
        Binding("l,right", "move(1, 0)", "right", show=False, id="grid.right"),
        Binding("j,down", "move(0, 1)", "down", show=False, id="grid.down"),
        Binding("k,up", "move(0, -1)", "up", show=False, id="grid.up"),
        Binding("g,home", "to(0)", "first", show=False, id="grid.first"),
        Binding("G,end", "to(-1)", "last", show=False, id="grid.last"),
        Binding("ctrl+d,pagedown", "page(1)", "page down", show=False, id="grid.pagedown"),
        Binding("ctrl+u,pageup", "page(-1)", "page up", show=False, id="grid.pageup"),
        Binding("enter", "open", "open", show=False, id="grid.open"),
    ]

    class Highlighted(Message):
        """The cursor is on another node."""

        def __init__(self, node: Hashable | None) -> None:
            super().__init__()
            self.node = node

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, HeatGrid.Highlighted)

    class Opened(Message):
        def __init__(self, node: Hashable) -> None:
            super().__init__()
            self.node = node

    def __init__(self, palette: Palette, **kwargs: Any) -> None:
        super().__init__(palette, **kwargs)
        self._ids: Sequence[Hashable] = ()
        self._make: Callable[[Hashable], Devices] = lambda node: Devices("", "")
        self._longest = self._most = 0
        self._lines: dict[int, tuple[Devices, ...]] = {}
        self._lit: Lit = {}
        self._at = 0
        self._shape = Shape(0, 1, True)

    @property
    def cursor(self) -> Hashable | None:
        return self._ids[self._at] if self._at < len(self._ids) else None

    def show(self, ids: Sequence[Hashable], make: Callable[[Hashable], Devices], name: int, devices: int) -> None:
        """Nodes in order; `name` and `devices` are the longest name and the most devices among them."""
        before = self.cursor
        self._ids, self._make, self._longest, self._most = ids, make, name, devices
        self._lines.clear()
        if before is not None and self.cursor != before:
            self._at = ids.index(before) if before in ids else min(self._at, max(0, len(ids) - 1))
        self._size_up()
        self.sync()

    def light(self, lit: Lit) -> None:
        """Brush these devices, and no others."""
        self._lit = lit
        self.sync()

    def on_resize(self) -> None:
        self._lines.clear()
        self._size_up()
        self.sync()

    def _line(self, at: int) -> tuple[Devices, ...]:
        found = self._lines.get(at)
        if found is None:
            across = self._shape.across
            found = self._lines[at] = tuple(self._make(i) for i in self._ids[at * across : (at + 1) * across])
        return found

    def _size_up(self) -> None:
        self._shape = shape_of(len(self._ids), self._longest, self._most, self.size.width, self.size.height)
        lines = -(-len(self._ids) // self._shape.across) if self._ids else 1
        if self.virtual_size != Size(self.size.width, lines):
            self.virtual_size = Size(self.size.width, lines)

    def frame_signature(self) -> object:
        return (self._shape, self.stale, self.has_focus, self.empty if not self._ids else "")

    def line_signature(self, at: int) -> object:
        across = self._shape.across
        part = self._line(at)
        here = self._at - at * across if self._at // across == at else -1
        lit = (
            ()
            if not self._lit
            else tuple((i, self._lit[i]) for i in self._ids[at * across : (at + 1) * across] if i in self._lit)
        )
        return (here, part, lit) if part else None

    def render_line(self, y: int) -> Strip:
        width, shape = self.size.width, self._shape
        line = y + int(self.scroll_offset.y)
        part = self._line(line)
        if not part:
            words = self.empty if y == 0 and not self._ids else ""
            return Strip([Segment(self.cut(words, width), self._styles["muted"])], width)
        segments: list[Segment] = []
        if not shape.single:
            segments.append(Segment(self.cut(part[0].name, shape.name) + " ", self._styles["muted"]))
        for at, node in enumerate(part):
            number = line * shape.across + at
            here, lit = number == self._at, self._lit.get(self._ids[number], _NONE)
            back = (
                Style(bgcolor=self.palette.cursor if self.has_focus else self.palette.cursor_off)
                if here
                else self._back
            )
            if shape.single:
                style = self._styles["accent" if here and self.has_focus else "muted"] + back
                segments.append(Segment(self.cut(node.name, shape.name) + " ", style))
                segments += [self._cell(node, i, lit, back) for i in range(len(node.cells))]
                segments.append(Segment(" " * (self._most - len(node.cells) + 2), self._back))
            else:
                segments.append(self._whole(node, lit, back))
        dim = Style(dim=True) if self.stale else Style()
        return Strip([Segment(self.say(s.text), (s.style or Style()) + dim) for s in segments]).adjust_cell_length(
            width, self._back
        )

    def _cell(self, node: Devices, at: int, lit: frozenset[int], back: Style) -> Segment:
        glyph, token = _GLYPHS.get(node.cells[at], _GLYPHS["?"])
        if at in lit:
            return Segment("█", self._styles["accent"] + back)
        return Segment(glyph, self._styles[token] + back)

    def _whole(self, node: Devices, lit: frozenset[int], back: Style) -> Segment:
        if lit:
            return Segment("█", self._styles["accent"] + back)
        worst = next((c for c in "xd?" if c in node.cells), "")
        if worst:
            glyph, token = _GLYPHS[worst]
            return Segment(glyph, self._styles[token] + back)
        used = sum(c in "us" for c in node.cells)
        if not node.cells:
            return Segment("·", self._styles["muted"] + back)
        glyph = _EIGHTHS[min(7, used * 7 // len(node.cells))] if used else "▯"
        # A node with room stands out, a full one is silent.
        return Segment(glyph, self._styles["text" if used < len(node.cells) else "muted"] + back)

    def _go(self, at: int) -> None:
        if not self._ids:
            return
        self._at = max(0, min(at, len(self._ids) - 1))
        self._reveal()
        self.sync()
        self.post_message(self.Highlighted(self.cursor))

    def on_focus(self) -> None:
        self.post_message(self.Highlighted(self.cursor))

    def follow(self, node: Hashable) -> None:
        """Put the cursor on a node, when it is shown; nobody is told."""
        if node == self.cursor or node not in self._ids:
            return
        self._at = self._ids.index(node)
        self._reveal()
        self.sync()

    def _reveal(self) -> None:
        line, top, room = self._at // self._shape.across, int(self.scroll_offset.y), max(1, self.size.height)
        if line < top or line >= top + room:
            self.scroll_to(y=line if line < top else line - room + 1, animate=False)

    def action_move(self, right: int, down: int) -> None:
        self._go(self._at + right + down * self._shape.across)

    def action_to(self, at: int) -> None:
        self._go(len(self._ids) - 1 if at < 0 else at)

    def action_page(self, by: int) -> None:
        self._go(self._at + by * max(1, self.size.height - 1) * self._shape.across)

    def action_open(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Opened(self.cursor))

    def on_click(self, event: events.Click) -> None:
        line, shape = event.y + int(self.scroll_offset.y), self._shape
        block = shape.name + 1 + self._most + 2
        column = event.x // block if shape.single else event.x - shape.name - 1
        if 0 <= column < shape.across and line * shape.across + column < len(self._ids):
            self._go(line * shape.across + column)
