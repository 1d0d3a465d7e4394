"""Follows the jobs of a big cluster between two full lists: which states have changed, by the cheap jobs/state.

Only the jobs that changed are read in full, a few at a time; what is left over comes with the next turn. Nothing is
removed here but the record of an array's pending tasks when Slurm itself says that none is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from slinkytui.backend.errors import NotFound
from slinkytui.backend.models import Job, JobId, Row, Table
from slinkytui.backend.sink import Sink
from slinkytui.backend.slurm.client import SlurmClient

AT_ONCE: Final = 40
"""Arrays and jobs read in full in one turn (2 ms each at the server)."""
_SLICE: Final = 4_000


class JobStates:
    def __init__(self, client: SlurmClient, sink: Sink) -> None:
        self._client, self._sink = client, sink
        self._known: dict[str, frozenset[str]] = {}
        self._begun = False

    def seed(self, rows: Iterable[Row]) -> None:
        """What a full list has just told."""
        self._known.update((str(j.id), frozenset(j.states)) for j in rows if isinstance(j, Job))

    async def turn(self, newer: Callable[[JobId], bool]) -> None:
        """Read the states, then the jobs that changed, but for rows that were read after a `newer` write."""
        states = {s.text: frozenset(s.states) for s in await self._client.jobs_state()}
        changed: dict[int, set[str]] = {}
        for at, (text, held) in enumerate(states.items()):
            if at % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            before = self._known.get(text)
            # The first reading has many ids that no list spells out: the pending tasks of arrays.
            if before != held and (before is not None or self._begun):
                lead = _lead(text)
                if lead is not None:
                    changed.setdefault(lead, set()).add(text)
        for lead in list(changed)[:AT_ONCE]:
            await self._read(lead, newer)
        later = {text for lead in list(changed)[AT_ONCE:] for text in changed[lead]}
        self._known = {t: (self._known.get(t, frozenset()) if t in later else s) for t, s in states.items()}
        self._begun = True

    async def _read(self, lead: int, newer: Callable[[JobId], bool]) -> None:
        try:
            rows = await self._client.job(str(lead))
        except NotFound:
            return
        cluster = self._client.cluster
        self._sink.upsert(Table.JOBS, cluster, [r for r in rows if not newer(r.id)])
        ids = [j.id for j in rows]
        if any(i.task is not None for i in ids) and JobId(cluster, lead) not in ids:
            self._sink.remove(Table.JOBS, cluster, [JobId(cluster, lead)])


def _lead(text: str) -> int | None:
    """The leading id of `13`, `13_4`, `13_[5-9]`, `10+1`."""
    head = text.partition("_")[0].partition("+")[0]
    return int(head) if head.isascii() and head.isdigit() else None
