"""What the keys do now, drawn from the live bindings."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from slinkytui.widgets.text import shown

_GROUPS: Final = (
    ("On the row", ("verb", "describe", "owner", "other", "yaml", "verbs", "copy", "again", "undo", "open", "unfold")),
    ("In the list", ("filter", "sort", "columns", "mark", "range", "mark_all", "export")),
    ("Around", ("pane", "go", "zoom", "hide", "problems", "command", "palette", "refresh_now", "help", "clear", "back", "app")),
)  # fmt: skip


class HelpScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape,q,question_mark", "dismiss", "back", id="help.leave")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: transparent; }
    HelpScreen VerticalScroll { width: 64; max-width: 100%; height: auto; max-height: 90%; border: heavy $accent; background: $surface; padding: 0 2; }
    HelpScreen.-plain VerticalScroll { border: ascii $accent; }
    """

    def __init__(self, bindings: dict[str, ActiveBinding], *, plain: bool = False) -> None:
        super().__init__()
        self._found, self._plain = bindings, plain
        self.set_class(plain, "-plain")

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = Content("what the keys do here")
            yield Static(self._text(), markup=False)

    def _text(self) -> Text:
        keys: dict[tuple[str, str], list[str]] = {}
        for key, active in self._found.items():
            binding = active.binding
            if active.enabled and binding.description:
                word = binding.action.partition("(")[0].partition(".")[0]
                shown_key = self.app.get_key_display(binding) if binding.key == key else key
                found = keys.setdefault((word, binding.description), [])
                if shown_key not in found:
                    found.append(shown_key)
        text = Text()
        done: set[tuple[str, str]] = set()
        for title, words in (*_GROUPS, ("Moving", ())):
            lines = [k for k in keys if k not in done and (k[0] in words or not words)]
            if not lines:
                continue
            text.append(f"{title}\n", "bold")
            for line in sorted(lines, key=lambda k: words.index(k[0]) if words else 0):
                done.add(line)
                text.append(f"  {shown(' '.join(keys[line]), self._plain)[:20]:<22}{shown(line[1], self._plain)}\n")
        return text
