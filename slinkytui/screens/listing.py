"""A full-screen list of any kind."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding

from slinkytui.backend import RowId, Table
from slinkytui.kinds import Kind
from slinkytui.screens.frame import footer_parts, header_parts
from slinkytui.screens.lists import LIST_BINDINGS, ListScreen
from slinkytui.screens.pane import KindPane
from slinkytui.widgets.bars import Bar
from slinkytui.widgets.table import ResourceTable


class KindScreen(ListScreen):
    BINDINGS = [*LIST_BINDINGS, Binding("escape,q", "back", "back", id="view.back")]

    def __init__(self, kind: Kind, filter_text: str = "") -> None:
        super().__init__()
        self._kind, self._filter = kind, filter_text

    def compose(self) -> ComposeResult:
        palette = self.slinky.palette
        yield Bar(palette, id="header")
        yield KindPane(self._kind, wide=True, filter_text=self._filter)
        yield Bar(palette, id="chain")
        yield Bar(palette, id="footer")

    def active_pane(self) -> KindPane | None:
        return self.query_one(KindPane) if self.is_mounted else None

    async def on_mount(self) -> None:
        pane = self.query_one(KindPane)
        sort = self.slinky.memory.sort.get(self._kind.id, "")
        if self._kind.column(sort.lstrip("-")) is not None:
            pane.sort_field, pane.descending = sort.lstrip("-"), sort.startswith("-")
        self.query_one(ResourceTable).focus()
        await self.attach()
        self.call_after_refresh(self.refill)

    async def attach(self) -> None:
        """Ask for the tables of this kind; there may be no engine yet."""
        if self.slinky.reader is not None:
            await self.slinky.reader.subscribe(self._kind.table, *self._kind.tables)

    def refill(self) -> None:
        self.query_one(KindPane).fill()
        self.tick()

    def take(self, changed: dict[Table, set[RowId]]) -> None:
        pane = self.query_one(KindPane)
        if self._kind.table in changed:
            pane.take(changed[self._kind.table])
        elif changed.keys() & set(self._kind.tables):
            pane.table.age()
        if Table.SOURCES in changed:
            pane.retitle()
        self.tick_bars()

    def tick(self) -> None:
        self.query_one(KindPane).tick()
        self.tick_bars()

    def tick_bars(self) -> None:
        """Header and footer say what holds now."""
        self.query_one("#header", Bar).say(*header_parts(self.slinky))
        self.query_one("#footer", Bar).say(footer_parts(self))

    def on_resource_table_highlighted(self, event: ResourceTable.Highlighted) -> None:
        event.stop()
        pane, ctx = self.query_one(KindPane), self.slinky.context
        row = pane.current()
        text = self._kind.summary(row, ctx) if row is not None and ctx is not None else ""
        self.query_one("#chain", Bar).say([(text, "muted")])
        pane.retitle()
        self.refresh_bindings()

    def action_back(self) -> None:
        pane = self.query_one(KindPane)
        if pane.table.clear_marks():
            pane.retitle()
        elif pane.filter_text:
            pane.narrow("")
        else:
            self.dismiss()
