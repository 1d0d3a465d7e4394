"""Where the Kubernetes watches and the Slurm poller put what they saw. The store implements it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from slinkytui.backend.models import Row, RowId, Source, Table


class Sink(Protocol):
    """`scope` names whose rows they are: a Slurm cluster, or a namespace ("" for the whole Kubernetes cluster)."""

    async def replace(self, table: Table, scope: str, rows: Sequence[Row], keep: Collection[RowId] = ()) -> None:
        """The whole truth of a scope: a diff, rows that are missing go, equal rows change nothing.

        Ids in `keep` are there but could not be read: their old rows stay.
        """
        ...

    def upsert(self, table: Table, scope: str, rows: Iterable[Row]) -> None:
        """Single rows that are new or changed."""
        ...

    def remove(self, table: Table, scope: str, ids: Iterable[RowId]) -> None:
        """Single rows that are known to be gone."""
        ...

    def source(self, source: Source) -> None:
        """How fresh a stream of data is now."""
        ...
