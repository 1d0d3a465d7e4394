"""A list of 100,000 jobs: set and sorted, and the longest piece that holds up the loop. Beside it Textual's DataTable.

usage: python -m benchmarks.table [ROWS]
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time

from textual.app import App, ComposeResult
from textual.widgets import DataTable

from slinkytui.backend.models import Job, JobId, Row, RowId, Table
from slinkytui.kinds import KINDS
from slinkytui.kinds.base import Context
from slinkytui.kinds.order import Order
from slinkytui.kinds.view import View


class _None:
    def rows(self, table: Table) -> dict[RowId, Row]:
        return {}


def made(count: int) -> dict[RowId, Row]:
    rows: dict[RowId, Row] = {}
    for i in range(count):
        state = "RUNNING" if i % 10 == 0 else "PENDING"
        job = Job(JobId("c", i), i, (state,), user=f"user{i % 40}", priority=i * 7919 % 10_007, state_reason="Priority")
        rows[job.id] = job
    return rows


def ours(count: int) -> tuple[float, float]:
    """Seconds to set and sort, and the longest piece."""
    kind, rows, ctx = KINDS["jobs"], made(count), Context(1_800_000_000.0, _None())
    view = View(rows, Order(kind.column(kind.sort)), fold=kind.fold)
    gc.disable()
    began = last = time.perf_counter()
    longest = 0.0
    for _ in view.build(ctx):
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    end = time.perf_counter()
    gc.enable()
    assert len(view) == count
    return end - began, max(longest, end - last)


async def rival(count: int) -> float:
    """Seconds that DataTable takes to have the rows."""

    class Rival(App[None]):
        def compose(self) -> ComposeResult:
            yield DataTable()

    app = Rival()
    async with app.run_test(size=(120, 36)) as pilot:
        table = app.query_one(DataTable)
        began = time.perf_counter()
        table.add_columns("JOB", "USER", "ST")
        table.add_rows((str(i), f"user{i % 40}", "R") for i in range(count))
        await pilot.pause()
        return time.perf_counter() - began


def main() -> None:
    gc.set_threshold(5_000, 100, 100_000)  # as the console has it
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    took, longest = min(ours(count) for _ in range(3))
    small = max(1_000, count // 20)
    theirs = asyncio.run(rival(small)) * (count / small)
    print(
        f"{count:,} jobs set and sorted in {took * 1e3:.0f} ms, longest piece {longest * 1e3:.1f} ms; "
        f"DataTable {theirs:.1f} s (from {small:,} rows); ratio 1/{theirs / took:.0f}"
    )


if __name__ == "__main__":
    main()
