"""What table and grid share: a scrolled view that writes only the lines that have changed, for a terminal far away."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.style import Style
from textual.geometry import Region
from textual.scroll_view import ScrollView

from slinkytui.styles.palette import Palette
from slinkytui.widgets.text import fit, shown


class LineView(ScrollView, can_focus=True):
    """`fixed` lines at the top do not scroll. A subclass tells by signatures what its lines show."""

    DEFAULT_CSS = (
        "LineView { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }"
    )
    fixed: ClassVar[int] = 0

    def __init__(self, palette: Palette, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.palette = palette
        self.stale = False
        self.empty = ""
        self._styles = {k: Style(color=v, bgcolor=palette.back) for k, v in palette.tokens.items()}
        self._back = Style(bgcolor=palette.back)
        self._drawn: list[object] = []

    def on_mount(self) -> None:
        if self.palette.plain:
            self.styles.scrollbar_size_vertical = 0  # a scroll bar is drawn in eighths of a block

    def frame_signature(self) -> object:
        """What all lines depend on."""
        raise NotImplementedError

    def line_signature(self, at: int) -> object:
        """What line `at` of the content shows; None beyond the end."""
        raise NotImplementedError

    def sync(self) -> None:
        """Draw the lines that have changed, and no others."""
        top, room = int(self.scroll_offset.y), max(0, self.size.height - self.fixed)
        drawn = [(self.frame_signature(), top, self.size.width), *map(self.line_signature, range(top, top + room))]
        before, self._drawn = self._drawn, drawn
        if len(before) != len(drawn) or before[0] != drawn[0]:
            self.refresh()
            return
        lines = [Region(0, y + self.fixed, self.size.width, 1) for y in range(room) if before[y + 1] != drawn[y + 1]]
        if lines:
            self.refresh(*lines)

    def say(self, text: str) -> str:
        """A text as this terminal may show it."""
        return shown(text, self.palette.plain)

    def cut(self, text: str, width: int, align: str = "left") -> str:
        """A text as this terminal may show it, exactly so wide."""
        found = fit(self.say(text), width, align)
        return found.replace("…", "~") if self.palette.plain else found

    def on_focus(self) -> None:
        self.sync()

    def on_blur(self) -> None:
        self.sync()

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self.scrolled()
        self.sync()

    def scrolled(self) -> None:
        """Other lines are on view."""
