"""What came of a decision, in words for people, and what the NodeSet's conditions say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from slinkytui.backend.errors import Conflict, SlinkyError
from slinkytui.backend.models import Did


@dataclass
class Outcome:
    """What came of a decision: each act in words, and pods that could not be changed."""

    did: list[Did] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    retry: str = ""
    broken: bool = False
    """A worker could not be made, marked or deleted: this generation of the NodeSet is not carried out yet."""
    more: bool = False
    """Not everything was begun: the rest comes in the next pass, at once."""
    refused: list[str] = field(default_factory=list)
    """What a server did not take and will not take as it is, with its words."""

    def note(self, text: str, error: Exception | None = None) -> None:
        words = error.line() if isinstance(error, SlinkyError) else repr(error) if error is not None else ""
        self.did.append(Did(text, words))
        if error is None:
            return
        retryable = not isinstance(error, SlinkyError) or error.retryable or isinstance(error, Conflict)
        if retryable:
            self.retry = self.retry or f"{text}: {words}"
        else:
            self.refused.append(f"{text}: {words}")


def with_refusals(
    wanted: Sequence[Mapping[str, Any]], held: Sequence[Mapping[str, Any]], refused: Sequence[str], now: float
) -> list[Mapping[str, Any]]:
    """The conditions with the servers' own words about what they did not take. `held` are those that stand there now: the
    time of a condition moves only when its status does, so that a refusal that goes on is written once."""
    before = next((c for c in held if c.get("type") == "Degraded"), {})
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = next((c for c in wanted if c.get("type") == "Degraded"), {})
    said = str(found.get("message") or "") if found.get("status") == "True" and found.get("reason") != "Refused" else ""
    text = "; ".join(dict.fromkeys(filter(None, (*refused, said))))[:1024]
    since = before.get("lastTransitionTime", stamp) if before.get("status") == "True" else stamp
    new = {
        **found,
        "type": "Degraded",
        "status": "True",
        "reason": "Refused",
        "message": text,
        "lastTransitionTime": since,
    }
    if {**before, "observedGeneration": 0} == {**new, "observedGeneration": 0}:
        new = dict(before)
    others = [new if c is found else c for c in wanted]
    return others if found else [*others, new]
