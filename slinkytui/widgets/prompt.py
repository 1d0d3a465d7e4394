"""One line of input at the foot of the screen: `:` commands and `/` filters. Letters only type here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label


class Prompt(ModalScreen[str | None]):
    """Dismissed with the text, or None. `changed` hears every letter; `words` are completed: tab takes the rest."""

    BINDINGS = [
        Binding("escape", "leave", "back", id="prompt.leave"),
        Binding("tab", "complete", show=False, priority=True, id="prompt.complete"),
    ]
    DEFAULT_CSS = """
    Prompt { align: center bottom; background: transparent; }
    Prompt Horizontal { height: 1; background: $panel; }
    Prompt Label { width: 2; color: $accent; }
    Prompt Input, Prompt Input:focus { border: none; height: 1; padding: 0; background: $panel; width: 1fr; }
    """

    def __init__(
        self, sign: str, hint: str, value: str = "", changed: Callable[[str], None] | None = None,
        words: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        self._sign, self._hint, self._value, self._changed = sign, hint, value, changed
        self._words = words

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(self._sign, markup=False)
            suggester = SuggestFromList(self._words, case_sensitive=False) if self._words else None
            yield Input(self._value, placeholder=self._hint, suggester=suggester, select_on_focus=False)

    def on_mount(self) -> None:
        entry = self.query_one(Input)
        entry.cursor_blink = False
        self.set_focus(entry)  # at once: the next key may be here already

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._changed is not None:
            self._changed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_complete(self) -> None:
        self.query_one(Input).action_cursor_right()

    def action_leave(self) -> None:
        self.dismiss(None)
