"""One list to choose from, narrowed as one types: verbs of a row, namespaces, contexts, columns, the palette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.fuzzy import Matcher
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from slinkytui.widgets.text import fit, in_ascii, inert

_MOST: Final = 200


@dataclass(frozen=True)
class Choice:
    """`note` stands at the right; a `refused` choice is shown grey with the reason and cannot be taken."""

    id: str
    text: str
    note: str = ""
    refused: str = ""


class Chooser(ModalScreen[str | None]):
    """Dismissed with the id chosen, or None. Letters narrow the list; arrows move; enter takes."""

    BINDINGS = [
        Binding("escape", "leave", "back", id="chooser.leave"),
        Binding("down,ctrl+n", "step(1)", show=False, id="chooser.down"),
        Binding("up,ctrl+p", "step(-1)", show=False, id="chooser.up"),
    ]
    DEFAULT_CSS = """
    Chooser { align: center middle; background: transparent; }
    Chooser > Vertical { width: 76; max-width: 100%; height: auto; max-height: 90%; border: heavy $accent; background: $surface; padding: 0 1; }
    Chooser.-plain > Vertical { border: ascii $accent; }
    Chooser Input, Chooser Input:focus { border: none; height: 1; padding: 0; background: $panel; }
    Chooser OptionList { border: none; height: auto; max-height: 20; padding: 0; background: $surface; scrollbar-size-vertical: 1; }
    Chooser Static { color: $text-muted; height: 1; }
    """

    def __init__(self, title: str, choices: Sequence[Choice], *, hint: str = "", plain: bool = False) -> None:
        super().__init__()
        self._title, self._choices, self._hint, self._plain = title, list(choices), hint, plain
        self._shown: list[Choice] = []
        self.set_class(plain, "-plain")

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(inert(self._title, 70))
            entry = Input(placeholder="type to narrow")
            entry.cursor_blink = False
            yield entry
            yield OptionList(markup=False)
            yield Static(self._hint or "enter takes, esc leaves", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()
        self._fill("")

    def _fill(self, word: str) -> None:
        choices = self._choices
        if word.strip():
            matcher = Matcher(word.strip())
            scored = [(max(matcher.match(c.text), matcher.match(c.id)), -at, c) for at, c in enumerate(choices)]
            choices = [c for score, _, c in sorted(scored, key=lambda s: s[:2], reverse=True) if score > 0]
        self._shown = choices[:_MOST]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._line(c), disabled=bool(c.refused)) for c in self._shown])
        first = next((at for at, c in enumerate(self._shown) if not c.refused), None)
        options.highlighted = first

    def _line(self, choice: Choice) -> Text:
        text, note = inert(choice.text, 60), inert(choice.refused or choice.note, 200)
        room = 70
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        left = fit(text, min(40, room)).rstrip()
        line.append(in_ascii(left) if self._plain else left)
        if note:
            tail = fit(note, room - len(left) - 2).rstrip()
            gap = max(2, room - len(left) - len(tail))
            line.append(" " * gap + (in_ascii(tail) if self._plain else tail), "dim")
        return line

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._shown) and not self._shown[at].refused:
            self.dismiss(self._shown[at].id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._shown[event.option_index].id)

    def action_step(self, by: int) -> None:
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    def action_leave(self) -> None:
        self.dismiss(None)


class ColumnChooser(ModalScreen[list[str] | None]):
    """Which columns, in which order: space turns one on or off, `K` and `J` move it. None when left."""

    BINDINGS = [
        Binding("escape", "leave", "back", id="columns.leave"),
        Binding("space", "turn", "on or off", id="columns.turn"),
        Binding("K,shift+up", "move(-1)", "earlier", id="columns.earlier"),
        Binding("J,shift+down", "move(1)", "later", id="columns.later"),
        Binding("backspace", "reset", "as it was", id="columns.reset"),
        Binding("enter", "take", "take", id="columns.take", priority=True),
        Binding("j", "step(1)", show=False),
        Binding("k", "step(-1)", show=False),
    ]
    DEFAULT_CSS = """
    ColumnChooser { align: center middle; background: transparent; }
    ColumnChooser > Vertical { width: 50; max-width: 100%; height: auto; max-height: 90%; border: heavy $accent; background: $surface; padding: 0 1; }
    ColumnChooser OptionList, ColumnChooser OptionList:focus { border: none; height: auto; max-height: 24; padding: 0; background: $surface; scrollbar-size-vertical: 1; }
    ColumnChooser Static { color: $text-muted; height: auto; }
    """

    def __init__(self, title: str, fields: Sequence[tuple[str, str]], chosen: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        known = dict(fields)
        self._on = set(chosen)
        self._order = [f for f in chosen if f in known] + [f for f in known if f not in self._on]
        self._titles = known

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._title)
            yield OptionList(markup=False)
            yield Static(
                "space on or off · K J move · enter takes\nbackspace the usual ones · esc leaves", markup=False
            )

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._fill(0)

    def _fill(self, at: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            Text(f"{'[x]' if f in self._on else '[ ]'} {self._titles[f]:<14} {f}", end="") for f in self._order
        )
        options.highlighted = at

    def action_step(self, by: int) -> None:
        options = self.query_one(OptionList)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    def action_turn(self) -> None:
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self._on.symmetric_difference_update({self._order[at]})
            self._fill(at)

    def action_move(self, by: int) -> None:
        at = self.query_one(OptionList).highlighted
        if at is not None and 0 <= at + by < len(self._order):
            self._order[at], self._order[at + by] = self._order[at + by], self._order[at]
            self._fill(at + by)

    def action_reset(self) -> None:
        self.dismiss([])

    def action_take(self) -> None:
        self.dismiss([f for f in self._order if f in self._on])

    def action_leave(self) -> None:
        self.dismiss(None)
