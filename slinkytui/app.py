"""The Textual app: theme, the reader, the first screen. Nothing about jobs or pods."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from slinkytui.backend import Operator, Plan, Reader, RowId, SlinkyError, Source, Table
from slinkytui.commands import obey, open_palette, suggestions
from slinkytui.kinds import find_kind
from slinkytui.kinds.base import Context
from slinkytui.kinds.freshness import known
from slinkytui.kinds.tally import Tally
from slinkytui.memory import Memory
from slinkytui.screens.board import Board
from slinkytui.screens.detail import DetailScreen
from slinkytui.screens.listing import KindScreen
from slinkytui.screens.lists import ListScreen
from slinkytui.styles.palette import Palette, palette_of
from slinkytui.widgets.prompt import Prompt

_TABLES = (
    Table.SOURCES, Table.CLUSTERS, Table.OPERATORS, Table.PROBLEMS, Table.NODESETS, Table.NODES, Table.JOBS,
)  # fmt: skip
_REPAINT_S = 0.1
_RIGHTS_S = 60.0


class SlinkyApp(App[None]):
    TITLE = "slinkytui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [
        Binding("question_mark", "help", "help", id="view.help"),
        # With priority: keys that come in one burst behind it must find the prompt there.
        Binding("colon", "command", "command", id="view.command", priority=True),
        Binding("ctrl+p", "palette", "everything", show=False, id="view.palette"),
        Binding("ctrl+r", "refresh_now", "ask the servers now", show=False, id="view.refresh"),
    ]

    def __init__(
        self, start: Callable[[], Awaitable[Reader]], *, theme_name: str = "dark", plain: bool = False, first: str = "board",
        read_only: bool = False, keys: Mapping[str, str] | None = None, memory: Memory | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        super().__init__()
        self.animation_level = "none"
        self._start, self._first = start, first
        self.palette: Palette = palette_of(theme_name, plain)
        self.read_only, self.now = read_only, now
        self.memory = memory or Memory()
        self.reader: Reader | None = None
        self.tally = Tally()
        self.last_plan: Plan | None = None
        self.fatal: SlinkyError | None = None
        """Why the engine could not start."""
        self._keys = dict(keys or {})
        self._rights: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}
        self._changed: dict[Table, set[RowId]] = {}
        self._paint_due = False

    def on_mount(self) -> None:
        self.register_theme(self.palette.theme)
        self.theme = self.palette.theme.name
        self.set_keymap(self._keys)
        self.push_screen(Board())
        kind = find_kind(self._first) if self._first != "board" else None
        if kind is not None:
            self.push_screen(KindScreen(kind))
        if self.memory.trouble:
            self.notify(self.memory.trouble, severity="warning", markup=False)
        self.run_worker(self._connect(), name="connect", exit_on_error=False)
        self.set_interval(1.0, self._tick)

    async def _connect(self) -> None:
        try:
            reader = await self._start()
            await reader.start()
            self.reader = reader
            reader.listen(self._on_changes)
            await reader.subscribe(*_TABLES)
            for screen in self.screen_stack:
                if isinstance(screen, KindScreen):
                    await screen.attach()
            self.refill()
        except SlinkyError as error:
            self.fatal = error
            self.exit()

    @property
    def context(self) -> Context | None:
        """What cells need; None while the engine starts."""
        return None if self.reader is None else Context(self.now(), self.reader)

    def sources(self) -> list[Source]:
        """Every stream of data, with its freshness."""
        if self.reader is None:
            return []
        return [s for s in self.reader.rows(Table.SOURCES).values() if isinstance(s, Source)]

    def knows(self, table: Table) -> bool:
        """Whether any server has told this table yet."""
        return known(table, self.sources())

    def operator(self) -> str:
        """Who reconciles this cluster, in a word or two; "" while that is not known."""
        if self.reader is None:
            return ""
        found = [o for o in self.reader.rows(Table.OPERATORS).values() if isinstance(o, Operator)]
        if not found:
            leases = next((s for s in self.sources() if s.name == "kubernetes/leases"), None)
            simulated = self.reader.hello is not None and bool(self.reader.hello.sim)
            if leases is None or simulated:
                return ""
            return "nobody" if leases.state == "live" else "not known" if leases.state == "absent" else ""
        return "; ".join(dict.fromkeys(o.words(self.now()) for o in found))

    def refusal(self, verb_id: str, cluster: str, namespace: str) -> str:
        """Why a verb is refused there, or "". Asks the engine when that is not known yet or was long ago."""
        at, found = self._rights.get((cluster, namespace), (float("-inf"), {}))
        if self.reader is not None and self.now() - at > _RIGHTS_S:
            self._rights[cluster, namespace] = (self.now(), found)
            self.run_worker(self._ask_rights(cluster, namespace), group=f"rights {cluster} {namespace}")
        return found.get(verb_id, "")

    async def _ask_rights(self, cluster: str, namespace: str) -> None:
        reader = self.reader
        if reader is None:
            return
        try:
            self._rights[cluster, namespace] = (self.now(), await reader.rights(cluster, namespace))
        except SlinkyError as error:
            self.log(f"rights: {error.line()}")
            self._rights.pop((cluster, namespace), None)
            return
        if isinstance(self.screen, ListScreen):
            self.screen.refresh_bindings()
            self.screen.tick()

    def forget_rights(self) -> None:
        self._rights.clear()

    def _on_changes(self, changed: dict[Table, set[RowId]]) -> None:
        for table, ids in changed.items():
            self._changed.setdefault(table, set()).update(ids)
            if self.reader is not None:
                self.tally.change(table, ids, self.reader.rows(table))
        if not self._paint_due:
            self._paint_due = True
            self.set_timer(_REPAINT_S, self._paint)

    def _paint(self) -> None:
        self._paint_due = False
        changed, self._changed = self._changed, {}
        # Lists under a dialog follow too: what they show must be true when the dialog closes.
        for screen in self.screen_stack:
            if isinstance(screen, ListScreen | DetailScreen) and screen.alive:
                screen.take(changed)

    def _tick(self) -> None:
        for screen in self.screen_stack[-2:]:
            if isinstance(screen, ListScreen) and screen.alive:
                screen.tick()

    def refill(self) -> None:
        """Everything on view is made anew."""
        for screen in self.screen_stack:
            if isinstance(screen, ListScreen) and screen.alive:
                screen.refill()

    def repaint_as(self, theme_name: str) -> None:
        """Another theme: the screens are made anew in its colours."""
        self.palette = palette_of(theme_name, self.palette.plain)
        self.register_theme(self.palette.theme)
        self.theme = self.palette.theme.name
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.push_screen(Board())

    async def action_refresh_now(self) -> None:
        if self.reader is not None:
            await self.reader.refresh()
            for screen in self.screen_stack:
                if isinstance(screen, ListScreen) and screen.alive:
                    screen.refill()
            self.notify("asked the servers", timeout=2)

    async def action_command(self) -> None:
        def done(text: str | None) -> None:
            if text:
                self.obey(text)

        await self.push_screen(
            Prompt(":", "nodes, jobs, gpus, pods, problems, ns, ctx, q …", words=suggestions()), done
        )

    def obey(self, text: str) -> None:
        """A `:` command."""
        self.run_worker(obey(self, text), exit_on_error=True)

    def action_palette(self) -> None:
        self.run_worker(open_palette(self), exit_on_error=True)

    def action_help(self) -> None:
        from slinkytui.screens.help import HelpScreen

        screen: Screen[object] = self.screen
        self.push_screen(HelpScreen(screen.active_bindings, plain=self.palette.plain))

    async def on_unmount(self) -> None:
        if self.reader is not None:
            await self.reader.close()
