"""The detail page of a row of any kind, and its raw object as YAML with search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from slinkytui.backend import RowId, SlinkyError
from slinkytui.kinds import KINDS, Kind
from slinkytui.widgets.prompt import Prompt
from slinkytui.widgets.text import inert

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp


class DetailScreen(Screen[None]):
    """`1`…`9` open a relative, `y` the YAML."""

    BINDINGS = [
        Binding("escape,q", "back", "back", id="detail.back"),
        Binding("y", "yaml", "YAML", id="detail.yaml"),
        *(Binding(str(n), f"link({n})", f"relative {n}", show=False) for n in range(1, 10)),
    ]
    DEFAULT_CSS = "DetailScreen VerticalScroll { border: heavy $accent; padding: 0 1; }"

    def __init__(self, kind: Kind, row_id: RowId) -> None:
        super().__init__()
        self._kind, self._row_id = kind, row_id
        self._links: list[tuple[str, RowId]] = []

    @property
    def slinky(self) -> SlinkyApp:
        return cast("SlinkyApp", self.app)

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = f"{self._kind.singular} {inert(str(self._row_id), 60)}"
            yield Static("", id="body", markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.set_interval(2.0, self._draw)
        self._draw()

    def _draw(self) -> None:
        ctx = self.slinky.context
        row = ctx.lookup.rows(self._kind.table).get(self._row_id) if ctx else None
        text = Text()
        if ctx is None or row is None:
            text.append("it is gone from the list\n", "bold")
            self.query_one("#body", Static).update(text)
            return
        tokens = self.slinky.palette.tokens
        text.append(inert(self._kind.summary(row, ctx)) + "\n\n", tokens["accent"])
        for section in self._kind.detail(row, ctx):
            text.append(f"{section.title}\n", "bold")
            for line in section.lines:
                text.append(f"  {inert(line.label):<18} ", tokens["muted"])
                text.append(f"{inert(line.text, 4_000)}\n", tokens[line.token])
            text.append("\n")
        self._links = [(link.kind, i) for link in self._kind.links for i in list(link.ids(row, ctx))[:9]]
        if self._links:
            text.append("Relatives\n", "bold")
            for at, (kind, row_id) in enumerate(self._links[:9], 1):
                text.append(f"  {at} ", tokens["accent"])
                text.append(f"{KINDS[kind].singular} {inert(str(row_id))}\n")
        self.query_one("#body", Static).update(text)

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
    DEFAULT_CSS = "YamlScreen VerticalScroll { border: heavy $accent; padding: 0 1; }"

    def __init__(self, kind: Kind, row_id: RowId) -> None:
        super().__init__()
        self._kind, self._row_id = kind, row_id
        self._lines: list[str] = []
        self._found: list[int] = []
        self._at = 0
        self._word = ""

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = f"{self._kind.singular} {inert(str(self._row_id), 60)} · YAML"
            yield Static("reading …", id="body", markup=False)

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
        tokens = cast("SlinkyApp", self.app).palette.tokens
        text = Text()
        for at, line in enumerate(self._lines):
            hit = at in self._found
            text.append(f"{inert(line, 5_000)}\n", f"bold {tokens['accent']}" if hit else "")
        self.query_one("#body", Static).update(text)

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
