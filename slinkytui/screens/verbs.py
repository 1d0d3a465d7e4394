"""From a key to a plan to a run: the same few steps for every verb, on any screen with a pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from slinkytui.backend import Ask, FleetNodeSet, Job, Row, SlinkyError
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
            pane = self.active_pane() if self.is_mounted else None
            if self.slinky.read_only or pane is None:
                return False
            return str(parameters[0]) in pane.kind.verbs
        if action in ("again", "undo"):
            return not self.slinky.read_only
        return True

    def refusal(self, verb_id: str) -> str:
        """Why a verb is not offered on the row under the cursor, or ""."""
        if self.slinky.read_only:
            return "started with --read-only"
        pane = self.active_pane()
        row: Any = pane.current() if pane is not None else None
        if row is None:
            return "no row here"
        return self.slinky.refusal(verb_id, *place_of(row))

    def action_verb(self, verb_id: str) -> None:
        refused = self.refusal(verb_id)
        if refused:
            self.notify(f"{VERBS[verb_id].title}: {refused}", severity="warning", markup=False)
            return
        self.run_worker(self._verb(verb_id), group="verb", exclusive=True, exit_on_error=True)

    async def _verb(self, verb_id: str) -> None:
        pane = self.active_pane()
        if pane is None or self.slinky.reader is None:
            return
        rows = pane.targets()
        if not rows:
            self.notify("no row here", severity="warning")
            return
        if verb_id == "job.hold" and all(isinstance(r, Job) and r.hold for r in rows):
            verb_id = "job.release"
        ask = await self._asked(verb_id, rows)
        if ask is not None and await self._planned(ask):
            pane.table.clear_marks()

    async def _planned(self, ask: Ask) -> bool:
        """Plan, show, run; True when it was run."""
        reader = self.slinky.reader
        if reader is None:
            return False
        try:
            plan = await reader.plan(ask)
        except SlinkyError as error:
            self.notify(error.line(), severity="error", markup=False)
            return False
        ran = await self.app.push_screen_wait(PlanDialog(plan, reader, self.slinky.palette))
        if ran:
            self.slinky.last_plan = plan
        return ran

    def action_again(self) -> None:
        """The last verb, on this row."""
        last = self.slinky.last_plan
        pane = self.active_pane()
        if last is None or pane is None or last.ask.verb not in pane.kind.verbs:
            self.notify("nothing to do again here", timeout=3)
            return
        rows = pane.targets()
        names = tuple(target_of(last.ask.verb, r) for r in rows)
        if names:
            cluster, namespace = place_of(rows[0])
            ask = Ask(last.ask.verb, names, dict(last.ask.settings), last.ask.reason, cluster, namespace)
            self.run_worker(self._planned(ask), group="verb", exclusive=True, exit_on_error=True)

    def action_undo(self) -> None:
        """The inverse of the last verb, planned and shown like any other."""
        last = self.slinky.last_plan
        inverse = last.undo() if last is not None else None
        if last is None or inverse is None:
            what = f"{last.ask.verb} has no inverse" if last is not None else "nothing was done yet"
            self.notify(what, timeout=3)
            return
        self.run_worker(self._planned(inverse), group="verb", exclusive=True, exit_on_error=True)

    async def _asked(self, verb_id: str, rows: list[Row]) -> Ask | None:
        verb = VERBS[verb_id]
        names = tuple(target_of(verb_id, r) for r in rows)
        cluster, namespace = place_of(rows[0])
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


def place_of(row: Any) -> tuple[str, str]:
    """Slurm cluster and Kubernetes namespace of a row, each "" where it has none."""
    return getattr(row.id, "cluster", ""), getattr(row.id, "namespace", "")


def target_of(verb_id: str, row: Any) -> str:
    """A row as a verb names it."""
    return str(row.id) if VERBS[verb_id].kind == "jobs" else str(row.id.name)
