"""What the keys do now, drawn from the live bindings."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static


class HelpScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape,q,question_mark", "dismiss", "back", id="help.leave")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 60; max-width: 100%; height: auto; max-height: 90%; border: heavy $accent; background: $surface; padding: 0 2; }
    """

    def __init__(self, bindings: dict[str, ActiveBinding]) -> None:
        super().__init__()
        self._found = bindings

    def compose(self) -> ComposeResult:
        keys: dict[str, list[str]] = {}
        for key, active in self._found.items():
            if active.enabled and active.binding.description:
                keys.setdefault(active.binding.description, []).append(
                    self.app.get_key_display(active.binding) if active.binding.key == key else key
                )
        text = Text()
        for description, found in keys.items():
            text.append(f"{' '.join(found)[:22]:<24}", "bold")
            text.append(f"{description}\n")
        with VerticalScroll() as box:
            box.border_title = "keys here"
            yield Static(text, markup=False)
