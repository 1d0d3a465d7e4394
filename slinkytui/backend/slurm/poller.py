"""Keeps the tables of one Slurm cluster fresh without hurting slurmctld.

Each list has a cadence that follows its size and latency, is never asked for twice at a time, and may take only a share
of the server's time. A list that was asked for before a write never overwrites what was read after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import NotAllowed, NotFound, SlinkyError
from slinkytui.backend.models import Job, JobId, NodeId, Row, RowId, Source, Table
from slinkytui.backend.sink import Sink
from slinkytui.backend.slurm.client import Listing, SlurmClient
from slinkytui.backend.slurm.jobstates import JobStates

SHARE: Final = 0.2
"""Of the server's time: a list that takes 2 s is asked for every 10 s at most."""
MOST_S: Final = 120.0
_YOUNG_S: Final = 2.0
_SINGLY: Final = 16
"""Up to so many nodes are read one by one after a write."""
RETRY_S: Final = (1.0, 2.0, 5.0, 10.0, 20.0)

log = logging.getLogger(__name__)


@dataclass
class _Poll:
    table: Table
    read: Callable[[int | None], Awaitable[Listing]]
    period_s: float
    last_update: int | None = None
    source: Source = field(default_factory=lambda: Source("", "starting"))
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    touched: dict[RowId, int] = field(default_factory=dict)
    failures: int = 0
    rounds: int = 0
    quick_s: float | None = None
    took_s: float = 0.0
    moved_at: float = float("-inf")
    """When its stamp was last seen to move, on the monotonic clock."""


class SlurmPoller:
    def __init__(
        self,
        client: SlurmClient,
        sink: Sink,
        clock: Clock,
        *,
        note: str = "",
        tables: Collection[Table] = tuple(Table),
    ) -> None:
        self._client, self._sink, self._clock, self._note = client, sink, clock, note
        self._generation = 0
        self._states = JobStates(client, sink)
        self._touches: set[asyncio.Task[None]] = set()
        polls = [
            _Poll(Table.NODES, client.nodes, 5.0),
            _Poll(Table.JOBS, client.jobs, 5.0),
            _Poll(Table.PARTITIONS, client.partitions, 60.0),
            _Poll(Table.RESERVATIONS, client.reservations, 60.0),
        ]
        self._polls = [p for p in polls if p.table in tables]

    async def run(self) -> None:
        """Poll until cancelled. An error is a stale source, never an end."""
        try:
            await asyncio.gather(*(self._loop(poll) for poll in self._polls))
        finally:
            for task in self._touches:
                task.cancel()

    def refresh(self) -> None:
        """Ask for all lists now."""
        for poll in self._polls:
            poll.wake.set()

    def hasten(self, table: Table, period_s: float | None) -> None:
        """Ask for a list more often for now, within our share of the server's time; None: as usual again."""
        for poll in self._polls:
            if poll.table == table and poll.quick_s != period_s:
                poll.quick_s = period_s
                if period_s is not None:
                    poll.wake.set()

    def touch(self, ids: Iterable[RowId]) -> None:
        """Read these nodes and jobs at once, after a write."""
        self._generation += 1
        for row_id in ids:
            task = asyncio.create_task(self._touch(row_id, self._generation), name=f"touch {row_id}")
            self._touches.add(task)
            task.add_done_callback(self._touches.discard)

    async def reread(self, names: Collection[str]) -> None:
        """Read these nodes now, after a write; many of them in one list. What cannot be read comes with the next poll."""
        self._generation += 1
        if len(names) <= _SINGLY:
            ids = [NodeId(self._client.cluster, name) for name in names]
            await asyncio.gather(*(self._touch(i, self._generation) for i in ids))
            return
        for poll in self._polls:
            if poll.table == Table.NODES:
                poll.last_update = None
                await self._round(poll)

    async def _loop(self, poll: _Poll) -> None:
        while True:
            poll.wake.clear()
            try:
                await self._round(poll)
            except Exception as error:
                # A fault of ours in one list must not end the others: it is logged and shown, and tried again.
                log.exception("polling %s", poll.table)
                self._failed(poll, SlinkyError(f"internal error while reading {poll.table}", detail=repr(error)))
            pause = RETRY_S[min(poll.failures, len(RETRY_S)) - 1] if poll.failures else poll.source.period_s
            pause = pause or poll.period_s
            if poll.quick_s is not None and not poll.failures:
                pause = min(pause, max(poll.quick_s, poll.took_s / SHARE))
            await self._pause(poll, pause)

    async def _pause(self, poll: _Poll, seconds: float) -> None:
        """Wait for the next round. A list of jobs that takes long is followed by its states meanwhile."""
        until = self._clock.monotonic() + seconds
        slow = poll.table == Table.JOBS and not poll.failures and seconds > 2 * poll.period_s
        step = poll.period_s
        while slow and self._clock.monotonic() + 2 * step < until:
            await self._sleep(poll, step)
            if poll.wake.is_set():
                return
            began, sent = self._clock.monotonic(), self._generation
            try:
                await self._states.turn(lambda row_id, sent=sent: poll.touched.get(row_id, 0) > sent)  # type: ignore[misc]  # bound now
            except SlinkyError as error:
                log.info("cannot follow the states of jobs: %s", error.line())
            step = max(poll.period_s, (self._clock.monotonic() - began) / SHARE)
        await self._sleep(poll, max(0.0, until - self._clock.monotonic()))

    async def _sleep(self, poll: _Poll, seconds: float) -> None:
        sleeper = asyncio.ensure_future(self._clock.sleep(seconds))
        woken = asyncio.ensure_future(poll.wake.wait())
        try:
            await asyncio.wait((sleeper, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sleeper, woken):
                task.cancel()
            await asyncio.gather(sleeper, woken, return_exceptions=True)

    async def _round(self, poll: _Poll) -> None:
        began, sent = self._clock.monotonic(), self._generation
        try:
            # Now and then everything, whatever the server holds for unchanged: its clock compares in whole seconds.
            # And while a change is young: what happens in the same second as it has the same stamp.
            young = began - poll.moved_at < _YOUNG_S
            known = poll.last_update if poll.rounds % 12 and not young else None
            listing = await poll.read(known)
            if not listing.unchanged:
                await self._apply(poll, listing, sent)
        except SlinkyError as error:
            self._failed(poll, error)
            return
        took = poll.took_s = self._clock.monotonic() - began
        poll.failures = 0
        poll.rounds += 1
        rows = poll.source.rows if listing.unchanged else len(listing.rows)
        period = poll.source.period_s if listing.unchanged else min(MOST_S, max(poll.period_s, took / SHARE))
        self._tell(poll, Source(
            self._name(poll), "live", self._clock.now(), poll.source.last_error,
            f"{listing.lost} records could not be read" if listing.lost else "", period, rows, round(took, 3), self._note,
        ))  # fmt: skip

    def _failed(self, poll: _Poll, error: SlinkyError) -> None:
        poll.failures += 1
        poll.last_update = None
        name, state = self._name(poll), "refused" if isinstance(error, NotAllowed) else "stale"
        self._tell(poll, msgspec.structs.replace(
            poll.source, name=name, state=state, error=error.line(), last_error=self._clock.now()
        ))  # fmt: skip

    def _name(self, poll: _Poll) -> str:
        return f"slurm/{self._client.cluster}/{poll.table}"

    def _tell(self, poll: _Poll, source: Source) -> None:
        poll.source = source
        self._sink.source(source)

    async def _apply(self, poll: _Poll, listing: Listing, sent: int) -> None:
        went_back = poll.last_update and listing.last_update and listing.last_update < poll.last_update
        if went_back:
            log.info("%s: last_update went back, slurmctld has restarted", poll.table)
        if listing.last_update != poll.last_update:
            poll.moved_at = self._clock.monotonic()
        poll.last_update = listing.last_update
        rows = list(listing.rows)
        if poll.table == Table.JOBS:
            self._states.seed(rows)
        newer = {row_id for row_id, generation in poll.touched.items() if generation > sent}
        if newer or listing.lost:
            # Rows read after a later write stand; a list with unreadable records removes nothing.
            self._sink.upsert(poll.table, self._client.cluster, [r for r in rows if _id(r) not in newer])
            if newer:
                poll.wake.set()
        else:
            await self._sink.replace(poll.table, self._client.cluster, rows)
        poll.touched = {i: g for i, g in poll.touched.items() if g > sent}

    async def _touch(self, row_id: RowId, generation: int) -> None:
        table = Table.JOBS if isinstance(row_id, JobId) else Table.NODES
        poll = next((p for p in self._polls if p.table == table), None)
        if poll is None:
            return
        rows: list[Row] = []
        try:
            if isinstance(row_id, NodeId):
                rows = [await self._client.node(row_id.name)]
            elif isinstance(row_id, JobId):
                rows = [j for j in await self._client.job(str(row_id.id)) if _related(j, row_id)]
        except NotFound:
            poll.wake.set()
            return
        except SlinkyError as error:
            log.info("cannot read %s after a write: %s", row_id, error)
            poll.wake.set()
            return
        if poll.touched.get(row_id, 0) > generation:
            return
        poll.touched[row_id] = generation
        self._sink.upsert(poll.table, self._client.cluster, rows)


def _related(job: Job, asked: JobId) -> bool:
    return job.id == asked or (asked.task is None and asked.het is None and job.id.id == asked.id)


def _id(row: Row) -> RowId:
    return row.id  # type: ignore[attr-defined, no-any-return]
