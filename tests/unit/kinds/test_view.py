"""The list that follows changes agrees with one that is made anew, whatever happens in which order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from slinkytui.backend.models import JobId, Key, Row, RowId, Table
from slinkytui.kinds.base import Column, Context
from slinkytui.kinds.order import Order, natural
from slinkytui.kinds.view import View


class Item(NamedTuple):
    id: Key
    value: int | None
    group: str


class _Nothing:
    def rows(self, table: Table) -> dict[RowId, Row]:
        return {}


CTX = Context(0.0, _Nothing())
KEY = Order(Column("V", "value", lambda r, c: r.value))


def _fold(row: Item) -> Hashable | None:
    return f"group {row.group}" if row.group else None


def _shown(row: Item, ctx: Context) -> bool:
    return row.value != 3


def _built(rows: dict[Any, Any], descending: bool, opened: set[Hashable]) -> View:
    view = View(rows, KEY, _shown, descending=descending, fold=_fold, opened=opened)
    for _ in view.build(CTX):
        pass
    return view


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 12), st.none() | st.tuples(st.none() | st.integers(0, 5), st.sampled_from(["", "a", "b"]))
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.booleans(), st.booleans(), st.integers(1, 7), st.booleans())
def test_a_list_that_follows_is_the_list_made_anew(
    changes: list[tuple[int, Any]], descending: bool, opened: bool, batch: int, hold: bool
) -> None:
    rows: dict[Any, Any] = {}
    groups: set[Hashable] = {"group a"} if opened else set()
    view = _built(rows, descending, groups)
    for start in range(0, len(changes), batch):
        ids = []
        for number, new in changes[start : start + batch]:
            key = Key("", f"r{number}")
            ids.append(key)
            if new is None:
                rows.pop(key, None)
            else:
                rows[key] = Item(key, *new)
        view.update(ids, CTX, hold=hold)
        fresh = _built(rows, descending, groups)
        assert set(view) == set(fresh)
        assert len(view) == len(set(view))
        assert [view.index(e) for e in view] == list(range(len(view)))
        assert view.passing == fresh.passing
        if not hold:
            assert list(view) == list(fresh)
    view.settle(CTX)
    assert list(view) == list(_built(rows, descending, groups))
    assert not view.unsettled


def test_a_row_keeps_its_place_until_the_list_settles() -> None:
    rows: dict[Any, Any] = {Key("", n): Item(Key("", n), v, "") for n, v in (("a", 1), ("b", 2), ("c", 4))}
    view = _built(rows, False, set())
    rows[Key("", "a")] = Item(Key("", "a"), 5, "")
    assert not view.update([Key("", "a")], CTX)
    assert [k.name for k in view] == ["a", "b", "c"]
    assert view.unsettled
    assert view.settle(CTX)
    assert [k.name for k in view] == ["b", "c", "a"]


def test_a_group_stands_for_its_rows_until_it_is_opened() -> None:
    rows: dict[Any, Any] = {Key("", f"r{n}"): Item(Key("", f"r{n}"), n, "a") for n in (1, 2, 4)}
    view = _built(rows, False, set())
    assert list(view) == ["group a"]
    assert len(view.members("group a")) == 3
    view.toggle("group a", CTX)
    assert [str(i) for i in view] == ["group a", "r1", "r2", "r4"]
    view.toggle("group a", CTX)
    assert list(view) == ["group a"]


def test_natural_order() -> None:
    assert sorted(["gpu-10", "gpu-9", "gpu-1"], key=natural) == ["gpu-1", "gpu-9", "gpu-10"]


JOB_IDS = st.builds(JobId, st.sampled_from("cd"), st.integers(0, 9), st.none() | st.integers(0, 3), st.none())
VALUES = st.one_of(
    st.lists(st.floats(allow_nan=False) | st.integers(-5, 5)),
    st.lists(st.sampled_from(["gpu-9", "gpu-10", ""])),
    st.lists(st.none() | st.booleans() | st.sampled_from(["a", "b2"]) | st.just(float("inf"))),
    st.lists(st.tuples(st.sampled_from("ab")) | st.none()),
)


@given(
    VALUES, st.lists(JOB_IDS | st.builds(Key, st.just(""), st.sampled_from(["n2", "n10"])), min_size=1), st.booleans()
)
def test_many_rows_are_placed_as_each_of_them_is(values: list[Any], ids: list[Any], alike: bool) -> None:
    if alike:
        ids = [i for i in ids if type(i) is type(ids[0])]
    rows = [Item(ids[at % len(ids)], value, "") for at, value in enumerate(values)]
    assert KEY.places([r.id for r in rows], rows, CTX) == [(*KEY(r, CTX), r.id) for r in rows]
