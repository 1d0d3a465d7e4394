"""A job as slurmctld keeps it, and slurmctld's way to say no."""

from __future__ import annotations

from dataclasses import dataclass, field

from slinkytui.backend.sim.arrays import task_string

TERMINAL = frozenset(
    ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "DEADLINE", "OUT_OF_MEMORY", "BOOT_FAIL", "PREEMPTED")
)


class Refusal(Exception):
    """Slurm's own error: number and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass
class SimJob:
    """`nodes` maps a node to the devices taken there; `state` is Slurm's base state, `begin` the earliest start.

    Of an array one record holds all tasks that wait (`tasks`, `array_id` is its own id); every started task is a record
    of its own with `task` set. The record of the array becomes that of its last task when that starts.
    """

    id: int
    user: str
    name: str
    partition: str
    gpus: int
    node_count: int
    cpus: int
    memory_mib: int
    limit_min: int
    duration_s: float
    priority: int
    submit: float
    state: str = "PENDING"
    reason: str = "None"
    held: bool = False
    hold_user: str = ""
    start: float = 0.0
    end: float = 0.0
    nodes: dict[str, list[int]] = field(default_factory=dict)
    completing_until: float = 0.0
    exit_code: int = 0
    fails: bool = False
    comment: str = ""
    account: str = "research"
    script: str = ""
    array_id: int = 0
    task: int | None = None
    tasks: list[int] = field(default_factory=list)
    array_limit: int = 0
    dependency: str = ""
    begin: float = 0.0
    reservation: str = ""
    wanted_nodes: tuple[str, ...] = ()
    restarts: int = 0
    requeue: bool = True

    @property
    def array_text(self) -> str:
        return task_string(self.tasks, self.array_limit) if self.tasks else ""

    @property
    def shown_id(self) -> str:
        """As people write it: "13_4" for a task, "13" for the rest."""
        return f"{self.array_id}_{self.task}" if self.task is not None else str(self.id)
