"""The parts of a decision while it is made. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import NamedTuple

from slinkytui.backend.controllers.nodeset.decision import Effect, PatchPod, Reason
from slinkytui.backend.models import Pod


class Draining(NamedTuple):
    """A worker that leaves and cannot go yet: since when, and when its last job has to end, or ""."""

    text: str
    since: float | None
    end: str


def said(draining: Sequence[Draining]) -> list[str]:
    """What is waited for, the oldest first; before it since when and until when at the latest."""
    if not draining:
        return []
    oldest = sorted(draining, key=lambda d: d.since or float("inf"))
    since, end = oldest[0].since, max(d.end for d in oldest)
    stamp = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if since else ""
    times = " ".join(filter(None, (stamp and f"since {stamp}", end and f"until {end}")))
    return [*([times] if times else []), *(d.text for d in oldest)]


@dataclass
class Parts:
    """The parts of a decision, in the order in which they are carried out."""

    creates: list[Effect] = field(default_factory=list)
    marks: dict[str, PatchPod] = field(default_factory=dict)
    drains: list[Effect] = field(default_factory=list)
    deletes: list[Effect] = field(default_factory=list)
    undrains: list[Effect] = field(default_factory=list)
    repairs: list[Effect] = field(default_factory=list)
    states: list[Effect] = field(default_factory=list)
    tells: list[Effect] = field(default_factory=list)
    why: list[Reason] = field(default_factory=list)
    going: set[str] = field(default_factory=set)
    """UIDs of pods that are deleted: nothing more is written on them."""
    hurry: bool = False
    draining: list[Draining] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    again: list[float] = field(default_factory=list)

    def take(self, other: Parts) -> None:
        """What another one has, too."""
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, list):
                mine.extend(theirs)
            elif isinstance(mine, dict | set):
                mine.update(theirs)
        self.hurry |= other.hurry

    def note(self, pod: Pod, notes: Mapping[str, str | None], labels: Mapping[str, str | None] | None = None) -> None:
        """One patch a pod, whatever it says."""
        held = self.marks.get(pod.meta.uid) or PatchPod(pod)
        self.marks[pod.meta.uid] = replace(
            held, annotations={**held.annotations, **notes}, labels={**held.labels, **(labels or {})}
        )
