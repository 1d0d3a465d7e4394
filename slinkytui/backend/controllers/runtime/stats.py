"""Counters of the runtime as plain data, and the standard names under which a metrics page shows them.

The names are those of Kubernetes' work queue and of controller-runtime, so that dashboards and alerts made for other
operators fit. A page renders them; nothing here knows a text format.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

QUEUE_BUCKETS: Final = tuple(10.0**power for power in range(-8, 4))
RECONCILE_BUCKETS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip

# Labels of the queue's: name and controller, both the controller's name.
DEPTH: Final = "workqueue_depth"
ADDS: Final = "workqueue_adds_total"
RETRIES: Final = "workqueue_retries_total"
QUEUE_DURATION: Final = "workqueue_queue_duration_seconds"
WORK_DURATION: Final = "workqueue_work_duration_seconds"
UNFINISHED: Final = "workqueue_unfinished_work_seconds"
LONGEST: Final = "workqueue_longest_running_processor_seconds"
# Label of the reconciles': controller; of the total also result.
RECONCILES: Final = "controller_runtime_reconcile_total"
RECONCILE_ERRORS: Final = "controller_runtime_reconcile_errors_total"
TERMINAL_ERRORS: Final = "controller_runtime_terminal_reconcile_errors_total"
PANICS: Final = "controller_runtime_reconcile_panics_total"
RECONCILE_TIME: Final = "controller_runtime_reconcile_time_seconds"
MAX_WORKERS: Final = "controller_runtime_max_concurrent_reconciles"
ACTIVE_WORKERS: Final = "controller_runtime_active_workers"
# Label of the lease's: name, the lease's.
LEADING: Final = "leader_election_master_status"
SLOW_PATH: Final = "leader_election_slowpath_total"

RESULTS: Final = ("success", "requeue_after", "error", "terminal_error")
"""Values of the label `result`. Each stands at 0 from the start, so that a rate sees the first error."""


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound (inclusive); the last count is of all that is above."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass(slots=True)
class QueueStats:
    """What one queue did. Times in seconds."""

    adds: int = 0
    retries: int = 0
    queue_duration: Histogram = field(default_factory=lambda: Histogram(QUEUE_BUCKETS))
    work_duration: Histogram = field(default_factory=lambda: Histogram(QUEUE_BUCKETS))


@dataclass(slots=True)
class ReconcileStats:
    """What the workers of one controller did. Times in seconds."""

    results: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    errors: int = 0
    panics: int = 0
    time: Histogram = field(default_factory=lambda: Histogram(RECONCILE_BUCKETS))
