"""The rows of one kind as a list shows them: filtered, folded, in order, and kept so by what changes.

A list of 100,000 rows is built in slices, so that a loop that paints can go on between them; afterwards the cost
follows what changed. A row whose value has changed keeps its place until `settle`: nothing jumps under a cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import Any, Final, overload

from sortedcontainers import SortedList

from slinkytui.kinds.base import Context
from slinkytui.kinds.filters import Test
from slinkytui.kinds.order import UNKNOWN, Order, SortKey, by_value, tie

_SLICE: Final = 2_000


class View(Sequence[Any]):
    """The entries in order, as a sequence: row ids, and the ids of groups that stand for several rows.

    `fold` gives the group of a row, or None; a group of one row is shown as that row. `open` holds the groups
    whose rows stand below their own line. Unknown values come last, in either order.
    """

    def __init__(
        self,
        rows: Mapping[Any, Any],
        key: Order,
        test: Test | None = None,
        *,
        descending: bool = False,
        fold: Callable[[Any], Hashable | None] | None = None,
        opened: Iterable[Hashable] = (),
    ) -> None:
        self.rows, self._key, self._test, self._descending = rows, key, test, descending
        self._fold = fold
        self.open: set[Hashable] = set(opened)
        self.passing = 0
        """Rows that pass the filter, folded or not."""
        self._group_of: dict[Any, Hashable] = {}
        """Of rows that belong to a group. Others that pass the filter are those that have a place."""
        self._out: set[Any] = set()
        """Rows that have just been found not to pass any more."""
        self._groups: dict[Hashable, dict[Any, None]] = {}
        self._placed: dict[Any, SortKey] = {}
        """Where each entry stands: its sort key, a mark where groups need one, and the entry itself."""
        self._order: Any = SortedList()
        self._known = 0
        """How many entries have a value; those come first."""
        self._late: set[Any] = set()
        self.version = 0
        """Counts what has changed the entries or their order."""

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, entry: object) -> bool:
        return entry in self._placed

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        return self._order[self._turned(at)][-1]

    def __iter__(self) -> Iterator[Any]:
        if not self._descending:
            return (place[-1] for place in self._order)
        return (self[i] for i in range(len(self)))

    def index(self, entry: Any, start: int = 0, stop: int | None = None) -> int:
        """Where an entry stands. Raises ValueError when it is not shown."""
        placed = self._placed.get(entry)
        if placed is None:
            raise ValueError(f"{entry!r} is not shown")
        return self._turned(self._order.bisect_left(placed))

    def _turned(self, at: int) -> int:
        """From the order of keys to the order on view, and back."""
        return self._known - 1 - at if self._descending and at < self._known else at

    def members(self, entry: Hashable) -> list[Any]:
        """The rows behind a group in the order of their ids, or nothing for a row."""
        return sorted(self._groups.get(entry, ()), key=tie)

    @property
    def unsettled(self) -> bool:
        """Whether rows stand where they no longer belong."""
        return bool(self._late)

    def build(self, ctx: Context) -> Iterator[None]:
        """Take all rows; yields between slices of a few milliseconds. The entries appear at the end."""
        ids = list(self.rows)
        places: list[SortKey] = []
        single: list[Any] = []
        for start in range(0, len(ids), _SLICE):
            chunk, rows = self._alone(ids[start : start + _SLICE], ctx)
            places += self._key.places(chunk, rows, ctx)
            single += chunk
            yield
        self._placed = dict(zip(single, places, strict=True))
        yield
        self.passing += len(single)
        grouped = [i for members in self._groups.values() for i in members]
        late = [where for e in (*self._groups, *grouped) if (where := self._place_of(e, ctx)) is not None]
        self._placed.update((where[-1], where) for where in late)
        places += late
        yield from by_value(places)
        self._order = SortedList(places)
        self._known = self._order.bisect_left(UNKNOWN)

    def _alone(self, ids: list[Any], ctx: Context) -> tuple[list[Any], list[Any]]:
        """Of these rows those that pass the filter and stand alone, with their ids; the others enter their groups, whose
        places depend on rows that are still to come."""
        test, rows = self._test, list(map(self.rows.get, ids))
        if test is not None or not all(rows):
            passing = [r is not None and (test is None or test(r, ctx)) for r in rows]
            ids, rows = list(compress(ids, passing)), list(compress(rows, passing))
        if self._fold is not None and any(groups := list(map(self._fold, rows))):
            for row_id, row, group in zip(ids, rows, groups, strict=True):
                if group is not None:
                    self._enter(row_id, row)
            alone = [group is None for group in groups]
            ids, rows = list(compress(ids, alone)), list(compress(rows, alone))
        return ids, rows

    def update(self, changed: Iterable[Any], ctx: Context, *, hold: bool = True) -> bool:
        """Take changed rows; with `hold` entries that are shown keep their places. True when anything has moved."""
        touched: dict[Any, None] = {}
        self._out = set()
        for row_id in dict.fromkeys(changed):
            row = self.rows.get(row_id)
            if row_id in self._group_of or row_id in self._placed:
                self._leave(row_id, touched)
            if row is not None and (self._test is None or self._test(row, ctx)):
                self._touch(self._enter(row_id, row), touched)
                touched[row_id] = None
            else:
                self._out.add(row_id)
        moved = self._place(touched, ctx, hold)
        self._out = set()
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
        self.passing += 1
        if group is not None:
            self._group_of[row_id] = group
            self._groups.setdefault(group, {})[row_id] = None
        return group

    def _leave(self, row_id: Any, touched: dict[Any, None]) -> None:
        group = self._group_of.pop(row_id, None)
        self.passing -= 1
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

    def _place_of(
        self, entry: Any, ctx: Context, moving: Mapping[Any, SortKey] = MappingProxyType({})
    ) -> SortKey | None:
        """Where an entry belongs; None when it is not shown. `moving` has the new places of groups that move now."""
        members = self._groups.get(entry) if entry not in self._group_of else None
        if members is not None:
            least = min(self._key(self.rows[i], ctx) for i in members) if len(members) > 1 else None
            return None if least is None else (*least, int(self._descending), entry)
        row = self.rows.get(entry)
        if row is None or entry in self._out:
            return None
        place = (*self._key(row, ctx), entry)
        group = self._group_of.get(entry)
        if group is None or len(self._groups[group]) < 2:
            return place
        if group not in self.open:
            return None
        above = moving.get(group) or self._placed.get(group) or self._place_of(group, ctx)
        # A group's rows stand right behind it on view, and before whatever follows.
        return None if above is None else (*above[:-2], int(not self._descending), *place)

    def _place(self, touched: Mapping[Any, None], ctx: Context, hold: bool) -> bool:
        gone: list[Any] = []
        new: dict[Any, SortKey] = {}
        # Groups come first: their rows stand where the group stands.
        for entry in sorted(touched, key=lambda e: e not in self._groups):
            place, placed = self._place_of(entry, ctx, new), self._placed.get(entry)
            if place == placed:
                self._late.discard(entry)
                continue
            if place is not None and placed is not None and hold and len(place) == len(placed):
                self._late.add(entry)
                continue
            self._late.discard(entry)
            if placed is not None:
                gone.append(entry)
            if place is not None:
                new[entry] = place
        if not gone and not new:
            return False
        for entry in gone:
            self._order.remove(self._placed.pop(entry))
        for entry, place in new.items():
            self._placed[entry] = place
            self._order.add(place)
        self._known = self._order.bisect_left(UNKNOWN)
        self.version += 1
        return True
