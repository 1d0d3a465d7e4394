"""Job arrays: the text of an array specification and the tasks it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MAX_ARRAY_SIZE: Final = 100_001
"""slurm.conf's MaxArraySize: task ids are smaller than this."""
_PIECE: Final = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def parse_array(text: str) -> tuple[list[int], int]:
    """Task ids in order and the most that may run at once (0: any number) of "0-9", "1-5%2", "1,3,7", "0-10:4".

    Raises ValueError for what slurmctld calls an invalid job array specification.
    """
    body, percent, most = text.partition("%")
    if percent and not most.isdigit():
        raise ValueError(text)
    tasks: set[int] = set()
    for piece in body.strip("[]").split(","):
        found = _PIECE.fullmatch(piece)
        if found is None:
            raise ValueError(text)
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or step < 1 or last >= MAX_ARRAY_SIZE:
            raise ValueError(text)
        tasks.update(range(first, last + 1, step))
    return sorted(tasks), int(most or 0)


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as "0-2,5"."""
    out: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        out.append(str(numbers[at]) if end == at else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return ",".join(out)


def task_string(tasks: Sequence[int], limit: int) -> str:
    """The tasks that wait, as a job record names them: "2-5%2"."""
    return f"{ranges(tasks)}%{limit}" if limit else ranges(tasks)


def parse_ids(text: str) -> tuple[int, list[int] | None] | None:
    """The job number and tasks of "13", "13_4" or "13_[1-3]"; None for anything else. No tasks: the whole job."""
    number, line, tasks = text.partition("_")
    if not number.isdigit():
        return None
    if not line:
        return int(number), None
    try:
        return int(number), parse_array(tasks)[0]
    except ValueError:
        return None
