"""The order of rows, the same in lists and in `get`: numbers as numbers, gpu-9 before gpu-10, unknown last."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from slinkytui.backend.models import JobId
from slinkytui.kinds.base import Column, Context

SortKey = tuple[Any, ...]
"""(number, unknown, text, *tie): comparable with every other key of the same kind and column. The number stands first:
a sort of tuples is quick while their first parts differ and are of one type."""
UNKNOWN: Final = (float("inf"), 1)
"""From here on the values are unknown; an infinite one that is known stands before."""

_DIGITS: Final = re.compile(r"\d+")


def natural(text: str) -> str:
    """A text that sorts gpu-9 before gpu-10."""
    return _DIGITS.sub(lambda found: found.group().zfill(12), text)


def tie(row_id: Any) -> tuple[Any, ...]:
    """What tells rows of equal value apart, in the order of their ids."""
    if isinstance(row_id, JobId):
        task = row_id.task if row_id.task is not None else row_id.het
        return (row_id.id, -1 if task is None else task, row_id.cluster)
    return (natural(str(row_id)), row_id[0])


def sort_key(column: Column | None) -> Callable[[Any, Context], SortKey]:
    """The key of a row under a column; without a column rows stand by their ids."""
    if column is None:
        return lambda row, ctx: (0.0, 0, "", *tie(row.id))
    value_of = column.value

    def key(row: Any, ctx: Context) -> SortKey:
        value, row_id = value_of(row, ctx), row.id
        text = ""
        if value is None:
            number, unknown = UNKNOWN
        elif isinstance(value, float | int):
            number, unknown = float(value), 0
        else:
            number, unknown = 0.0, 0
            text = natural(value if isinstance(value, str) else ",".join(value))
        if type(row_id) is JobId:
            # Written out: this runs for each of 100,000 jobs.
            task = row_id[2] if row_id[2] is not None else row_id[3]
            return (number, unknown, text, row_id[1], -1 if task is None else task, row_id[0])
        return (number, unknown, text, *tie(row_id))

    return key
