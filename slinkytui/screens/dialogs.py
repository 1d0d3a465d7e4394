"""The dialogs of a verb: ask, then the plan with its blast radius (focus on Cancel), then the progress in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from slinkytui.backend import Plan, PlanStale, Reader, RunResult, SlinkyError, StepResult
from slinkytui.styles.palette import Palette
from slinkytui.widgets.text import fit, hang, inert, shown

_ROWS: Final = 200


class AskDialog(ModalScreen[str | None]):
    """One line asked for; None when left."""

    BINDINGS = [Binding("escape", "leave", "back", id="dialog.leave")]
    DEFAULT_CSS = """
    AskDialog { align: center middle; }
    AskDialog > Vertical { width: 76; max-width: 100%; height: auto; border: heavy $accent; background: $surface; padding: 1 2; }
    AskDialog Input, AskDialog Input:focus { border: none; height: 1; background: $panel; }
    AskDialog .note { color: $text-muted; }
    """

    def __init__(self, title: str, label: str, note: str, value: str = "") -> None:
        super().__init__()
        self._title, self._label, self._note, self._value = title, label, note, value

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(inert(self._title, 70))
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
    PlanDialog.-plain > Vertical { border: ascii $accent; }
    PlanDialog VerticalScroll { height: auto; max-height: 20; }
    PlanDialog Horizontal { height: auto; align-horizontal: right; }
    PlanDialog Button { min-width: 10; margin: 0 1; }
    PlanDialog Input, PlanDialog Input:focus { border: none; height: 1; background: $panel; width: 40; }
    """

    def __init__(self, plan: Plan, reader: Reader, palette: Palette) -> None:
        super().__init__()
        self._plan, self._reader, self._palette = plan, reader, palette
        self._done: list[StepResult] = []
        self._failed: tuple[str, ...] = ()
        self.set_class(palette.plain, "-plain")
        self._ran = self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(inert(self._plan.title, 80))
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
        plan, tokens = self._plan, self._palette.tokens
        text = Text(f"{self._inert(plan.summary)}\n")
        if plan.rows:
            grid = [plan.headers, *(r.cells for r in plan.rows[:_ROWS])]
            widths = [min(40, max(cell_len(inert(line[i], 40)) for line in grid)) for i in range(len(plan.headers))]
            text.append("\n")
            for at, line in enumerate(grid):
                cells = "   ".join(fit(self._inert(c, 40), w) for c, w in zip(line, widths, strict=True))
                text.append(f"  {cells}\n", tokens["muted"] if at == 0 else "")
            if len(plan.rows) > _ROWS:
                text.append(f"  and {len(plan.rows) - _ROWS:,} more\n", tokens["muted"])
            text.append("\n")
        killed = plan.blast.jobs_killed
        self._fact(text, "blast radius", plan.blast.words(), tokens["error"] if killed != 0 else "")
        for item in plan.warnings:
            self._fact(text, "warning", item, tokens["warning"])
        for item in plan.notes:
            self._fact(text, "note", item, "")
        if plan.command:
            self._fact(text, "runs", plan.command, "")
        if plan.refused:
            self._fact(text, "refused", plan.refused, tokens["warning"])
        return text

    def _fact(self, text: Text, label: str, words: str, style: str) -> None:
        lines = hang(label, self._inert(words), min(100, self.app.size.width) - 4, 15)
        text.append(lines[:15], self._palette.tokens["muted"])
        text.append(f"{lines[15:]}\n", style)

    def _inert(self, text: str, longest: int = 1_000) -> str:
        return shown(text, self._palette.plain, longest)

    def action_leave(self) -> None:
        self.dismiss(self._ran)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(inert(self._plan.command, 100_000))
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
        elif self._failed:
            self.run_worker(self._again(), exit_on_error=True)
        else:
            self._go()

    def _go(self) -> None:
        if self._busy or self._ran or self._plan.refused:
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
        self._say(_progress(self._done))

    def _finish(self, result: RunResult) -> None:
        if result.ok:
            self.app.notify(f"{self._plan.title}: done", timeout=4, markup=False)
            self.dismiss(True)
            return
        self._failed = tuple(r.target for r in result.results if not r.ok)
        self._say(_progress(result.results))
        for button in self.query("#go").results(Button):
            button.disabled, button.label = False, f"Retry {len(self._failed)}"

    async def _again(self) -> None:
        """Plan what has failed anew, and show that plan: the world may have moved."""
        failed, self._failed = self._failed, ()
        try:
            self._plan = await self._reader.plan(msgspec.structs.replace(self._plan.ask, targets=failed))
        except SlinkyError as error:
            self._say([error.line()])
            return
        self._done, self._ran = [], False
        self.query_one("#body", Static).update(self._body())
        for button in self.query("#go").results(Button):
            button.disabled, button.label = bool(self._plan.refused), self._plan.go
        self.query_one("#cancel", Button).label = "Cancel"
        self.query_one("#cancel").focus()

    def _say(self, lines: list[str]) -> None:
        self.query_one("#body", Static).update(Text("\n".join(self._inert(line) for line in lines) + "\n"))
        for button in self.query("#go").results(Button):
            button.disabled = True
        self.query_one("#cancel", Button).label = "Close"


def _progress(results: Sequence[StepResult]) -> list[str]:
    return [f"{'✓' if r.ok else '✖'} {r.target}  {r.text}{f'  {r.took_ms} ms' if r.took_ms else ''}" for r in results]
