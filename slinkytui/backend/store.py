"""Versioned tables of frozen rows with one writer; readers take snapshots and are told which ids changed.

A replaced scope is a diff and never a clear. A reader that is slow sees fewer, later rows, never a longer queue:
changes are kept as sets of ids and read from the tables when they are taken.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from slinkytui.backend.models import Row, RowId, Source, Table

_SLICE = 4_000
"""Rows handled between two turns of the loop (about 4 ms)."""


class Changes:
    """One reader's view of what has changed since it last asked. The reader clears `wake` before it takes."""

    def __init__(self, tables: frozenset[Table]) -> None:
        self.tables = tables
        self.wake = asyncio.Event()
        self._ids: dict[Table, set[RowId]] = {}

    def note(self, table: Table, ids: Iterable[RowId]) -> None:
        if table in self.tables:
            self._ids.setdefault(table, set()).update(ids)
            self.wake.set()

    def take(self) -> dict[Table, set[RowId]]:
        """The ids that are new, changed or gone since the last call."""
        ids, self._ids = self._ids, {}
        return ids


class Store:
    """The picture that every face reads. Implements `Sink`; the fleet writes its tables the same way."""

    def __init__(self) -> None:
        self.version = 0
        self._tables: dict[Table, dict[RowId, Row]] = {table: {} for table in Table}
        self._scopes: dict[tuple[Table, str], set[RowId]] = defaultdict(set)
        self._locks: dict[tuple[Table, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._readers: list[Changes] = []
        self._borrowers: dict[Table, list[Store]] = defaultdict(list)

    def borrow(self, lender: Store, tables: Iterable[Table]) -> None:
        """Show the lender's tables as our own, in place of what was there: one copy of the rows serves both."""
        for table in tables:
            before = set(self._tables[table])
            self._tables[table] = lender._tables[table]
            lender._borrowers[table].append(self)
            self._tell(table, list(before | set(self._tables[table])))

    def rows(self, table: Table) -> Mapping[RowId, Row]:
        """The live table, read-only. Do not keep it over an await: copy what is needed."""
        return MappingProxyType(self._tables[table])

    def get(self, table: Table, row_id: RowId) -> Row | None:
        return self._tables[table].get(row_id)

    def scope(self, table: Table, scope: str) -> frozenset[RowId]:
        return frozenset(self._scopes.get((table, scope), ()))

    def watch(self, tables: Iterable[Table]) -> Changes:
        """From now on, which ids of these tables change."""
        changes = Changes(frozenset(tables))
        self._readers.append(changes)
        return changes

    def unwatch(self, changes: Changes) -> None:
        if changes in self._readers:
            self._readers.remove(changes)

    async def replace(self, table: Table, scope: str, rows: Sequence[Row], keep: Collection[RowId] = ()) -> None:
        """The whole truth of a scope, but for the old rows of `keep`, which stay. Yields to the loop between slices, so that it may be long."""
        async with self._locks[table, scope]:
            seen: set[RowId] = set(keep)
            for start in range(0, len(rows), _SLICE):
                if start:
                    await asyncio.sleep(0)
                part = rows[start : start + _SLICE]
                seen.update(_id(row) for row in part)
                self.upsert(table, scope, part)
            self.remove(table, scope, self._scopes[table, scope] - seen)

    def upsert(self, table: Table, scope: str, rows: Iterable[Row]) -> None:
        held, owned = self._tables[table], self._scopes[table, scope]
        changed: list[RowId] = []
        for row in rows:
            row_id = _id(row)
            owned.add(row_id)
            if held.get(row_id) != row:
                held[row_id] = row
                changed.append(row_id)
        self._tell(table, changed)

    def remove(self, table: Table, scope: str, ids: Iterable[RowId]) -> None:
        held, owned = self._tables[table], self._scopes[table, scope]
        gone = [row_id for row_id in list(ids) if held.pop(row_id, None) is not None]
        owned.difference_update(gone)
        self._tell(table, gone)

    def drop(self, scope: str) -> None:
        """Forget all rows of a scope, for a cluster that is no longer looked at."""
        for table, name in [key for key in self._scopes if key[1] == scope]:
            self.remove(table, name, set(self._scopes[table, name]))

    def source(self, source: Source) -> None:
        self.upsert(Table.SOURCES, "", [source])

    def _tell(self, table: Table, ids: Sequence[RowId]) -> None:
        if ids:
            self.version += 1
            for reader in self._readers:
                reader.note(table, ids)
            for borrower in self._borrowers.get(table, ()):
                borrower._tell(table, ids)


def _id(row: Row) -> RowId:
    return row.id  # type: ignore[attr-defined, no-any-return]  # every row of a table has one: see models.base
