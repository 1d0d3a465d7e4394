"""What a controller last decided about an object, why, and what came of it: for `explain` and the Operator screen."""

from __future__ import annotations

from slinkytui.backend.models.base import Row
from slinkytui.backend.models.ids import Key


class Because(Row, frozen=True):
    """One reason. `subject` names a pod or a node, "" is the object itself; `since` Unix seconds; `waits`: it is
    what is waited for."""

    subject: str
    text: str
    since: float | None = None
    waits: bool = False


class Did(Row, frozen=True):
    """One act in words, and the server's refusal if there was one."""

    text: str
    error: str = ""


class Decided(Row, frozen=True):
    """The last pass of a controller over an object. `id` is its key, `again_s` when it looks again at the latest; `did`
    are the acts of the last pass that did anything, at `acted`."""

    id: Key
    controller: str
    at: float
    did: tuple[Did, ...] = ()
    why: tuple[Because, ...] = ()
    again_s: float | None = None
    error: str = ""
    reconcile: str = ""
    acted: float | None = None


class ExplainedLine(Row, frozen=True):
    label: str
    text: str


class Explained(Row, frozen=True):
    """What an operator makes of an object now: what is, what is waited for, and what it would do."""

    subject: str
    lines: tuple[ExplainedLine, ...]
    acts: tuple[str, ...] = ()


class QueueLine(Row, frozen=True):
    """One key of the operator's queue. `due_s` from now, 0 is now; `since` Unix seconds."""

    key: str
    state: str
    since: float
    due_s: float = 0.0
    retries: int = 0
    error: str = ""


class OperatorView(Row, frozen=True):
    """An operator at work, or waiting for the lease. `running` are key and reconcile id of what is worked on now."""

    identity: str
    phase: str
    holder: str = ""
    note: str = ""
    terms: int = 0
    workers: int = 0
    queue: tuple[QueueLine, ...] = ()
    running: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, int], ...] = ()
    waits: tuple[str, ...] = ()
    """Sources that are not synced, and why."""
