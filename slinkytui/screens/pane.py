"""A kind's list in a frame: columns, filter, sort, marks, freshness. The board shows three, a full-screen list one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Hashable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from slinkytui.backend import Row, RowId, UsageError
from slinkytui.kinds.base import Column, Context, Kind, RowGroup
from slinkytui.kinds.filters import Test, compile_filter
from slinkytui.kinds.freshness import sources_of, worst
from slinkytui.kinds.order import Order
from slinkytui.kinds.text import ago
from slinkytui.kinds.view import View
from slinkytui.widgets.table import Cells, Head, ResourceTable
from slinkytui.widgets.text import fit, in_ascii, inert

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp

_SMALL: Final = 2_000
"""So many rows are taken at once; more in slices, with the loop free between them."""
_SLICE: Final = 100
_BUDGET_S: Final = 0.004
"""How long a list may keep the loop that also hears the keys."""
_MOST: Final = 200
"""Of a group no more rows than this light their relatives."""
_QUIET_S: Final = 3.0
"""A list sorts itself anew when nobody has moved in it for this long."""


class Framed(Vertical):
    """A pane's frame: title at the left of the border, counts at the right."""

    DEFAULT_CSS = """
    Framed { border: round $border; border-title-color: $text; }
    Framed:focus-within { border: heavy $accent; }
    Framed.-plain { border: ascii $border; }
    Framed.-plain:focus-within { border: ascii $accent; }
    """

    _entitled = ""

    def on_mount(self) -> None:
        self.set_class(self.slinky.palette.plain, "-plain")

    @property
    def slinky(self) -> SlinkyApp:
        return cast("SlinkyApp", self.app)

    def entitle(self, left: str, right: str) -> None:
        """Write both ends of the upper border."""
        plain = self.slinky.palette.plain
        room = max(10, self.size.width - 4)
        left, right = inert(left), inert(right)
        line = "-" if plain else "━" if self.has_focus_within else "─"
        right = fit(right, max(0, room - len(left) - 3)).rstrip() if len(left) + len(right) + 3 > room else right
        text = f"{left} {line * max(1, room - len(left) - len(right) - 2)} {right}" if right else left
        if text != self._entitled:
            self._entitled = text
            self.border_title = Content(in_ascii(text) if plain else text)


class KindPane(Framed):
    """`table` holds the rows of `kind` that pass the filter."""

    class Shown(Message):
        """The rows on view, their order or their cells are others now."""

        def __init__(self, pane: KindPane) -> None:
            super().__init__()
            self.pane = pane

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, KindPane.Shown) and message.pane is self.pane

    def __init__(self, kind: Kind, *, wide: bool = False, filter_text: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind, self.wide, self.filter_text = kind, wide, filter_text
        self.sort_field, self.descending = kind.sort, False
        self.problem = ""
        self.view: View | None = None
        self._pending: set[RowId] = set()
        self._busy = False
        self._test: Test | None = None

    def compose(self) -> ComposeResult:
        yield ResourceTable(self.slinky.palette)

    @property
    def table(self) -> ResourceTable:
        return self.query_one(ResourceTable)

    @property
    def view_count(self) -> int:
        return self.view.passing if self.view is not None else 0

    def columns(self) -> list[Column]:
        """What a person chose, else what the kind shows at this width."""
        chosen = self.slinky.memory.columns.get(self.kind.id)
        if chosen:
            return [c for name in chosen if (c := self.kind.column(name)) is not None]
        return [c for c in self.kind.columns if self.wide or not c.wide]

    def narrow(self, text: str) -> None:
        """Filter as it is typed; a text that cannot be read yet says why and hides nothing."""
        self.filter_text = text
        self.fill()

    def sort_by(self, field: str) -> None:
        """Sort by a field; the same field again turns the order."""
        self.descending = not self.descending if field == self.sort_field else False
        self.sort_field = field
        self.fill()

    def fill(self) -> None:
        """Take the rows from the reader, filter and sort them: at once when they are few, else in slices."""
        ctx = self.slinky.context
        if ctx is None:
            self.table.empty = "starting the engine …"
            self.table.sync()
            return
        self._read_filter()
        rows = ctx.lookup.rows(self.kind.table)
        opened = self.view.open if self.view is not None else ()
        view = View(
            rows, Order(self.kind.column(self.sort_field)), self._test,
            descending=self.descending, fold=self.kind.fold, opened=opened,
        )  # fmt: skip
        self._pending.clear()
        if len(rows) <= _SMALL:
            self._busy = False
            for _ in view.build(ctx):
                pass
            self.view = view
            self._show(ctx)
        else:
            self._busy = True
            self.run_worker(self._build(view, ctx), group="fill", exclusive=True)

    def _read_filter(self) -> None:
        """A text that cannot be read hides nothing."""
        self._test, self.problem = None, ""
        try:
            if self.filter_text.strip():
                self._test = compile_filter(self.filter_text, self.kind)
        except UsageError as error:
            self.problem = error.line()

    async def _build(self, view: View, ctx: Context) -> None:
        # What a long list holds stays: looking for garbage in it takes a third of the time, now and ever after.
        gc.disable()
        try:
            for _ in view.build(ctx):
                await asyncio.sleep(0)
        finally:
            gc.freeze()
            gc.enable()
        self.view = view
        self._show(ctx)
        await self._drain()

    def take(self, changed: Iterable[RowId]) -> None:
        """Rows have changed."""
        self._pending.update(changed)
        ctx = self.slinky.context
        if ctx is None or self._busy:
            return
        if self.view is None or len(self._pending) > max(_SMALL, len(self.view) // 4):
            self.fill()
        elif len(self._pending) <= _SLICE:
            self._apply(self._pending, ctx)
            self._pending = set()
            self._show(ctx)
        else:
            self._busy = True
            self.run_worker(self._drain(), group="fill", exclusive=True)

    async def _drain(self) -> None:
        self._busy = True
        while self._pending:
            if self.view is not None and len(self._pending) > max(_SMALL, len(self.view) // 4):
                self.fill()  # takes over from here
                return
            ids, until = self._pending, monotonic() + _BUDGET_S
            self._pending = set()
            ctx = self.slinky.context
            while ids and ctx is not None and monotonic() < until:
                self._apply([ids.pop() for _ in range(min(len(ids), 20))], ctx)
            self._pending |= ids
            self.table.realign()
            await asyncio.sleep(0)
        self._busy = False
        ctx = self.slinky.context
        if ctx is not None:
            self._show(ctx)

    def _apply(self, ids: Iterable[RowId], ctx: Context) -> None:
        if self.view is not None:
            self.view.update(ids, ctx, hold=self.has_focus_within)

    def tick(self) -> None:
        """Time has passed: ages, freshness, and a list in order again once nobody moves in it."""
        ctx, table = self.slinky.context, self.table
        if ctx is None or self.view is None:
            return
        if self.view.unsettled and not self._busy and monotonic() - table.moved_at > _QUIET_S:
            self.view.settle(ctx)
            self._show(ctx)
        table.age()
        self.retitle()

    def settle(self) -> None:
        """In order again, now."""
        ctx = self.slinky.context
        if ctx is not None and self.view is not None and self.view.settle(ctx):
            self._show(ctx)

    def _show(self, ctx: Context) -> None:
        view, columns = self.view, self.columns()
        heads = [Head(self._title_of(c), c.align, c.width, c.grow, c.drop, c.live) for c in columns]
        rows = ctx.lookup.rows(self.kind.table)

        def cells(entry: Hashable) -> Cells:
            now = self.slinky.context
            if now is None or view is None:
                return ()
            if isinstance(entry, RowGroup):
                members = [r for i in view.members(entry) if (r := rows.get(i)) is not None]
                found = self.kind.folded(entry, members, now) if members else {}
                lead = "▾ " if entry in view.open else "▸ "
                texts = [found.get(c.field, "") for c in columns]
                texts[0] = lead + texts[0]
                return [(t, "text", t) for t in texts]
            row = rows.get(cast(RowId, entry))
            if row is None:
                return ()
            return [(c.cell(row, now), c.token(row, now) if c.token else "text", c.value(row, now)) for c in columns]

        def flag(entry: Hashable) -> str:
            row, now = rows.get(cast(RowId, entry)), self.slinky.context
            return "≠" if row is not None and now is not None and self.kind.marked(row, now) else " "

        self.table.empty = "no row passes the filter: esc clears it" if self.filter_text and rows else self._why_empty()
        if view is not None:
            self.table.show(heads, view, cells, flag, view.__contains__)
        self.retitle()
        self.post_message(self.Shown(self))

    def _title_of(self, column: Column) -> str:
        if column.field != self.sort_field:
            return column.title
        return f"{column.title}{'↓' if self.descending else '↑'}"

    def retitle(self) -> None:
        """Counts, the filter and, where the source is quiet, since when."""
        ctx, reader = self.slinky.context, self.slinky.reader
        if ctx is None or reader is None:
            self.entitle(self.kind.title, "")
            return
        total, shown = len(ctx.lookup.rows(self.kind.table)), self.view.passing if self.view is not None else 0
        right = f"{shown:,}" if shown == total else f"{shown:,} of {total:,}"
        if not total and not self.slinky.knows(self.kind.table):
            right = "–"
        if self.filter_text:
            right += f" / {self.filter_text}"
        if self.problem:
            right = f"? {self.problem}"
        quiet = worst(sources_of(self.kind.table, self.slinky.sources()))
        self.table.stale = quiet is not None
        if quiet is not None:
            since = f"last answer {ago(quiet.last_success, ctx.now)}" if quiet.last_success else "no answer yet"
            right = f"✖ {since} · {right}"
        elif reader is not None and self.kind.table not in reader.ready:
            right = f"{right}, loading …"
        marks = len(self.table.marks)
        self.entitle(self.kind.title, f"● {marks} marked · {right}" if marks else right)

    def targets(self) -> list[Row]:
        """The rows that a verb is meant for: marked ones, else the one under the cursor; a group is its rows."""
        ctx = self.slinky.context
        if ctx is None:
            return []
        rows = ctx.lookup.rows(self.kind.table)
        ids: dict[Any, None] = {}
        for entry in self.table.targets:
            members = self.view.members(entry) if self.view is not None and isinstance(entry, RowGroup) else [entry]
            ids.update(dict.fromkeys(members))
        return [row for i in ids if (row := rows.get(i)) is not None]

    def current(self) -> Row | None:
        """The row under the cursor; of a group the first."""
        return next(iter(self.current_rows()), None)

    def current_rows(self) -> list[Row]:
        """The row under the cursor, or the first rows of the group there."""
        ctx, entry = self.slinky.context, self.table.cursor
        if ctx is None or entry is None:
            return []
        group = isinstance(entry, RowGroup) and self.view is not None
        ids = self.view.members(entry)[:_MOST] if group and self.view is not None else [entry]
        rows = ctx.lookup.rows(self.kind.table)
        return [row for i in ids if (row := rows.get(cast(RowId, i))) is not None]

    def toggle(self) -> bool:
        """Open or close the group under the cursor; False when there is none."""
        ctx, entry = self.slinky.context, self.table.cursor
        if ctx is None or self.view is None or not isinstance(entry, RowGroup):
            return False
        self.view.toggle(entry, ctx)
        self._show(ctx)
        return True

    def shown(self) -> list[Row]:
        """The rows on view, in order, groups as their rows."""
        ctx = self.slinky.context
        if ctx is None or self.view is None:
            return []
        rows = ctx.lookup.rows(self.kind.table)
        ids: dict[Any, None] = {}
        for entry in self.view:
            ids.update(dict.fromkeys(self.view.members(entry) if isinstance(entry, RowGroup) else [entry]))
        return [row for i in ids if (row := rows.get(i)) is not None]

    def _why_empty(self) -> str:
        reader = self.slinky.reader
        if reader is None or self.kind.table not in reader.ready:
            return "loading …"
        if not self.slinky.knows(self.kind.table):
            quiet = worst(sources_of(self.kind.table, self.slinky.sources()))
            return f"not known: {quiet.error}" if quiet is not None else "asking …"
        where = reader.hello.namespace if reader.hello is not None else ""
        hints = {
            "nodesets": f"no NodeSets in {where or 'any namespace'}: `:ns` other namespaces, or\n"
            "`slinkytui crds | kubectl apply -f -` when the kinds are not there",
            "nodes": "no Slurm nodes: `!` tells whether slurmrestd is reached",
            "jobs": "no jobs in the queue",
            "problems": "nothing needs you",
        }
        return hints.get(self.kind.id, f"no {self.kind.title.lower()}")
