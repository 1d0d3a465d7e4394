"""What a reconcile answers: a closed set. The worker turns each into one act on the queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do until something changes."""


@dataclass(frozen=True, slots=True)
class After:
    """Look again in `delay` seconds at the latest. `error` says what was refused for good in this pass, if anything."""

    delay: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """It failed: try again with back-off, but in `within` seconds at the latest if that is given."""

    error: str
    within: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It can never succeed as it is: no retry until something changes."""

    error: str


Outcome = Done | After | Retry | Refused


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """One outcome for the parts of a pass: no error is lost and the smallest delay wins."""
    delays: list[float] = []
    failed: list[str] = []
    refused: list[str] = []
    for outcome in outcomes:
        match outcome:
            case After(delay, error):
                delays.append(delay)
                refused += [error] if error else []
            case Retry(error, within):
                failed.append(error)
                delays += [within] if within is not None else []
            case Refused(error):
                refused.append(error)
            case Done():
                pass
    soonest = min(delays, default=None)
    if failed:
        return Retry("; ".join(dict.fromkeys(failed + refused)), soonest)
    text = "; ".join(dict.fromkeys(refused))
    if soonest is not None:
        return After(soonest, text)
    return Refused(text) if refused else Done()
