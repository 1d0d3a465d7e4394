"""The detail page of a row of any kind, and its raw object as YAML with search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from slinkytui.backend import NotFound, Row, RowId, SlinkyError, Table
from slinkytui.kinds import KINDS, Kind
from slinkytui.kinds.base import Context, Line, Section
from slinkytui.kinds.pages import event_sections, explained_section, why_sections
from slinkytui.screens.frame import footer_parts, header_parts
from slinkytui.widgets.bars import Bar
from slinkytui.widgets.prompt import Prompt
from slinkytui.widgets.text import hang, inert, shown

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp


_EXPLAINED: Final = ("nodesets", "pods", "nodes")
"""Kinds that an operator decides about."""
_EXPLAIN_S: Final = 3.0


class DetailScreen(Screen[None]):
    """`1`…`9` open a relative, `y` the YAML."""

    BINDINGS = [
        Binding("escape,q", "back", "back", id="detail.back"),
        Binding("y", "yaml", "YAML", id="detail.yaml"),
        *(Binding(str(n), f"link({n})", f"relative {n}", show=False) for n in range(1, 10)),
    ]
    DEFAULT_CSS = """
    DetailScreen VerticalScroll { border: heavy $accent; padding: 0 1; height: 1fr; }
    DetailScreen VerticalScroll.-plain { border: ascii $accent; }
    """

    def __init__(self, kind: Kind, row_id: RowId) -> None:
        super().__init__()
        self._kind, self._row_id = kind, row_id
        self._links: list[tuple[str, RowId]] = []
        self._explained: Section | None = None
        self._drawn = Text()

    @property
    def slinky(self) -> SlinkyApp:
        return cast("SlinkyApp", self.app)

    def compose(self) -> ComposeResult:
        palette = self.slinky.palette
        yield Bar(palette, id="header")
        with VerticalScroll() as box:
            box.border_title = Content(f"{self._kind.singular} {inert(str(self._row_id), 60)}")
            box.set_class(palette.plain, "-plain")
            yield Static("", id="body", markup=False)
        yield Bar(palette, id="footer")

    async def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        reader = self.slinky.reader
        if reader is not None:
            tables = {self._kind.table, *self._kind.tables, *(KINDS[link.kind].table for link in self._kind.links)}
            await reader.subscribe(*tables, Table.EVENTS, Table.PROBLEMS)
        self.set_interval(1.0, self._draw)
        if self._kind.id in _EXPLAINED:
            self.set_interval(_EXPLAIN_S, self._ask)
            self._ask()
        self._draw()

    def _ask(self) -> None:
        self.run_worker(self._explain(), group="explain", exclusive=True)

    async def _explain(self) -> None:
        """What an operator makes of it now: by the very decision that it would act on."""
        reader = self.slinky.reader
        if reader is None:
            return
        try:
            found = await reader.explain(self._kind.table, self._row_id)
        except NotFound:
            self._explained = None  # no worker of a NodeSet: nothing is decided about it
        except SlinkyError as error:
            self._explained = Section("Operator", (Line("not known", error.line(), "error"),))
        else:
            self._explained = explained_section(found)
        self._draw()

    @property
    def alive(self) -> bool:
        """Whether all parts are there."""
        return self.is_mounted and bool(self.query("#body")) and bool(self.query("#footer"))

    def take(self, changed: dict[Table, set[RowId]]) -> None:
        """Rows have changed: ours, or those that it is joined with."""
        self._draw()

    def _draw(self) -> None:
        if not self.alive:
            return
        self.query_one("#header", Bar).say(*header_parts(self.slinky))
        self.query_one("#footer", Bar).say(footer_parts(self))
        ctx = self.slinky.context
        row = ctx.lookup.rows(self._kind.table).get(self._row_id) if ctx else None
        text = Text()
        if ctx is None or row is None:
            reader = self.slinky.reader
            loaded = reader is not None and self._kind.table in reader.ready
            text.append("it is gone from the list: esc goes back\n" if loaded else "loading …\n", "bold")
        else:
            text = self._page(row, ctx)
        if text != self._drawn:
            self._drawn = text
            self.query_one("#body", Static).update(text)

    def _page(self, row: Row, ctx: Context) -> Text:
        text, tokens = Text(), self.slinky.palette.tokens
        text.append(self._say(self._kind.summary(row, ctx)) + "\n\n", tokens["accent"])
        explained = () if self._explained is None else (self._explained,)
        sections = (
            *why_sections(row, ctx), *explained, *self._kind.detail(row, ctx), *event_sections(self._kind, row, ctx),
        )  # fmt: skip
        for section in sections:
            if not section.lines:
                continue
            text.append(f"{self._say(section.title)}\n", "bold")
            for line in section.lines:
                found = hang(f"  {self._say(line.label, 18)}", self._say(line.text, 4_000), self.size.width - 6, 21)
                text.append(found[:21], tokens["muted"])
                text.append(f"{found[21:]}\n", tokens[line.token])
            text.append("\n")
        self._links = [(link.kind, i) for link in self._kind.links for i in list(link.ids(row, ctx))[:9]][:9]
        if self._links:
            text.append("Relatives\n", "bold")
            for at, (kind, row_id) in enumerate(self._links, 1):
                there = ctx.lookup.rows(KINDS[kind].table).get(row_id)
                text.append(f"  {at} ", tokens["accent"])
                text.append(f"{KINDS[kind].singular:<12} ", tokens["muted"])
                text.append(self._say(str(row_id)))
                says = KINDS[kind].says(there, ctx) if there is not None else ""
                text.append(f"   {self._say(says, 80)}\n", tokens["muted"])
        return text

    def _say(self, text: str, longest: int = 1_000) -> str:
        return shown(text, self.slinky.palette.plain, longest)

    def action_back(self) -> None:
        self.dismiss()

    def action_link(self, number: int) -> None:
        if number <= len(self._links):
            kind, row_id = self._links[number - 1]
            self.app.push_screen(DetailScreen(KINDS[kind], row_id))

    def action_yaml(self) -> None:
        if not self._kind.raw:
            self.notify(f"a {self._kind.singular} has no object of its own", severity="warning")
            return
        self.app.push_screen(YamlScreen(self._kind, self._row_id))


class YamlScreen(Screen[None]):
    """The raw object, read now. `/` searches, `n` and `N` go on."""

    BINDINGS = [
        Binding("escape,q", "back", "back", id="yaml.back"),
        Binding("slash", "search", "search", id="yaml.search"),
        Binding("n", "step(1)", "next", id="yaml.next"),
        Binding("N", "step(-1)", "previous", show=False, id="yaml.previous"),
    ]
    DEFAULT_CSS = """
    YamlScreen VerticalScroll { border: heavy $accent; padding: 0 1; height: 1fr; }
    YamlScreen VerticalScroll.-plain { border: ascii $accent; }
    """

    def __init__(self, kind: Kind, row_id: RowId) -> None:
        super().__init__()
        self._kind, self._row_id = kind, row_id
        self._lines: list[str] = []
        self._found: list[int] = []
        self._at = 0
        self._word = ""

    def compose(self) -> ComposeResult:
        palette = cast("SlinkyApp", self.app).palette
        with VerticalScroll() as box:
            box.border_title = Content(f"{self._kind.singular} {inert(str(self._row_id), 60)}  YAML")
            box.set_class(palette.plain, "-plain")
            yield Static("reading …", id="body", markup=False)
        yield Bar(palette, id="footer")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.run_worker(self._read(), exit_on_error=True)

    async def _read(self) -> None:
        reader: Any = cast("SlinkyApp", self.app).reader
        try:
            self._lines = (await reader.raw(self._kind.table, self._row_id)).splitlines()
        except SlinkyError as error:
            self._lines = [error.line()]
        self._draw()

    def _draw(self) -> None:
        palette = cast("SlinkyApp", self.app).palette
        tokens, plain = palette.tokens, palette.plain
        text = Text()
        for at, line in enumerate(self._lines):
            hit = at in self._found
            text.append(f"{shown(line, plain, 5_000)}\n", f"bold {tokens['accent']}" if hit else "")
        self.query_one("#body", Static).update(text)
        self.query_one("#footer", Bar).say(footer_parts(self))

    def action_back(self) -> None:
        self.dismiss()

    def action_search(self) -> None:
        self.app.push_screen(Prompt("/", "text to find"), self._search)

    def _search(self, word: str | None) -> None:
        if not word:
            return
        self._word = word.casefold()
        self._found = [at for at, line in enumerate(self._lines) if self._word in line.casefold()]
        self._at = -1
        self._draw()
        self.action_step(1)

    def action_step(self, by: int) -> None:
        if not self._found:
            self.notify("not found" if self._word else "search with / first", timeout=2)
            return
        self._at = (self._at + by) % len(self._found)
        self.query_one(VerticalScroll).scroll_to(y=max(0, self._found[self._at] - 3), animate=False)
