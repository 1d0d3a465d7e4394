"""The operator at work: lease, queue, what runs now, and the decisions with their reasons."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from slinkytui.backend import OperatorView, RowId, SlinkyError, Table
from slinkytui.kinds.decisions import DECISIONS
from slinkytui.kinds.text import age
from slinkytui.screens.frame import footer_parts, header_parts
from slinkytui.screens.lists import LIST_BINDINGS, ListScreen
from slinkytui.screens.pane import KindPane
from slinkytui.widgets.bars import Bar
from slinkytui.widgets.table import ResourceTable
from slinkytui.widgets.text import shown

_LINES: Final = 5
"""Keys of the queue on view; the rest is counted."""
Line = tuple[str, str, str]
"""Label, text, token."""


class OperatorScreen(ListScreen):
    """`enter` opens a decision; `J` goes to its NodeSet."""

    BINDINGS = [*LIST_BINDINGS, Binding("escape,q", "back", "back", id="view.back")]
    DEFAULT_CSS = """
    OperatorScreen #work { height: auto; max-height: 12; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._view: OperatorView | None = None
        self._trouble = ""
        self._drawn = Text()

    def compose(self) -> ComposeResult:
        palette = self.slinky.palette
        yield Bar(palette, id="header")
        yield Static("", id="work", markup=False)
        yield KindPane(DECISIONS, wide=True)
        yield Bar(palette, id="chain")
        yield Bar(palette, id="footer")

    def active_pane(self) -> KindPane | None:
        return self.query_one(KindPane) if self.is_mounted else None

    async def on_mount(self) -> None:
        self.query_one(ResourceTable).focus()
        if self.slinky.reader is not None:
            await self.slinky.reader.subscribe(Table.DECISIONS, Table.NODESETS)
        self.set_interval(1.0, self._ask)
        self._ask()
        self.call_after_refresh(self.refill)

    def _ask(self) -> None:
        self.run_worker(self._read(), group="operator", exclusive=True)

    async def _read(self) -> None:
        reader = self.slinky.reader
        if reader is None:
            return
        try:
            self._view, self._trouble = await reader.operator(), ""
        except SlinkyError as error:
            self._trouble = error.line()
        if self.alive:
            self._draw()

    def refill(self) -> None:
        self.query_one(KindPane).fill()
        self.tick()

    def take(self, changed: dict[Table, set[RowId]]) -> None:
        if Table.DECISIONS in changed:
            self.query_one(KindPane).take(changed[Table.DECISIONS])
        self.tick()

    def tick(self) -> None:
        self.query_one("#header", Bar).say(*header_parts(self.slinky))
        self.query_one("#footer", Bar).say(footer_parts(self))
        self.query_one(KindPane).table.age()
        self._draw()

    def action_back(self) -> None:
        self.dismiss()

    def _draw(self) -> None:
        tokens, text = self.slinky.palette.tokens, Text()
        for label, said, token in self._lines():
            text.append(f"{label:<10} ", tokens["muted"])
            text.append(f"{shown(said, self.slinky.palette.plain, max(20, self.size.width - 14))}\n", tokens[token])
        text.rstrip()
        if text != self._drawn:
            self._drawn = text
            self.query_one("#work", Static).update(text)

    def _lines(self) -> list[Line]:
        if self._trouble:
            return [("operator", self._trouble, "error")]
        if self._view is None:
            who = self.slinky.operator() or "not known"
            return [
                ("operator", f"{who}; none runs in this engine", "text"),
                ("below", "what slinkytui's operator would decide now: nothing of it is done", "muted"),
            ]
        return [*_work(self._view), *_queue(self._view, self.slinky.now())]


def _work(view: OperatorView) -> list[Line]:
    leads = view.phase == "leading"
    counts = "  ".join(f"{word.replace('_', ' ')} {n}" for word, n in view.results)
    out: list[Line] = [
        ("operator", f"{view.identity}  {view.phase}", "success" if leads else "warning"),
        ("lease", view.note or f"held by {view.holder or 'nobody'}", "error" if view.note else "text"),
        ("passes", counts, "text"),
        (
            "running",
            ", ".join(f"{key} ({one})" for key, one in view.running) or f"none of {view.workers} workers",
            "text",
        ),
    ]
    out += [("waits for", why, "warning") for why in view.waits[:3]]
    return out


def _queue(view: OperatorView, now: float) -> list[Line]:
    held = [q for q in view.queue if q.state != "running"]
    if not held:
        return [("queue", "empty", "muted")]
    out: list[Line] = []
    for at, one in enumerate(held[:_LINES]):
        due = "now" if one.due_s <= 0 else f"in {one.due_s:.0f}s"
        tries = f"  {one.retries} tries: {one.error}" if one.error else ""
        text = f"{one.key}  {one.state} {due}, since {age(one.since, now)}{tries}"
        out.append(("queue" if at == 0 else "", text, "error" if one.error else "text"))
    if held[_LINES:]:
        out.append(("", f"and {len(held) - _LINES} more", "muted"))
    return out
