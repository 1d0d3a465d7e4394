"""Job ids as squeue and scancel spell them: 13, 13_4, 13_[2-5], 13_[1,3-9%2], 10+1, each perhaps with a step. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SHAPE: Final = re.compile(
    r"(?P<job>\d+)(?:_(?:(?P<task>\d+)|\[(?P<tasks>[^\]]+)\])|\+(?P<het>\d+))?(?:\.(?P<step>[\w+]+))?"
)
_SPAN: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
_MOST: Final = 4_000_001
"""Slurm's own limit of MaxArraySize."""


@dataclass(frozen=True)
class JobSpelling:
    """`tasks` are the numbers that a text names, empty for a whole job or array; `limit` how many run at once."""

    job: int
    tasks: tuple[int, ...] = ()
    limit: int | None = None
    het: int | None = None
    step: str = ""

    def __str__(self) -> str:
        text = str(self.job)
        if self.het is not None:
            text += f"+{self.het}"
        elif len(self.tasks) == 1 and self.limit is None:
            text += f"_{self.tasks[0]}"
        elif self.tasks:
            text += f"_[{format_tasks(self.tasks, self.limit)}]"
        return text + (f".{self.step}" if self.step else "")


def parse_job_id(text: str) -> JobSpelling:
    """Raises ValueError with the spellings that there are."""
    found = _SHAPE.fullmatch(text.strip())
    if found is None or int(found["job"]) >= 2**32:
        raise ValueError(f"no job id: {text!r} (like 13, 13_4, 13_[2-5] or 10+1)")
    tasks: tuple[int, ...] = ()
    limit: int | None = None
    if found["tasks"] is not None:
        tasks, limit = parse_tasks(found["tasks"])
    elif found["task"] is not None:
        tasks = (int(found["task"]),)
    return JobSpelling(
        int(found["job"]), tasks, limit, int(found["het"]) if found["het"] else None, found["step"] or ""
    )


def parse_tasks(text: str) -> tuple[tuple[int, ...], int | None]:
    """The tasks of an array text like "0-4,7,10-20:5%2", in order and each once, and how many may run at once."""
    body, sep, most = text.partition("%")
    if sep and (not most.isdigit() or int(most) < 1):
        raise ValueError(f"no limit of an array: {text!r}")
    out: dict[int, None] = {}
    for part in body.split(","):
        span = _SPAN.fullmatch(part.strip())
        if span is None:
            raise ValueError(f"no tasks of an array: {text!r}")
        first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
        if last < first or step < 1 or last >= _MOST:
            raise ValueError(f"no tasks of an array: {text!r}")
        out.update(dict.fromkeys(range(first, last + 1, step)))
    return tuple(sorted(out)), int(most) if sep else None


def has_task(text: str, task: int) -> bool | None:
    """Whether the array text names a task; None where Slurm has cut the text ("1,3,...%2") or it cannot be read."""
    unread = False
    for part in text.partition("%")[0].split(","):
        span = _SPAN.fullmatch(part.strip())
        if span is None:
            unread = True
            continue
        first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
        if step and first <= task <= last and (task - first) % step == 0:
            return True
    return None if unread else False


def format_tasks(tasks: tuple[int, ...], limit: int | None = None) -> str:
    """Tasks as squeue prints them: 1,3-9%2."""
    spans: list[list[int]] = []
    for task in sorted(set(tasks)):
        if spans and task == spans[-1][1] + 1:
            spans[-1][1] = task
        else:
            spans.append([task, task])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return text + (f"%{limit}" if limit is not None else "")
