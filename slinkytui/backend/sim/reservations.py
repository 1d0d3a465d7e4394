"""Reservations: nodes set aside for some users, from and to a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SimReservation:
    """`start` and `end` are epochs; `flags` Slurm's words, MAINT among them for maintenance."""

    name: str
    nodes: tuple[str, ...]
    start: float
    end: float
    users: tuple[str, ...] = ("root",)
    flags: tuple[str, ...] = ("MAINT", "IGNORE_JOBS", "SPEC_NODES")

    def active(self, now: float) -> bool:
        return self.start <= now < self.end

    def admits(self, node: str, now: float, limit_s: float, wanted: str) -> bool:
        """Whether a job of this length that names reservation `wanted` ("" for none) may start on the node now."""
        if wanted == self.name:
            return self.active(now) and node in self.nodes
        return node not in self.nodes or now + limit_s <= self.start or now >= self.end

    def node_flags(self, node: str, now: float) -> list[str]:
        """What the node's state says while the reservation is on."""
        if node not in self.nodes or not self.active(now):
            return []
        return ["RESERVED", "MAINTENANCE"] if "MAINT" in self.flags else ["RESERVED"]
