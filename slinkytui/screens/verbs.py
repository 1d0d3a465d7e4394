"""From a key to a plan to a run: the same few steps for every verb, on any screen with a pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from slinkytui.backend import Ask, FleetNodeSet, Job, SlinkyError
from slinkytui.kinds.verbs import VERBS
from slinkytui.screens.dialogs import AskDialog, PlanDialog
from slinkytui.screens.pane import KindPane

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp


class VerbScreen(Screen[None]):
    """A screen that offers verbs on the rows of its focused pane."""

    @property
    def slinky(self) -> SlinkyApp:
        return cast("SlinkyApp", self.app)

    def active_pane(self) -> KindPane | None:
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "verb":
            pane = self.active_pane()
            if self.slinky.read_only or pane is None:
                return False
            return str(parameters[0]) in pane.kind.verbs
        return True

    def action_verb(self, verb_id: str) -> None:
        self.run_worker(self._verb(verb_id), group="verb", exclusive=True, exit_on_error=True)

    async def _verb(self, verb_id: str) -> None:
        pane, reader = self.active_pane(), self.slinky.reader
        if pane is None or reader is None:
            return
        targets = pane.table.targets
        rows = [row for i in targets if (row := reader.rows(pane.kind.table).get(cast(Any, i))) is not None]
        if not rows:
            self.notify("no row here", severity="warning")
            return
        if verb_id == "job.hold" and all(isinstance(r, Job) and r.hold for r in rows):
            verb_id = "job.release"
        ask = await self._asked(verb_id, rows)
        if ask is None:
            return
        try:
            plan = await reader.plan(ask)
        except SlinkyError as error:
            self.notify(error.line(), severity="error", markup=False)
            return
        if await self.app.push_screen_wait(PlanDialog(plan, reader)):
            pane.table.marks.clear()
            pane.table.refresh()

    async def _asked(self, verb_id: str, rows: list[Any]) -> Ask | None:
        verb = VERBS[verb_id]
        names = tuple(str(r.id.name) if verb.kind != "jobs" else str(r.id) for r in rows)
        cluster = getattr(rows[0].id, "cluster", "")
        namespace = getattr(rows[0].id, "namespace", "")
        title = f"{verb.title.capitalize()} {', '.join(names[:3])}{' …' if len(names) > 3 else ''} ({len(names)})"
        reason = ""
        settings: dict[str, str] = {}
        if "reason" in verb.asks:
            given = await self.app.push_screen_wait(AskDialog(title, "Reason", "sent to Slurm"))
            reason = given or ""
            if not reason:
                return None
        if "replicas" in verb.asks:
            row = rows[0]
            now = str(row.want) if isinstance(row, FleetNodeSet) and row.want is not None else ""
            text = await self.app.push_screen_wait(AskDialog(f"Scale {names[0]}", "Replicas", "", now))
            if text is None:
                return None
            settings, names = {"replicas": text.strip()}, names[:1]
        return Ask(verb_id, names, settings, reason, cluster, namespace)
