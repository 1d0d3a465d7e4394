"""The order of rows, the same in lists and in `get`: numbers as numbers, gpu-9 before gpu-10, unknown last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Final, cast

from slinkytui.backend.models import JobId
from slinkytui.kinds.base import Column, Context, Value

SortKey = tuple[Any, ...]
"""(number, unknown, text, *tie): comparable with every other key of the same kind and column. The number stands first:
a sort of tuples is quick while their first parts differ and are of one type."""
UNKNOWN: Final = (float("inf"), 1)
"""From here on the values are unknown; an infinite one that is known stands before."""

_DIGITS: Final = re.compile(r"\d+")
_FIRST: Final = itemgetter(0)
_TEXT: Final = itemgetter(2)
_CLUSTER: Final = attrgetter("cluster")
_NUMBER: Final = attrgetter("id")
_TASK: Final = attrgetter("task")
_HET: Final = attrgetter("het")


def natural(text: str) -> str:
    """A text that sorts gpu-9 before gpu-10."""
    return _DIGITS.sub(lambda found: found.group().zfill(12), text)


def _task(row_id: JobId) -> int:
    task = row_id.task if row_id.task is not None else row_id.het
    return -1 if task is None else task


def tie(row_id: Any) -> tuple[Any, ...]:
    """What tells rows of equal value apart, in the order of their ids."""
    if type(row_id) is JobId:
        return (row_id.id, _task(row_id), row_id.cluster)
    return (natural(str(row_id)), row_id[0])


class Order:
    """How rows stand under a column; without a column, by their ids. Called, it gives the key of one row."""

    def __init__(self, column: Column | None) -> None:
        self._value: Callable[[Any, Context], Value] = column.value if column is not None else lambda row, ctx: 0.0

    def __call__(self, row: Any, ctx: Context) -> SortKey:
        value = self._value(row, ctx)
        if value is None:
            return (*UNKNOWN, "", *tie(row.id))
        if isinstance(value, float | int):
            return (value, 0, "", *tie(row.id))
        return (0.0, 0, natural(value if isinstance(value, str) else ",".join(value)), *tie(row.id))

    def places(self, ids: Sequence[Any], rows: Sequence[Any], ctx: Context) -> list[SortKey]:
        """The keys of many rows, each with its id behind it: column by column, which is quick for 100,000 jobs."""
        values = list(map(self._value, rows, repeat(ctx)))
        types = set(map(type, values))
        numbers: Iterable[Any] = repeat(0.0)
        texts: Iterable[str] = repeat("")
        if types <= {float, int, bool}:
            numbers = values
        elif types == {str}:
            words = cast(list[str], values)
            spelled = {word: natural(word) for word in set(words)}
            texts = map(spelled.__getitem__, words)
        else:
            return [(*self(row, ctx), row_id) for row, row_id in zip(rows, ids, strict=True)]
        if set(map(type, ids)) != {JobId}:
            return [
                (number, 0, text, *tie(row_id), row_id)
                for number, text, row_id in zip(numbers, texts, ids, strict=False)  # a constant is endless
            ]
        alone = {*map(_TASK, ids), *map(_HET, ids)} == {None}
        tasks: Iterable[int] = repeat(-1) if alone else map(_task, ids)
        return list(zip(numbers, repeat(0), texts, map(_NUMBER, ids), tasks, map(_CLUSTER, ids), ids, strict=False))


def by_value(places: list[SortKey]) -> Iterator[None]:
    """Sort places by their values, in place; yields between pieces. What is left to sort are the ties.

    Comparing single parts takes a quarter of comparing tuples.
    """
    if any(map(_TEXT, places)):
        places.sort(key=_TEXT)
        yield
    places.sort(key=_FIRST)
    yield
