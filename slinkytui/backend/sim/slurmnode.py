"""A node as slurmctld keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slinkytui.backend.sim.jobs import SimJob


@dataclass
class SimNode:
    """`devices` holds the job id on each GPU, 0 for a free one."""

    name: str
    cpus: int
    memory_mib: int
    gpu_type: str
    devices: list[int]
    features: tuple[str, ...]
    boot: float
    partitions: tuple[str, ...] = ()
    comment: str = ""
    extra: str = ""
    down: bool = False
    drain: bool = False
    responding: bool = True
    silent_since: float | None = None
    reason: str = ""
    reason_user: str = ""
    reason_time: float = 0.0
    jobs: set[int] = field(default_factory=set)
    cpus_used: int = 0
    memory_used: int = 0

    def states(self, jobs: Mapping[int, SimJob], reserved: Sequence[str] = ()) -> list[str]:
        running = [j for j in self.jobs if jobs[j].state == "RUNNING"]
        full = (self.devices and all(self.devices)) or self.cpus_used >= self.cpus
        base = "DOWN" if self.down else "ALLOCATED" if running and full else "MIXED" if running else "IDLE"
        flags = [
            "DRAIN" if self.drain else "", "NOT_RESPONDING" if not self.responding else "",
            "COMPLETING" if any(jobs[j].state != "RUNNING" for j in self.jobs) else "", "DYNAMIC_NORM",
        ]  # fmt: skip
        return [base, *reserved, *(f for f in flags if f)]

    def usable(self) -> bool:
        return not (self.down or self.drain) and self.responding
