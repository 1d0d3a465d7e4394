"""The rows of one kind as a list shows them: filtered, folded, in order, and kept so by what changes.

A list of 100,000 rows is built in slices, so that a loop that paints can go on between them; afterwards the cost
follows what changed. A row whose value has changed keeps its place until `settle`: nothing jumps under a cursor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from slinkytui.kinds.base import Context
from slinkytui.kinds.filters import Test
from slinkytui.kinds.order import SortKey

_SLICE: Final = 1_000
_MANY: Final = 400
"""From so many moved entries on the whole list is sorted again, which is quick for a list that is nearly sorted."""


class View:
    """`ids` are the entries in order: row ids, and the ids of groups that stand for several rows.

    `fold` gives the group of a row, or None; a group of one row is shown as that row. `open` holds the groups
    whose rows stand below their own line.
    """

    def __init__(
        self,
        rows: Mapping[Any, Any],
        key: Callable[[Any, Context], SortKey],
        test: Test | None = None,
        *,
        descending: bool = False,
        fold: Callable[[Any], Hashable | None] | None = None,
        opened: Iterable[Hashable] = (),
    ) -> None:
        self.rows, self._key, self._test, self._descending = rows, key, test, descending
        self._fold = fold
        self.open: set[Hashable] = set(opened)
        self.ids: list[Any] = []
        self.count = 0
        """Rows that pass the filter, folded or not."""
        self._group_of: dict[Any, Hashable | None] = {}
        self._groups: dict[Hashable, dict[Any, None]] = {}
        self._placed: dict[Any, SortKey] = {}
        self._keys: list[SortKey] = []
        self._order: list[Any] = []
        self._late: set[Any] = set()

    def __contains__(self, entry: object) -> bool:
        return entry in self._placed

    def members(self, entry: Hashable) -> list[Any]:
        """The rows behind a group, or nothing for a row."""
        return list(self._groups.get(entry, ()))

    @property
    def unsettled(self) -> bool:
        """Whether rows stand where they no longer belong."""
        return bool(self._late)

    def build(self, ctx: Context) -> Iterator[None]:
        """Take all rows; yields between slices of a few milliseconds. The entries appear at the end."""
        test, ids = self._test, list(self.rows)
        for start in range(0, len(ids), _SLICE):
            for row_id in ids[start : start + _SLICE]:
                row = self.rows.get(row_id)
                if row is not None and (test is None or test(row, ctx)):
                    self._enter(row_id, row)
            yield
        runs: list[list[tuple[SortKey, Any]]] = []
        run: list[tuple[SortKey, Any]] = []
        for at, entry in enumerate(self._entries()):
            key = self._key_of(entry, ctx)
            if key is not None:
                self._placed[entry] = key
                run.append((key, entry))
            if at % _SLICE == _SLICE - 1:
                runs.append(_sorted(run))
                run = []
                yield
        runs.append(_sorted(run))
        # Two sorted runs behind each other are merged by one sort in linear time.
        while len(runs) > 1:
            for at in range(0, len(runs) - 1, 2):
                runs[at].extend(runs[at + 1])
                _sorted(runs[at])
                yield
            runs = runs[::2]
        self._keys = [key for key, _ in runs[0]]
        self._order = [entry for _, entry in runs[0]]
        self._publish()

    def update(self, changed: Iterable[Any], ctx: Context, *, hold: bool = True) -> bool:
        """Take changed rows; with `hold` entries that are shown keep their places. True when `ids` has changed."""
        touched: dict[Any, None] = {}
        for row_id in changed:
            row = self.rows.get(row_id)
            if row_id in self._group_of:
                self._leave(row_id, touched)
            if row is not None and (self._test is None or self._test(row, ctx)):
                self._touch(self._enter(row_id, row), touched)
                touched[row_id] = None
        moved = self._place(touched, ctx, hold)
        for entry in touched:
            if entry in self._groups and not self._groups[entry]:
                del self._groups[entry]
        return moved

    def toggle(self, group: Hashable, ctx: Context) -> None:
        """Open or close a group."""
        self.open.symmetric_difference_update({group})
        self._place(dict.fromkeys((group, *self._groups.get(group, ()))), ctx, hold=True)

    def settle(self, ctx: Context) -> bool:
        """Put rows whose value has changed where they belong now."""
        late = dict.fromkeys(self._late)
        self._late = set()
        for group in self.open & late.keys():
            late.update(dict.fromkeys(self._groups.get(group, ())))
        return self._place(late, ctx, hold=False)

    def _enter(self, row_id: Any, row: Any) -> Hashable | None:
        group = self._fold(row) if self._fold is not None else None
        self._group_of[row_id] = group
        self.count += 1
        if group is not None:
            self._groups.setdefault(group, {})[row_id] = None
        return group

    def _leave(self, row_id: Any, touched: dict[Any, None]) -> None:
        group = self._group_of.pop(row_id)
        self.count -= 1
        touched[row_id] = None
        if group is not None:
            del self._groups[group][row_id]
            self._touch(group, touched)

    def _touch(self, group: Hashable | None, touched: dict[Any, None]) -> None:
        """A group that has changed; its rows too where they are shown one by one."""
        if group is not None:
            touched[group] = None
            if group in self.open or len(self._groups[group]) <= 2:
                touched.update(dict.fromkeys(self._groups[group]))

    def _entries(self) -> Iterator[Any]:
        yield from list(self._group_of)
        for group, members in list(self._groups.items()):
            if len(members) > 1:
                yield group

    def _key_of(self, entry: Any, ctx: Context, moving: Mapping[Any, SortKey] = MappingProxyType({})) -> SortKey | None:
        """Where an entry belongs; None when it is not shown. `moving` has the new keys of groups that move now."""
        members = self._groups.get(entry) if entry not in self._group_of else None
        if members is not None:
            return (*min(self._key(self.rows[i], ctx) for i in members), 0) if len(members) > 1 else None
        if entry not in self._group_of:
            return None
        key = self._key(self.rows[entry], ctx)
        group = self._group_of[entry]
        if group is None or len(self._groups[group]) < 2:
            return key
        if group not in self.open:
            return None
        above = moving.get(group) or self._placed.get(group) or self._key_of(group, ctx)
        return None if above is None else (*above[:4], 1, *key)

    def _place(self, touched: Mapping[Any, None], ctx: Context, hold: bool) -> bool:
        gone: list[Any] = []
        new: dict[Any, SortKey] = {}
        # Groups come first: their rows stand where the group stands.
        for entry in sorted(touched, key=lambda e: e not in self._groups):
            key, placed = self._key_of(entry, ctx, new), self._placed.get(entry)
            if key == placed:
                self._late.discard(entry)
                continue
            if key is not None and placed is not None and hold and len(key) == len(placed):
                self._late.add(entry)
                continue
            self._late.discard(entry)
            if placed is not None:
                gone.append(entry)
            if key is not None:
                new[entry] = key
        if not gone and not new:
            return False
        self._take_out(gone)
        self._put_in([(key, entry) for entry, key in new.items()])
        self._publish()
        return True

    def _take_out(self, gone: list[Any]) -> None:
        if len(gone) > _MANY:
            leaving = set(gone)
            left = [(k, e) for k, e in zip(self._keys, self._order, strict=True) if e not in leaving]
            self._keys, self._order = [k for k, _ in left], [e for _, e in left]
        else:
            for entry in gone:
                at = bisect_left(self._keys, self._placed[entry])
                del self._keys[at], self._order[at]
        for entry in gone:
            del self._placed[entry]

    def _put_in(self, new: list[tuple[SortKey, Any]]) -> None:
        for key, entry in new:
            self._placed[entry] = key
        if len(new) > _MANY:
            both = [*zip(self._keys, self._order, strict=True), *_sorted(new)]
            both = _sorted(both)
            self._keys, self._order = [k for k, _ in both], [e for _, e in both]
            return
        for key, entry in new:
            at = bisect_left(self._keys, key)
            self._keys.insert(at, key)
            self._order.insert(at, entry)

    def _publish(self) -> None:
        if not self._descending:
            self.ids = list(self._order)
            return
        known = bisect_left(self._keys, (1,))
        self.ids, held = [], []
        for entry in reversed(self._order[:known]):
            if self._group_of.get(entry) in self.open and entry in self._group_of:
                held.append(entry)  # stands below its group, which comes next
            else:
                self.ids.append(entry)
                self.ids += held
                held = []
        self.ids += held + self._order[known:]


def _sorted(pairs: list[tuple[SortKey, Any]]) -> list[tuple[SortKey, Any]]:
    pairs.sort(key=_first)
    return pairs


def _first(pair: tuple[SortKey, Any]) -> SortKey:
    return pair[0]
