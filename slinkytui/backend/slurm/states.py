"""States are sets: one base state and any flags, in any order, unknown members kept. Pure.

Words are sinfo's for nodes and squeue's codes for jobs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_NODE_BASE: Final = {
    "IDLE": "idle",
    "MIXED": "mixed",
    "ALLOCATED": "allocated",
    "DOWN": "down",
    "ERROR": "error",
    "FUTURE": "future",
    "UNKNOWN": "unknown",
}
_BUSY: Final = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_UNUSABLE: Final = frozenset(
    {
        "DRAIN",
        "DOWN",
        "FAIL",
        "ERROR",
        "NOT_RESPONDING",
        "INVALID_REG",
        "MAINTENANCE",
        "POWERED_DOWN",
        "POWERING_DOWN",
        "BLOCKED",
    }
)
_JOB: Final = {
    "PENDING": "PD",
    "RUNNING": "R",
    "SUSPENDED": "S",
    "COMPLETED": "CD",
    "CANCELLED": "CA",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "BOOT_FAIL": "BF",
    "DEADLINE": "DL",
    "OUT_OF_MEMORY": "OOM",
}
_TERMINAL: Final = frozenset(_JOB) - {"PENDING", "RUNNING", "SUSPENDED"}


def is_drain(states: Collection[str]) -> bool:
    """A drain was asked for."""
    return "DRAIN" in states


def is_busy(states: Collection[str]) -> bool:
    return any(s in _BUSY for s in states)


def is_drained(states: Collection[str]) -> bool:
    """Drained for certain: nothing runs and the base state is a known quiet one."""
    return "DRAIN" in states and not is_busy(states) and ("IDLE" in states or "DOWN" in states)


def is_draining(states: Collection[str]) -> bool:
    return "DRAIN" in states and is_busy(states)


def is_down(states: Collection[str]) -> bool:
    return any(s in ("DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "INVALID_REG") for s in states)


def is_usable(states: Collection[str]) -> bool:
    """New jobs may start here."""
    return any(s in ("IDLE", "MIXED", "ALLOCATED") for s in states) and not any(s in _UNUSABLE for s in states)


def node_word(states: Collection[str]) -> str:
    """sinfo's word for a node; `*` at its end when it does not respond. A set that we do not know is spelled out."""
    held = set(states)
    base = next((_NODE_BASE[s] for s in states if s in _NODE_BASE), "")
    if not base:
        return "+".join(s.lower() for s in states) or "unknown"
    return _node_word(held, base) + ("*" if "NOT_RESPONDING" in held else "")


def _node_word(held: set[str], base: str) -> str:
    busy = bool(held & _BUSY)
    if "INVALID_REG" in held:
        return "inval"
    if "DRAIN" in held:
        if base == "down" and not busy:
            return "down" if "NOT_RESPONDING" in held else "drained"
        return "draining" if busy else "drained" if base in ("idle", "down") else f"{base}+drain"
    if "FAIL" in held:
        return "failing" if busy else "fail"
    if base in ("down", "error", "future", "unknown"):
        return base
    for flag, word in (
        ("POWERING_DOWN", "powering_down"),
        ("POWERED_DOWN", "powered_down"),
        ("POWERING_UP", "powering_up"),
        ("POWER_DOWN", "power_down"),
        ("REBOOT_ISSUED", "reboot^"),
        ("REBOOT_REQUESTED", "reboot"),
        ("MAINTENANCE", "maint"),
        ("BLOCKED", "blocked"),
    ):
        if flag in held:
            return word
    if "COMPLETING" in held:
        return "completing" if base == "idle" else base
    if base == "idle":
        return "reserved" if "RESERVED" in held else "planned" if "PLANNED" in held else "idle"
    return base


def squeue_code(states: Collection[str]) -> str:
    """squeue's short code: CG while completing, CF while nodes boot; "" for a set without a base that we know."""
    if "COMPLETING" in states:
        return "CG"
    code = next((_JOB[s] for s in states if s in _JOB), "")
    return "CF" if code == "R" and "CONFIGURING" in states else code


def is_pending(states: Collection[str]) -> bool:
    return "PENDING" in states


def is_running(states: Collection[str]) -> bool:
    return "RUNNING" in states


def is_terminal(states: Collection[str]) -> bool:
    """It has ended for certain: a terminal base state and nothing left to clean up."""
    return any(s in _TERMINAL for s in states) and "COMPLETING" not in states


def holds_node(states: Collection[str]) -> bool:
    """It may still occupy its nodes: anything that is neither pending nor ended for certain."""
    return not is_pending(states) and not is_terminal(states)
