"""From an ask to a plan: each verb is one pure function over a snapshot of the picture."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from slinkytui.backend.errors import NotFound, UsageError
from slinkytui.backend.models import Ask, Cluster, FleetNode, FleetNodeSet, Job, Plan, Row, Table
from slinkytui.backend.models.base import INFINITE
from slinkytui.backend.store import Store

R = TypeVar("R", bound=Row)
Planner = Callable[[Ask, "Scene"], Plan]


@dataclass(frozen=True)
class Scene:
    """What a plan may look at."""

    store: Store
    now: float
    namespace: str = ""

    def rows(self, table: Table, kind: type[R]) -> list[R]:
        return [r for r in self.store.rows(table).values() if isinstance(r, kind)]

    def nodes(self, ask: Ask) -> list[FleetNode]:
        """The named nodes, in the order given. Raises NotFound for one that is not there."""
        return _named(self.rows(Table.NODES, FleetNode), ask, "node", lambda n: (n.id.name,))

    def jobs(self, ask: Ask) -> list[Job]:
        return _named(self.rows(Table.JOBS, Job), ask, "job", lambda j: (str(j.id), str(j.raw_id)))

    def nodeset(self, ask: Ask) -> FleetNodeSet:
        sets = [
            s for s in self.rows(Table.NODESETS, FleetNodeSet) if not ask.namespace or s.id.namespace == ask.namespace
        ]
        return _named(sets, ask, "nodeset", lambda s: (str(s.id), s.id.name))[0]

    def jobs_on(self, nodes: Iterable[FleetNode]) -> list[Job]:
        """The jobs that are known to run on these nodes."""
        ids = {j for n in nodes for j in n.jobs or ()}
        rows = self.store.rows(Table.JOBS)
        return [row for i in sorted(ids) if isinstance(row := rows.get(i), Job)]

    def why_missing(self, cluster: str, verb: str) -> str:
        """Why the release of a cluster lacks a verb, or ""."""
        found = next((c for c in self.rows(Table.CLUSTERS, Cluster) if c.name == cluster), None)
        return dict(found.missing).get(verb, "") if found else ""


def _named(rows: list[R], ask: Ask, what: str, names: Callable[[R], tuple[str, ...]]) -> list[R]:
    by_name: dict[str, list[R]] = {}
    for row in rows:
        if ask.cluster and getattr(row.id, "cluster", ask.cluster) != ask.cluster:  # type: ignore[attr-defined]
            continue
        for name in dict.fromkeys(names(row)):
            by_name.setdefault(name, []).append(row)
    out: list[R] = []
    for target in ask.targets:
        found = by_name.get(target.removeprefix(f"{what}/"), [])
        if not found:
            raise NotFound(f"{what} {target} not found", hint=f"slinkytui get {what}s")
        if len(found) > 1:
            raise UsageError(f"{what} {target} is not one thing", detail=", ".join(str(f.id) for f in found))  # type: ignore[attr-defined]
        out.append(found[0])
    if not out:
        raise UsageError(f"{ask.verb} wants a {what}")
    return out


def digest(*parts: Any) -> str:
    """A short hash of the decisive inputs of a plan."""
    return hashlib.sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:12]


def moment(at: float | None) -> str:
    """A time as people here write it, to the minute; "" when it is not known."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M") if at else ""


def last_end(jobs: Iterable[Job]) -> str:
    """When the last of these jobs ends at the latest; "" for no jobs. One without a limit or known end decides."""
    found = list(jobs)
    if any(j.time_limit_min == INFINITE for j in found):
        return "never: a job has no time limit"
    ends = [j.end_time for j in found]
    if any(not e for e in ends):
        return "at a time that is not known"
    return moment(max((e for e in ends if e), default=None))


def unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for t in texts if t))


def planners() -> dict[str, Planner]:
    """Every verb there is, with the function that plans it."""
    from slinkytui.backend.actions import jobs, nodes, scale

    return {
        "node.drain": nodes.plan_drain,
        "node.undrain": nodes.plan_undrain,
        "job.cancel": jobs.plan_cancel,
        "job.hold": jobs.plan_hold,
        "job.release": jobs.plan_release,
        "nodeset.scale": scale.plan_scale,
    }


def make_plan(ask: Ask, scene: Scene) -> Plan:
    """The plan of any verb. Raises UsageError for one that does not exist."""
    known = planners()
    planner = known.get(ask.verb)
    if planner is None:
        raise UsageError(f"no verb {ask.verb!r}", hint=f"verbs: {', '.join(sorted(known))}")
    return planner(ask, scene)
