"""The dialogs of a verb: ask, then the plan with its blast radius (focus on Cancel), then the progress in its place."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from slinkytui.backend import Plan, PlanStale, Reader, RunResult, SlinkyError, StepResult
from slinkytui.widgets.text import inert


class AskDialog(ModalScreen[str | None]):
    """One line asked for; None when left."""

    BINDINGS = [Binding("escape", "leave", "back", id="dialog.leave")]
    DEFAULT_CSS = """
    AskDialog { align: center middle; }
    AskDialog > Vertical { width: 76; max-width: 100%; height: auto; border: heavy $accent; background: $surface; padding: 1 2; }
    AskDialog Input { border: none; height: 1; background: $panel; }
    AskDialog .note { color: $text-muted; }
    """

    def __init__(self, title: str, label: str, note: str, value: str = "") -> None:
        super().__init__()
        self._title, self._label, self._note, self._value = title, label, note, value

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = inert(self._title, 70)
            yield Label(self._label, markup=False)
            yield Input(self._value)
            yield Label(f"{self._note}   enter goes on, esc leaves".strip(), classes="note", markup=False)

    def on_mount(self) -> None:
        entry = self.query_one(Input)
        entry.cursor_blink = False
        entry.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        self.dismiss(None)


class PlanDialog(ModalScreen[bool]):
    """True when it was run. `y` confirms only a plan without warnings; big plans want their count typed."""

    BINDINGS = [
        Binding("escape", "leave", "back", id="plan.leave"),
        Binding("y", "yes", "run", id="plan.yes"),
        Binding("c", "copy", "copy command", id="plan.copy"),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]
    DEFAULT_CSS = """
    PlanDialog { align: center middle; }
    PlanDialog > Vertical { width: 100; max-width: 100%; height: auto; max-height: 100%; border: heavy $accent; background: $surface; padding: 0 1; }
    PlanDialog VerticalScroll { height: auto; max-height: 20; }
    PlanDialog Horizontal { height: auto; align-horizontal: right; }
    PlanDialog Button { min-width: 10; margin: 0 1; }
    PlanDialog Input { border: none; height: 1; background: $panel; width: 40; }
    """

    def __init__(self, plan: Plan, reader: Reader) -> None:
        super().__init__()
        self._plan, self._reader = plan, reader
        self._done: list[StepResult] = []
        self._ran = self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = inert(self._plan.title, 80)
            box.border_subtitle = f"plan {self._plan.hash}"
            with VerticalScroll(can_focus=False):
                yield Static(self._body(), id="body", markup=False)
            if self._plan.confirm_count and not self._plan.refused:
                yield Input(placeholder=f"type {self._plan.confirm_count} to confirm")
            with Horizontal():
                yield Button("Cancel", id="cancel", compact=True)
                if not self._plan.refused:
                    yield Button(self._plan.go, id="go", compact=True)

    def on_mount(self) -> None:
        self.query_one("#cancel").focus()

    def _body(self) -> Text:
        plan = self._plan
        text = Text(f"{plan.summary}\n")
        if plan.rows:
            grid = [plan.headers, *(r.cells for r in plan.rows[:200])]
            widths = [min(40, max(len(inert(line[i])) for line in grid)) for i in range(len(plan.headers))]
            text.append("\n")
            for at, line in enumerate(grid):
                cells = "   ".join(inert(c, 40).ljust(w) for c, w in zip(line, widths, strict=True))
                text.append(f"  {cells}\n", "bold" if at == 0 else "")
            text.append("\n")
        text.append(f"blast radius   {inert(plan.blast.words())}\n")
        for word, items in (("warning", plan.warnings), ("note", plan.notes)):
            for item in items:
                text.append(f"{word:<14} {inert(item)}\n", "bold" if word == "warning" else "")
        if plan.command:
            text.append(f"runs           {inert(plan.command)}\n")
        if plan.refused:
            text.append(f"refused        {inert(plan.refused)}\n", "bold")
        return text

    def action_leave(self) -> None:
        self.dismiss(self._ran)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._plan.command)
        self.notify("command copied", timeout=2)

    def action_yes(self) -> None:
        if self._plan.warnings or self._plan.confirm_count or self._plan.refused:
            self.notify("this plan has warnings: move to the button", severity="warning", timeout=3)
        else:
            self._go()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "cancel":
            self.dismiss(self._ran)
        else:
            self._go()

    def _go(self) -> None:
        if self._busy or self._ran:
            return
        if self._plan.confirm_count and self.query_one(Input).value.strip() != str(self._plan.confirm_count):
            self.notify(f"type {self._plan.confirm_count} first", severity="warning", timeout=3)
            return
        self._busy = True
        self.run_worker(self._run(), exit_on_error=True)

    async def _run(self) -> None:
        try:
            result = await self._reader.run(self._plan, self._told)
        except PlanStale as error:
            self._say([f"the cluster has changed: {error.detail}", "nothing was done; leave and plan again"])
            return
        except SlinkyError as error:
            self._say([error.line()])
            return
        finally:
            self._busy = False
        self._ran = True
        self._finish(result)

    def _told(self, result: StepResult) -> None:
        self._done.append(result)
        self._say([f"{'✓' if r.ok else '✖'} {r.target}  {r.text}" for r in self._done])

    def _finish(self, result: RunResult) -> None:
        if result.ok:
            self.app.notify(f"{self._plan.title}: done", timeout=4, markup=False)
            self.dismiss(True)
            return
        self._say([f"{'✓' if r.ok else '✖'} {r.target}  {r.text}" for r in result.results])

    def _say(self, lines: list[str]) -> None:
        self.query_one("#body", Static).update(Text("\n".join(inert(line) for line in lines) + "\n"))
        for button in self.query("#go"):
            button.disabled = True
        self.query_one("#cancel", Button).label = "Close"
