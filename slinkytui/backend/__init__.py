"""The backend's face: the joined rows, the pure words of Slurm, errors, the feed's reading side. Never imports
textual or rich; the engine and the clients are imported by those who run them.
"""

from __future__ import annotations

from slinkytui.backend.errors import (
    ConfigError,
    NotAllowed,
    NotFound,
    PlanStale,
    SlinkyError,
    Unreachable,
    UsageError,
)
from slinkytui.backend.models import (
    Accounting,
    Ask,
    Blast,
    Cluster,
    Condition,
    ContainerState,
    Controller,
    Event,
    FleetNode,
    FleetNodeSet,
    Gpu,
    GpuId,
    Gres,
    Job,
    JobId,
    JournalEntry,
    Key,
    KubeNode,
    LoginSet,
    Meta,
    Namespace,
    NodeId,
    NodeSet,
    Operator,
    Partition,
    Plan,
    PlanLine,
    Pod,
    Problem,
    Reservation,
    RestApi,
    Row,
    RowId,
    RunResult,
    Severity,
    SlurmName,
    SlurmNode,
    Source,
    Step,
    StepResult,
    Table,
    Token,
)
from slinkytui.backend.reader import Reader
from slinkytui.backend.slurm.hostlist import expand as _expand
from slinkytui.backend.slurm.states import is_pending, is_running, node_word, squeue_code


def expand_hostlist(text: str, limit: int = 100_000) -> tuple[str, ...]:
    """The names of a hostlist; one that cannot be read gives none, for it is only shown."""
    try:
        return tuple(_expand(text, limit=limit))
    except ValueError:
        return ()


__all__ = [
    "Accounting",
    "Ask",
    "Blast",
    "Cluster",
    "Condition",
    "ConfigError",
    "ContainerState",
    "Controller",
    "Event",
    "FleetNode",
    "FleetNodeSet",
    "Gpu",
    "GpuId",
    "Gres",
    "Job",
    "JobId",
    "JournalEntry",
    "Key",
    "KubeNode",
    "LoginSet",
    "Meta",
    "Namespace",
    "NodeId",
    "NodeSet",
    "NotAllowed",
    "NotFound",
    "Operator",
    "Partition",
    "Plan",
    "PlanLine",
    "PlanStale",
    "Pod",
    "Problem",
    "Reader",
    "Reservation",
    "RestApi",
    "Row",
    "RowId",
    "RunResult",
    "Severity",
    "SlinkyError",
    "SlurmName",
    "SlurmNode",
    "Source",
    "Step",
    "StepResult",
    "Table",
    "Token",
    "Unreachable",
    "UsageError",
    "expand_hostlist",
    "is_pending",
    "is_running",
    "node_word",
    "squeue_code",
]
