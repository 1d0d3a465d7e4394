"""A full-screen list of any kind."""

from __future__ import annotations

from typing import cast

from textual.app import ComposeResult
from textual.binding import Binding

from slinkytui.backend import RowId, Table
from slinkytui.kinds import Kind
from slinkytui.kinds.verbs import VERBS
from slinkytui.screens.detail import DetailScreen, YamlScreen
from slinkytui.screens.frame import footer_parts, header_parts
from slinkytui.screens.pane import KindPane
from slinkytui.screens.verbs import VerbScreen
from slinkytui.widgets.bars import Bar
from slinkytui.widgets.prompt import Prompt
from slinkytui.widgets.table import ResourceTable


class KindScreen(VerbScreen):
    BINDINGS = [
        *(Binding(v.key, f"verb('{v.id}')", v.title, id=v.id) for v in VERBS.values()),
        Binding("d,enter", "describe", "describe", id="view.describe"),
        Binding("y", "yaml", "YAML", id="view.yaml"),
        Binding("slash", "filter", "filter", id="view.filter"),
        Binding("S", "sort", "sort", id="view.sort"),
        Binding("escape,q", "back", "back", id="view.back"),
    ]

    def __init__(self, kind: Kind, filter_text: str = "") -> None:
        super().__init__()
        self._kind, self._filter = kind, filter_text

    def compose(self) -> ComposeResult:
        yield Bar(self.slinky.palette, id="header")
        yield KindPane(self._kind, wide=True, filter_text=self._filter)
        yield Bar(self.slinky.palette, id="footer")

    def active_pane(self) -> KindPane | None:
        return self.query_one(KindPane) if self.is_mounted else None

    async def on_mount(self) -> None:
        self.query_one(ResourceTable).focus()
        await self.attach()
        self.call_after_refresh(self.repaint, set(Table))

    async def attach(self) -> None:
        """Ask for the tables of this kind; there may be no engine yet."""
        if self.slinky.reader is not None:
            await self.slinky.reader.subscribe(self._kind.table, *self._kind.tables)

    def repaint(self, tables: set[Table]) -> None:
        if self._kind.table in tables or tables & set(self._kind.tables):
            self.query_one(KindPane).fill()
        self.tick()

    def tick(self) -> None:
        self.query_one("#header", Bar).say(*header_parts(self.slinky))
        self.query_one("#footer", Bar).say(footer_parts(self))

    def on_resource_table_opened(self, event: ResourceTable.Opened) -> None:
        event.stop()
        self.action_describe()

    def _cursor(self) -> RowId | None:
        return cast("RowId | None", self.query_one(ResourceTable).cursor)

    def action_describe(self) -> None:
        row_id = self._cursor()
        if row_id is not None:
            self.app.push_screen(DetailScreen(self._kind, row_id))

    def action_yaml(self) -> None:
        row_id = self._cursor()
        if row_id is not None and self._kind.raw:
            self.app.push_screen(YamlScreen(self._kind, row_id))

    def action_filter(self) -> None:
        pane = self.query_one(KindPane)
        before = pane.filter_text

        def done(text: str | None) -> None:
            pane.narrow(before if text is None else text)

        self.app.push_screen(Prompt("/", "state=idle & gpus>0 & name~^gpu", before, pane.narrow), done)

    def action_sort(self) -> None:
        pane = self.query_one(KindPane)
        fields = [c.field for c in pane.columns()]
        at = fields.index(pane.sort_field) + 1 if pane.sort_field in fields else 0
        pane.sort_field = fields[at % len(fields)]
        pane.fill()
        self.notify(f"sorted by {pane.sort_field}", timeout=2)

    def action_back(self) -> None:
        pane = self.query_one(KindPane)
        if pane.filter_text:
            pane.narrow("")
        else:
            self.dismiss()
