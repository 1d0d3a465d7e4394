"""Job dependencies: the text of `dependency`, and what of it is met, open or impossible."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

KINDS: Final = ("after", "afterany", "afternotok", "afterok")
Met = Literal["met", "open", "never"]
_TARGET: Final = re.compile(r"(\d+(?:_\d+)?)(?:\+(\d+))?(?:\(([a-z]+)\))?")


@dataclass(frozen=True)
class Fate:
    """How another job (all tasks of an array together) stands: `started` is the epoch of its start, None for not yet;
    `ended` is "", "ok" or "bad". A cancelled job counts as started."""

    started: float | None
    ended: Literal["", "ok", "bad"]


@dataclass(frozen=True)
class Term:
    """One condition on `job` ("13" or "13_4"). `singleton` has no job. `delay_min` belongs to `after`. What has `failed`
    once is never met."""

    kind: str
    job: str = ""
    delay_min: int = 0
    failed: bool = False

    def __str__(self) -> str:
        return self.kind if self.kind == "singleton" else f"{self.kind}:{self.job}" + (
            f"+{self.delay_min}" if self.delay_min else ""
        )  # fmt: skip


@dataclass(frozen=True)
class Dependency:
    """All terms, or any one of them ("?" between them)."""

    terms: tuple[Term, ...]
    any: bool = False


def parse_dependency(text: str) -> Dependency:
    """ "afterok:5:6,afterany:7" or "afterok:5?afterany:6". Raises ValueError for what slurmctld calls a dependency problem."""
    if "," in text and "?" in text:
        raise ValueError(text)
    found: list[Term] = []
    for part in re.split(r"[,?]", text):
        kind, *jobs = part.split(":")
        kind = kind.split("(")[0]
        if kind == "singleton" and not jobs:
            found.append(Term(kind))
            continue
        if kind not in KINDS or not jobs:
            raise ValueError(text)
        for job in jobs:
            target = _TARGET.fullmatch(job)
            if target is None or (target[2] and kind != "after"):
                raise ValueError(text)
            found.append(Term(kind, target[1], int(target[2] or 0), target[3] == "failed"))
    return Dependency(tuple(found), "?" in text)


def judge(term: Term, fate: Fate | None, now: float) -> Met:
    """`fate` None: the job is no longer known, which slurmctld takes for done well."""
    if term.failed:
        return "never"
    if fate is None:
        return "met"
    if term.kind == "after":
        return "met" if fate.started is not None and now >= fate.started + term.delay_min * 60 else "open"
    if not fate.ended:
        return "open"
    if term.kind == "afterany":
        return "met"
    return "met" if (term.kind == "afterok") == (fate.ended == "ok") else "never"


def weigh(found: Dependency, ask: Callable[[Term], Met]) -> tuple[Met, str]:
    """The whole, and its text for the job record: what is met is left out, as slurmctld does."""
    each = [(term, ask(term)) for term in found.terms]
    whole: Met
    if found.any:
        whole = "met" if any(m == "met" for _, m in each) else "open" if any(m == "open" for _, m in each) else "never"
    else:
        whole = (
            "never" if any(m == "never" for _, m in each) else "open" if any(m == "open" for _, m in each) else "met"
        )
    if whole == "met":
        return whole, ""
    words = {"open": "unfulfilled", "never": "failed"}
    return whole, ("?" if found.any else ",").join(f"{t}({words[m]})" for t, m in each if m != "met")
