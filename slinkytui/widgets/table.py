"""A virtual table on the line API: a hundred thousand rows cost what is on view. Cursor and marks are row ids.

Cells are asked for when a line is drawn. The widget knows neither kinds nor backend: it takes ids and functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from slinkytui.styles.palette import Palette
from slinkytui.widgets.lines import LineView

Cells = Sequence[tuple[str, str, object]]
"""Text, token and value of each column of a row. A new value is news, a new text alone (an age) is not."""
BOLD_S: Final = 3.0
"""How long a cell that has changed stands out."""
_SAMPLE: Final = 100
_MOST_WIDE: Final = 40


@dataclass(frozen=True)
class Head:
    """A column as the table needs it. A column with a higher `drop` leaves first when room is short.

    `live` cells change with time alone (ages), which is no news.
    """

    title: str
    align: str = "left"
    width: int = 0
    grow: bool = False
    drop: int = 0
    live: bool = False


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


class ResourceTable(LineView):
    BINDINGS = [
        Binding("j,down", "move(1)", "down", show=False, id="table.down"),
        Binding("k,up", "move(-1)", "up", show=False, id="table.up"),
        Binding("g,home", "to(0)", "first", show=False, id="table.first"),
        Binding("G,end", "to(-1)", "last", show=False, id="table.last"),
        Binding("ctrl+d,pagedown", "page(1)", "page down", show=False, id="table.pagedown"),
        Binding("ctrl+u,pageup", "page(-1)", "page up", show=False, id="table.pageup"),
        Binding("space", "mark", "mark", show=False, id="table.mark"),
        Binding("v", "range", "mark a range", show=False, id="table.range"),
        Binding("asterisk", "mark_all", "mark all or none", show=False, id="table.mark_all"),
        Binding("enter", "open", "open", show=False, id="table.open"),
    ]
    fixed = 1

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

    class HeadClicked(Message):
        """A title was clicked; `column` is its index in `heads`."""

        def __init__(self, table: ResourceTable, column: int) -> None:
            super().__init__()
            self.table, self.column = table, column

    def __init__(self, palette: Palette, *, clock: Callable[[], float] = time.monotonic, **kwargs: Any) -> None:
        super().__init__(palette, **kwargs)
        self._clock = clock
        self.heads: Sequence[Head] = ()
        self.ids: Sequence[Hashable] = ()
        self.marks: set[Hashable] = set()
        self.lit: set[Hashable] = set()
        self.moved_at = float("-inf")
        """When a person last moved here, by the clock."""
        self._make: Callable[[Hashable], Cells] = lambda row: ()
        self._flag: Callable[[Hashable], str] = lambda row: " "
        self._cache: dict[Hashable, Cells] = {}
        self._seen: dict[Hashable, Cells] = {}
        self._news: dict[tuple[Hashable, int], float] = {}
        self._anchor: Hashable | None = None
        self._anchor_at = 0
        self._cursor: Hashable | None = None
        self._at = 0
        self._widths: list[int] = []
        self._plan: list[tuple[int, int]] = []

    @property
    def cursor(self) -> Hashable | None:
        return self._cursor

    @property
    def targets(self) -> list[Hashable]:
        """The marked rows in the table's order, else the row under the cursor."""
        marks = self.marks | self._range()
        if marks:
            return [i for i in self.ids if i in marks]
        return [] if self._cursor is None else [self._cursor]

    def clear_marks(self) -> bool:
        """Forget marks and range; False when there were none."""
        had = bool(self.marks) or self._anchor is not None
        self.marks, self._anchor = set(), None
        self.sync()
        return had

    def show(
        self,
        heads: Sequence[Head],
        ids: Sequence[Hashable],
        cells: Callable[[Hashable], Cells],
        flag: Callable[[Hashable], str],
        has: Callable[[Hashable], bool] | None = None,
    ) -> None:
        """Put these rows on view; the cursor stays on its row and on its line, or near where it was."""
        changed = heads != self.heads
        self.heads, self.ids, self._make, self._flag = heads, ids, cells, flag
        self._cache.clear()
        if self.marks:
            self.marks = {i for i in self.marks if has(i)} if has is not None else self.marks & set(ids)
        if changed:
            self._seen.clear()
            self._news.clear()
        before = self._cursor
        self.realign()
        size = Size(self.size.width, len(ids) + 1)
        if self.virtual_size != size:
            self.virtual_size = size
        self._note_news()
        self._measure(grow_only=not changed and len(self._widths) == len(heads))
        self.sync()
        if self._cursor != before:
            self.post_message(self.Highlighted(self, self._cursor))

    def realign(self) -> None:
        """The rows have moved: the cursor stays on its row, and that row on its line."""
        before, line = self._cursor, self._at
        self._place_cursor()
        if self._cursor == before and self._at != line and line and int(self.scroll_offset.y):
            self.scroll_to(y=max(0, int(self.scroll_offset.y) + self._at - line), animate=False, force=True)

    def age(self) -> None:
        """Time has passed: draw ages anew and let news grow old."""
        now = self._clock()
        self._news = {k: until for k, until in self._news.items() if until > now}
        self._cache.clear()
        self.sync()

    def light(self, ids: set[Hashable]) -> None:
        """The relatives of the focused pane's row."""
        if ids != self.lit:
            self.lit = ids
            self.sync()

    def frame_signature(self) -> object:
        return (tuple(self.heads), tuple(self._plan), self.stale, self.has_focus, "" if self.ids else self.empty)

    def line_signature(self, at: int) -> object:
        if at >= len(self.ids):
            return None
        row = self.ids[at]
        return (
            row,
            tuple((text, token) for text, token, _ in self._cells(row)),
            self._flag(row),
            at == self._at,
            row in self.marks or self._in_range(at),
            row in self.lit,
            tuple(i for i in range(len(self.heads)) if (row, i) in self._news),
        )

    def _view(self) -> Sequence[Hashable]:
        top = max(0, int(self.scroll_offset.y))
        return self.ids[top : top + max(1, self.size.height)]

    def _cells(self, row: Hashable) -> Cells:
        cells = self._cache.get(row)
        if cells is None:
            cells = self._cache[row] = self._make(row)
        return cells

    def _note_news(self) -> None:
        """Compare what is on view with what was there before."""
        until = self._clock() + BOLD_S
        seen: dict[Hashable, Cells] = {}
        for row in self._view():
            cells = seen[row] = self._cells(row)
            before = self._seen.get(row)
            if before is not None and before != cells:
                for at, head in enumerate(self.heads):
                    if not head.live and at < min(len(before), len(cells)) and before[at][2] != cells[at][2]:
                        self._news[row, at] = until
        self._seen = seen

    def _place_cursor(self) -> None:
        if not self.ids:
            self._cursor, self._at = None, 0
            return
        if self.moved_at == float("-inf"):
            self._at = 0  # nobody has chosen a row yet: the list may still be filling
        elif self._at < len(self.ids) and self.ids[self._at] == self._cursor:
            return
        elif self._cursor is not None:
            try:
                self._at = self.ids.index(self._cursor)
            except ValueError:
                self._at = min(self._at, len(self.ids) - 1)
        self._cursor = self.ids[min(self._at, len(self.ids) - 1)]

    def _measure(self, grow_only: bool = False) -> None:
        sample = self._view() if grow_only else [*self.ids[:_SAMPLE], *self._view()]
        widths = [max(len(h.title) + 1, h.width) for h in self.heads]
        for row in sample:
            for at, (text, _, _) in enumerate(self._cells(row)):
                widths[at] = max(widths[at], min(_MOST_WIDE, len(text)))
        if grow_only:
            widths = [max(a, b) for a, b in zip(widths, self._widths, strict=True)]
        self._widths = widths
        self._plan = lay_out(self.heads, widths, max(10, self.size.width - 3))

    def scrolled(self) -> None:
        if self.heads and len(self._widths) == len(self.heads):
            self._measure(grow_only=True)

    def on_resize(self) -> None:
        if self.heads:
            self._measure()
            self.virtual_size = Size(self.size.width, len(self.ids) + 1)
            self.sync()

    def on_focus(self) -> None:
        self.post_message(self.Highlighted(self, self._cursor))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._head(width)
        at = y - 1 + int(self.scroll_offset.y)
        if at >= len(self.ids):
            return self._blank(y, width)
        return self._line(self.ids[at], at, width)

    def _blank(self, y: int, width: int) -> Strip:
        words = self.empty.split("\n") if not self.ids else []
        text = words[y - 1] if 0 < y <= len(words) else ""
        return Strip([Segment(self.cut(f"   {text}", width), self._styles["muted"])], width)

    def _head(self, width: int) -> Strip:
        text = "   " + " ".join(self.cut(self.heads[i].title, w, self.heads[i].align) for i, w in self._plan)
        return Strip([Segment(self.cut(text, width), self._styles["muted"] + Style(bold=True))], width)

    def _line(self, row: Hashable, at: int, width: int) -> Strip:
        cells = self._cells(row)
        here = at == self._at
        marked = row in self.marks or self._in_range(at)
        lit = row in self.lit
        background = ""
        if here:
            background = self.palette.cursor if self.has_focus else self.palette.cursor_off
        base = Style(bgcolor=background or self.palette.back, dim=self.stale or None)
        lead = "▸" if here else "┃" if lit else " "
        segments = [
            Segment(self.say(self._flag(row)), self._styles["warning"] + base),
            Segment(self.say("●" if marked else lead), self._styles["accent"] + base),
            Segment(" ", base),
        ]
        for i, cell_width in self._plan:
            text, token, _ = cells[i] if i < len(cells) else ("", "text", None)
            style = self._styles.get(token, self._styles["text"]) + base
            if marked:
                style += Style(color=self.palette.mark)
            if lit or (row, i) in self._news:
                style += Style(bold=True)
            segments.append(Segment(self.cut(text, cell_width, self.heads[i].align) + " ", style))
        return Strip(segments).adjust_cell_length(width, base)

    def _go(self, at: int) -> None:
        if not self.ids:
            return
        self.moved_at = self._clock()
        at = max(0, min(at, len(self.ids) - 1))
        self._at = at
        self._cursor = self.ids[at]
        top, room = int(self.scroll_offset.y), max(1, self.size.height - 1)
        if at < top or at >= top + room:
            self.scroll_to(y=at if at < top else at - room + 1, animate=False)
        self.sync()
        self.post_message(self.Highlighted(self, self._cursor))

    def go_to(self, row: Hashable) -> bool:
        """Put the cursor on a row; False when it is not shown."""
        if row not in self.ids:
            return False
        self._go(self.ids.index(row))
        return True

    def _ends(self) -> tuple[int, int] | None:
        if self._anchor is None:
            return None
        if self._anchor_at >= len(self.ids) or self.ids[self._anchor_at] != self._anchor:
            if self._anchor not in self.ids:
                return None
            self._anchor_at = self.ids.index(self._anchor)
        return min(self._anchor_at, self._at), max(self._anchor_at, self._at)

    def _range(self) -> set[Hashable]:
        ends = self._ends()
        return set() if ends is None else set(self.ids[ends[0] : ends[1] + 1])

    def _in_range(self, at: int) -> bool:
        ends = self._ends()
        return ends is not None and ends[0] <= at <= ends[1]

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

    def action_range(self) -> None:
        """Begin a range at the cursor; the second time mark what lies between."""
        if self._anchor is None:
            self._anchor, self._anchor_at = self._cursor, self._at
        else:
            self.marks |= self._range()
            self._anchor = None
        self.sync()
        self.post_message(self.Highlighted(self, self._cursor))

    def action_mark_all(self) -> None:
        self.marks = set() if self.marks else set(self.ids)
        self.sync()
        self.post_message(self.Highlighted(self, self._cursor))

    def action_open(self) -> None:
        if self._cursor is not None:
            self.post_message(self.Opened(self, self._cursor))

    def on_click(self, event: events.Click) -> None:
        """A click takes the cursor there, a second one opens the row, one on a title sorts."""
        if event.y == 0:
            left = 3
            for i, width in self._plan:
                if left <= event.x < left + width + 1:
                    self.post_message(self.HeadClicked(self, i))
                    return
                left += width + 1
            return
        at = event.y - 1 + int(self.scroll_offset.y)
        if at < len(self.ids):
            if event.chain > 1 and at == self._at:
                self.action_open()
            else:
                self._go(at)
