"""The Textual app: theme, the reader, the first screen. Nothing about jobs or pods."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from textual.app import App
from textual.binding import Binding

from slinkytui.backend import Reader, RowId, SlinkyError, Table
from slinkytui.kinds import find_kind
from slinkytui.kinds.base import Context
from slinkytui.screens.board import Board
from slinkytui.screens.listing import KindScreen
from slinkytui.styles.palette import PALETTES, Palette
from slinkytui.widgets.prompt import Prompt

_TABLES = (Table.SOURCES, Table.CLUSTERS, Table.PROBLEMS, Table.NODESETS, Table.NODES, Table.JOBS)
_REPAINT_S = 0.1


class SlinkyApp(App[None]):
    TITLE = "slinkytui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [
        Binding("question_mark", "help", "help", id="view.help"),
        Binding("colon", "command", "command", id="view.command"),
        Binding("ctrl+r", "refresh_now", "ask now", show=False, id="view.refresh"),
    ]

    def __init__(
        self, start: Callable[[], Awaitable[Reader]], *, theme_name: str = "dark", first: str = "board",
        read_only: bool = False, now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        super().__init__()
        self.animation_level = "none"
        self._start, self._first = start, first
        self.palette: Palette = PALETTES[theme_name]
        self.read_only, self.now = read_only, now
        self.reader: Reader | None = None
        self.fatal = ""
        self._changed: dict[Table, set[RowId]] = {}
        self._paint_due = False

    def on_mount(self) -> None:
        self.register_theme(self.palette.theme)
        self.theme = self.palette.theme.name
        self.push_screen(Board())
        kind = find_kind(self._first) if self._first != "board" else None
        if kind is not None:
            self.push_screen(KindScreen(kind))
        self.run_worker(self._connect(), name="connect", exit_on_error=False)
        self.set_interval(1.0, self._tick)

    async def _connect(self) -> None:
        try:
            reader = await self._start()
            hello = await reader.start()
            if hello.note.startswith("!"):
                raise SlinkyError(hello.note[1:])
            self.reader = reader
            reader.listen(self._on_changes)
            await reader.subscribe(*_TABLES)
            for screen in self.screen_stack:
                if isinstance(screen, KindScreen):
                    await screen.attach()
            self._paint()
        except SlinkyError as error:
            self.fatal = error.line()
            self.exit()

    @property
    def context(self) -> Context | None:
        """What cells need; None while the engine starts."""
        return None if self.reader is None else Context(self.now(), self.reader)

    def _on_changes(self, changed: dict[Table, set[RowId]]) -> None:
        for table, ids in changed.items():
            self._changed.setdefault(table, set()).update(ids)
        if not self._paint_due:
            self._paint_due = True
            self.set_timer(_REPAINT_S, self._paint)

    def _paint(self) -> None:
        self._paint_due = False
        changed, self._changed = self._changed, {}
        if not self.screen_stack:
            return  # the app is leaving
        screen = self.screen
        if isinstance(screen, Board | KindScreen):
            screen.repaint(set(changed) or set(Table))

    def _tick(self) -> None:
        if not self.screen_stack:
            return
        screen = self.screen
        if isinstance(screen, Board | KindScreen):
            screen.tick()

    async def action_refresh_now(self) -> None:
        if self.reader is not None:
            await self.reader.refresh()
            self.notify("asked the servers", timeout=2)

    def action_command(self) -> None:
        def done(text: str | None) -> None:
            if text:
                self.obey(text)

        self.push_screen(Prompt(":", "nodes, jobs, gpus, pods, problems, q …"), done)

    def obey(self, text: str) -> None:
        """A `:` command."""
        word, _, rest = text.strip().partition(" ")
        if word in ("q", "quit"):
            self.exit()
            return
        if word in ("board", "b"):
            while len(self.screen_stack) > 2:
                self.pop_screen()
            return
        kind = find_kind(word)
        if kind is None:
            self.notify(f"no command {word!r}: a kind (nodes, jobs, pods …), board or q", severity="warning")
            return
        self.push_screen(KindScreen(kind, rest.strip()))

    def action_help(self) -> None:
        from slinkytui.screens.help import HelpScreen

        self.push_screen(HelpScreen(self.screen.active_bindings))

    async def on_unmount(self) -> None:
        if self.reader is not None:
            await self.reader.close()
