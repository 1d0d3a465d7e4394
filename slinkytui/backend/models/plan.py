"""A verb's plan and what came of it: the same for the console, the command line and the daemon."""

from __future__ import annotations

import msgspec

Targets = tuple[str, ...]


class Ask(msgspec.Struct, frozen=True):
    """A verb asked for: `targets` as a person writes them, `settings` like {"replicas": "92"}."""

    verb: str
    targets: Targets
    settings: dict[str, str] = {}
    reason: str = ""
    cluster: str = ""
    namespace: str = ""


class Step(msgspec.Struct, frozen=True):
    """One call. `call` is METHOD PATH as sent, `text` plain words, `skip` why nothing is to be done for this target."""

    target: str
    text: str
    call: str = ""
    body: str = ""
    skip: str = ""
    refused: str = ""


class PlanLine(msgspec.Struct, frozen=True):
    """A line of a plan's table: cells fit the plan's `headers`."""

    cells: tuple[str, ...]


class Blast(msgspec.Struct, frozen=True):
    """The blast radius. None: not known (shown as such, and a warning)."""

    nodes: int | None = 0
    pods: int | None = 0
    jobs_end: int | None = 0
    jobs_killed: int | None = 0
    users: tuple[str, ...] = ()
    gpus: int | None = 0
    last_end: str = ""

    def words(self) -> str:
        """Plain words for a person, without zeros."""

        def count(n: int | None, word: str) -> str:
            return f"? {word}s" if n is None else f"{n} {word}{'' if n == 1 else 's'}" if n else ""

        parts = [
            count(self.nodes, "node"),
            count(self.pods, "pod"),
            f"{count(self.jobs_end, 'job')} run to their end" if self.jobs_end != 0 else "",
            f"{count(self.jobs_killed, 'job')} KILLED" if self.jobs_killed != 0 else "no job is killed",
            count(len(self.users), "user"),
            count(self.gpus, "GPU"),
            f"last ends {self.last_end}" if self.last_end else "",
        ]
        return " · ".join(p for p in parts if p)


class Plan(msgspec.Struct, frozen=True):
    """What a verb will do. `hash` covers the decisive inputs; a run refuses when it no longer fits.

    `confirm_count` is a number that a person types to confirm (0: a press is enough). `inverse` is the verb that takes
    it back, `back` and `back_reason` what that verb needs.
    """

    ask: Ask
    title: str
    summary: str
    steps: tuple[Step, ...]
    blast: Blast
    hash: str
    made: float
    headers: tuple[str, ...] = ()
    rows: tuple[PlanLine, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    command: str = ""
    inverse: str = ""
    back: dict[str, str] = {}
    back_reason: str = ""
    confirm_count: int = 0
    refused: str = ""
    go: str = "Run"
    last_waits: bool = False
    """The last step is only done when all before it have worked."""

    @property
    def todo(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if not s.skip and not s.refused)

    def undo(self) -> Ask | None:
        """What takes this back, to be planned like anything else; None where nothing does."""
        if not self.inverse:
            return None
        targets = tuple(s.target for s in self.todo)
        return Ask(self.inverse, targets, dict(self.back), self.back_reason, self.ask.cluster, self.ask.namespace)


class StepResult(msgspec.Struct, frozen=True):
    target: str
    ok: bool
    text: str
    took_ms: int = 0
    skipped: bool = False


class RunResult(msgspec.Struct, frozen=True):
    plan_hash: str
    verb: str
    results: tuple[StepResult, ...]

    @property
    def ok(self) -> bool:
        return all(r.ok for r in self.results)
