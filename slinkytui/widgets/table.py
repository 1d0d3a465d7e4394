"""A virtual table on the line API: a hundred thousand rows cost what is on view. Cursor and marks are row ids.

Cells are asked for when a line is drawn. The widget knows neither kinds nor backend: it takes ids and a function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from slinkytui.styles.palette import Palette
from slinkytui.widgets.text import fit, inert

Cells = Sequence[tuple[str, str]]
"""Text and token of each column of a row."""
_SAMPLE = 200
_MOST_WIDE = 40


@dataclass(frozen=True)
class Head:
    """A column as the table needs it. A column with a higher `drop` leaves first when room is short."""

    title: str
    align: str = "left"
    width: int = 0
    grow: bool = False
    drop: int = 0


def lay_out(heads: Sequence[Head], widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """(column, width) of what fits into `room` cells: columns are dropped, never squeezed; `grow` takes the rest."""
    keep = list(range(len(heads)))

    def need() -> int:
        return sum((max(8, heads[i].width) if heads[i].grow else widths[i]) + 1 for i in keep)

    while need() > room and any(heads[i].drop for i in keep):
        keep.remove(max(keep, key=lambda i: heads[i].drop))
    taken = sum(widths[i] + 1 for i in keep if not heads[i].grow)
    rest = max(1, room - taken - 1)
    return [(i, rest if heads[i].grow else widths[i]) for i in keep]


class ResourceTable(ScrollView, can_focus=True):
    BINDINGS = [
        Binding("j,down", "move(1)", "down", show=False, id="table.down"),
        Binding("k,up", "move(-1)", "up", show=False, id="table.up"),
        Binding("g,home", "to(0)", "first", show=False, id="table.first"),
        Binding("G,end", "to(-1)", "last", show=False, id="table.last"),
        Binding("ctrl+d,pagedown", "page(1)", "page down", show=False, id="table.pagedown"),
        Binding("ctrl+u,pageup", "page(-1)", "page up", show=False, id="table.pageup"),
        Binding("space", "mark", "mark", show=False, id="table.mark"),
        Binding("asterisk", "mark_all", "mark all", show=False, id="table.mark_all"),
        Binding("enter", "open", "open", show=False, id="table.open"),
    ]
    DEFAULT_CSS = (
        "ResourceTable { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }"
    )

    class Highlighted(Message):
        """The cursor is on another row, or the row has changed."""

        def __init__(self, table: ResourceTable, row: Hashable | None) -> None:
            super().__init__()
            self.table, self.row = table, row

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, ResourceTable.Highlighted)

    class Opened(Message):
        def __init__(self, table: ResourceTable, row: Hashable) -> None:
            super().__init__()
            self.table, self.row = table, row

    def __init__(self, palette: Palette, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.palette = palette
        self.heads: Sequence[Head] = ()
        self.ids: list[Hashable] = []
        self.marks: set[Hashable] = set()
        self.lit: set[Hashable] = set()
        self.stale = False
        self.empty = ""
        self._cells: Callable[[Hashable], Cells] = lambda row: ()
        self._flag: Callable[[Hashable], str] = lambda row: " "
        self._cursor: Hashable | None = None
        self._at = 0
        self._widths: list[int] = []
        self._plan: list[tuple[int, int]] = []
        self._styles = {k: Style(color=v) for k, v in palette.tokens.items()}

    @property
    def cursor(self) -> Hashable | None:
        return self._cursor

    @property
    def targets(self) -> list[Hashable]:
        """The marked rows in the table's order, else the row under the cursor."""
        if self.marks:
            return [i for i in self.ids if i in self.marks]
        return [] if self._cursor is None else [self._cursor]

    def show(
        self,
        heads: Sequence[Head],
        ids: list[Hashable],
        cells: Callable[[Hashable], Cells],
        flag: Callable[[Hashable], str],
    ) -> None:
        """Put these rows on view; the cursor stays on its row, or near where it was."""
        changed = heads != self.heads
        self.heads, self.ids, self._cells, self._flag = heads, ids, cells, flag
        if self.marks:
            self.marks.intersection_update(ids)
        before = self._cursor
        self._place_cursor()
        self.virtual_size = Size(self.size.width, len(ids) + 1)
        if changed or not self._widths or len(self._widths) != len(heads):
            self._measure()
        else:
            self._measure(grow_only=True)
        self.refresh()
        if self._cursor != before:
            self.post_message(self.Highlighted(self, self._cursor))

    def light(self, ids: set[Hashable]) -> None:
        """The relatives of the focused pane's row."""
        if ids != self.lit:
            self.lit = ids
            self.refresh()

    def _place_cursor(self) -> None:
        if not self.ids:
            self._cursor, self._at = None, 0
            return
        if self._at < len(self.ids) and self.ids[self._at] == self._cursor:
            return
        if self._cursor is not None:
            try:
                self._at = self.ids.index(self._cursor)
            except ValueError:
                self._at = min(self._at, len(self.ids) - 1)
        self._cursor = self.ids[min(self._at, len(self.ids) - 1)]

    def _measure(self, grow_only: bool = False) -> None:
        top = max(0, int(self.scroll_offset.y))
        sample = [*self.ids[:_SAMPLE], *self.ids[top : top + 60]]
        widths = [max(len(h.title), h.width) for h in self.heads]
        for row in sample:
            for at, (text, _) in enumerate(self._cells(row)):
                widths[at] = max(widths[at], min(_MOST_WIDE, len(text)))
        if grow_only:
            widths = [max(a, b) for a, b in zip(widths, self._widths, strict=True)]
        self._widths = widths
        self._plan = lay_out(self.heads, widths, max(10, self.size.width - 3))

    def on_resize(self) -> None:
        if self.heads:
            self._measure()
            self.virtual_size = Size(self.size.width, len(self.ids) + 1)
            self.refresh()

    def on_focus(self) -> None:
        self.refresh()
        self.post_message(self.Highlighted(self, self._cursor))

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._head(width)
        at = y - 1 + int(self.scroll_offset.y)
        if at >= len(self.ids):
            text = self.empty if not self.ids and y == 1 else ""
            return Strip([Segment(fit(f"   {text}", width), self._styles["muted"])], width)
        return self._line(self.ids[at], at, width)

    def _head(self, width: int) -> Strip:
        text = "   " + " ".join(fit(self.heads[i].title, w, self.heads[i].align) for i, w in self._plan)
        return Strip([Segment(fit(text, width), self._styles["muted"] + Style(bold=True))], width)

    def _line(self, row: Hashable, at: int, width: int) -> Strip:
        cells = self._cells(row)
        here = at == self._at
        marked = row in self.marks
        lit = row in self.lit
        background = None
        if here:
            background = self.palette.cursor if self.has_focus else self.palette.cursor_off
        base = Style(bgcolor=background, dim=self.stale or None)
        lead = "▸" if here else "┃" if lit else " "
        segments = [
            Segment(self._flag(row), self._styles["warning"] + base),
            Segment("●" if marked else lead, self._styles["accent"] + base),
            Segment(" ", base),
        ]
        for i, cell_width in self._plan:
            text, token = cells[i] if i < len(cells) else ("", "text")
            style = self._styles.get(token, self._styles["text"]) + base
            if marked:
                style += Style(color=self.palette.mark)
            if lit:
                style += Style(bold=True)
            segments.append(Segment(fit(inert(text), cell_width, self.heads[i].align) + " ", style))
        return Strip(segments).adjust_cell_length(width, base)

    def _go(self, at: int) -> None:
        if not self.ids:
            return
        at = max(0, min(at, len(self.ids) - 1))
        old, self._at = self._at, at
        self._cursor = self.ids[at]
        top, room = int(self.scroll_offset.y), max(1, self.size.height - 1)
        if at < top or at >= top + room:
            self.scroll_to(y=at if at < top else at - room + 1, animate=False)
            self.refresh()
        else:
            for line in (old, at):
                self.refresh(Region(0, line - top + 1, self.size.width, 1))
        self.post_message(self.Highlighted(self, self._cursor))

    def go_to(self, row: Hashable) -> bool:
        """Put the cursor on a row; False when it is not shown."""
        if row not in self.ids:
            return False
        self._go(self.ids.index(row))
        return True

    def action_move(self, by: int) -> None:
        self._go(self._at + by)

    def action_to(self, at: int) -> None:
        self._go(len(self.ids) - 1 if at < 0 else at)

    def action_page(self, by: int) -> None:
        self._go(self._at + by * max(1, self.size.height - 2))

    def action_mark(self) -> None:
        if self._cursor is not None:
            self.marks.symmetric_difference_update({self._cursor})
            self._go(self._at + 1)
            self.refresh()

    def action_mark_all(self) -> None:
        self.marks = set() if self.marks else set(self.ids)
        self.refresh()

    def action_open(self) -> None:
        if self._cursor is not None:
            self.post_message(self.Opened(self, self._cursor))

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self.refresh()
