"""Plans are pure: what they say, what they refuse, what they never do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.actions.registry import Scene, make_plan, moment
from slinkytui.backend.controllers.nodeset.order import deadline, deletion_cost, rank
from slinkytui.backend.errors import NotFound, UsageError
from slinkytui.backend.models import (
    Ask,
    Condition,
    FleetNode,
    FleetNodeSet,
    Job,
    JobId,
    Key,
    Meta,
    NodeId,
    NodeSet,
    Pod,
    SlurmNode,
    Table,
)
from slinkytui.backend.store import Store

NOW = 1_800_000_000.0


def scene(*rows: FleetNode | Job | FleetNodeSet | Pod) -> Scene:
    store = Store()
    tables = {FleetNode: Table.NODES, Job: Table.JOBS, FleetNodeSet: Table.NODESETS, Pod: Table.PODS}
    for row in rows:
        store.upsert(tables[type(row)], "", [row])
    return Scene(store, NOW)


def node(name: str, *states: str, reason: str = "", user: str = "", jobs: tuple[JobId, ...] | None = ()) -> FleetNode:
    return FleetNode(
        NodeId("c", name), SlurmNode(NodeId("c", name), states, reason, user), jobs=jobs, gpus_total=8, gpus_used=0
    )


def job(number: int, state: str, user: str = "alice", *, hold: bool = False) -> Job:
    return Job(
        JobId("c", number), number, (state,), user=user, hold=hold, gpus=8, nodes="n1" if state == "RUNNING" else ""
    )


def test_a_drain_says_what_it_does_and_whose_drains_stand() -> None:
    plan = make_plan(
        Ask("node.drain", ("n1", "n2"), reason="xid 79"),
        scene(node("n1", "MIXED", jobs=(JobId("c", 7),)), node("n2", "IDLE", "DRAIN", reason="fan", user="bob")),
    )
    assert [s.skip for s in plan.steps] == ["", "drained by bob: fan"]
    assert (plan.blast.nodes, plan.blast.jobs_end, plan.blast.jobs_killed) == (1, 1, 0)
    assert "n2 was drained by bob 'fan': nothing to do" in plan.notes


@pytest.mark.parametrize("reason", ["", "  ", "slurm-operator: x", "a\nb", "\x1b[31m"])
def test_bad_reasons_are_refused(reason: str) -> None:
    with pytest.raises(UsageError):
        make_plan(Ask("node.drain", ("n1",), reason=reason), scene(node("n1", "IDLE")))


def test_a_busy_node_without_visible_jobs_is_never_called_empty() -> None:
    plan = make_plan(Ask("node.drain", ("n1",), reason="x"), scene(node("n1", "ALLOCATED", jobs=None)))
    assert plan.blast.jobs_end is None
    assert plan.warnings


def ending(number: int, end: int | None, limit: float | None = 60.0) -> Job:
    return Job(JobId("c", number), number, ("RUNNING",), user="alice", nodes="n1", end_time=end, time_limit_min=limit)


@pytest.mark.parametrize(
    ("jobs", "text"),
    [
        ([], ""),
        ([ending(1, 1_800_000_600), ending(2, 1_800_003_600)], moment(1_800_003_600)),
        ([ending(1, 1_800_000_600), ending(2, None)], "at a time that is not known"),
        ([ending(1, 1_800_000_600), ending(2, 0)], "at a time that is not known"),
        ([ending(1, 1_800_000_600), ending(2, None, float("inf"))], "never: a job has no time limit"),
    ],
)
def test_a_drain_says_when_the_last_job_ends(jobs: list[Job], text: str) -> None:
    there = scene(node("n1", "MIXED", jobs=tuple(j.id for j in jobs)), *jobs)
    assert make_plan(Ask("node.drain", ("n1",), reason="x"), there).blast.last_end == text


def test_undrain_says_since_when() -> None:
    held = SlurmNode(NodeId("c", "n1"), ("IDLE", "DRAIN"), "fan", "bob", 1_799_000_000)
    plan = make_plan(Ask("node.undrain", ("n1",)), scene(FleetNode(NodeId("c", "n1"), held, jobs=())))
    assert plan.notes == (f"n1 was drained by bob at {moment(1_799_000_000)}: fan",)
    plan = make_plan(Ask("node.undrain", ("n1",)), scene(node("n1", "IDLE", "DRAIN", reason="fan")))
    assert plan.notes == ("n1 was drained by somebody at a time that is not known: fan",)


def test_undrain_names_the_owner_and_warns_of_the_operators() -> None:
    held = node("n1", "IDLE", "DRAIN", reason="slurm-operator: scale-in", user="slurm")
    plan = make_plan(Ask("node.undrain", ("n1",)), scene(held))
    assert len(plan.todo) == 1
    assert any("operator" in w for w in plan.warnings)


def test_cancel_counts_what_it_kills() -> None:
    plan = make_plan(
        Ask("job.cancel", ("1", "2", "3")), scene(job(1, "RUNNING"), job(2, "PENDING", "bob"), job(3, "COMPLETED"))
    )
    assert plan.blast.jobs_killed == 1
    assert plan.confirm_count == 2
    assert [bool(s.skip) for s in plan.steps] == [False, False, True]


def test_hold_and_release_touch_only_pending_jobs() -> None:
    there = scene(job(1, "RUNNING"), job(2, "PENDING"), job(3, "PENDING", hold=True))
    assert [bool(s.skip) for s in make_plan(Ask("job.hold", ("1", "2", "3")), there).steps] == [True, False, True]
    assert [bool(s.skip) for s in make_plan(Ask("job.release", ("1", "2", "3")), there).steps] == [True, True, False]


@pytest.mark.parametrize(
    ("verb", "target", "error"),
    [("node.drain", "nope", NotFound), ("job.cancel", "9", NotFound), ("node.explode", "n1", UsageError)],
)
def test_unknown_targets_and_verbs(verb: str, target: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        make_plan(Ask(verb, (target,), reason="x"), scene(node("n1", "IDLE")))


def test_the_hash_moves_with_the_decisive_inputs_only() -> None:
    ask = Ask("node.drain", ("n1",), reason="x")
    first = make_plan(ask, scene(node("n1", "IDLE"))).hash
    assert make_plan(ask, scene(node("n1", "MIXED"))).hash == first
    assert make_plan(ask, scene(node("n1", "IDLE", "DRAIN"))).hash != first


def pod(
    name: str, *, node_name: str = "k", phase: str = "Running", ready: int | None = 100, created: int = 50, **notes: str
) -> Pod:
    annotations = tuple(sorted((f"nodeset.slinky.slurm.net/{k.replace('_', '-')}", v) for k, v in notes.items()))
    conditions = (Condition("Ready", "True", since=ready),) if ready is not None else ()
    return Pod(
        Key("s", name),
        Meta(uid=name, created=created, annotations=annotations, owner_uid="set"),
        phase,
        node=node_name,
        conditions=conditions,
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("a-0", node_name=""), pod("a-9", phase="Pending", ready=None)),
        (pod("a-0", phase="Pending", ready=None), pod("a-9", phase="Unknown", ready=None)),
        (pod("a-0", phase="Failed"), pod("a-9", phase="Unknown", ready=None)),
        (pod("a-9", phase="Pending", ready=None), pod("a-0", phase="Succeeded", ready=None)),
        (pod("a-0", phase="Unknown"), pod("a-9", ready=None)),
        (pod("a-0", pod_cordon="t"), pod("a-9", pod_cordon="yes")),
        (pod("x", ready=0), pod("y", ready=100)),
        (pod("x", created=0), pod("y", created=50)),
        (pod("a-9", pod_deletion_cost="+5"), pod("a-0", pod_deletion_cost="0")),
        (pod("a-0", ready=None), pod("a-9", pod_deletion_cost="-5")),
        (pod("a-0", pod_deletion_cost="-5"), pod("a-9")),
        (pod("a-0"), pod("a-9", pod_deadline="2026-01-01T00:00:00Z")),
        (pod("a-0", pod_deadline="2026-01-01T00:00:00Z"), pod("a-9", pod_deadline="2027-01-01T00:00:00Z")),
        (pod("a-0", pod_cordon="true"), pod("a-9")),
        (pod("a-9"), pod("a-0")),
        (pod("x", ready=200), pod("y", ready=100)),
        (pod("x", created=60), pod("y", created=50)),
    ],
)
def test_scale_in_order_first_difference_wins(first: Pod, second: Pod) -> None:
    assert sorted([second, first], key=rank) == [first, second]
    assert sorted([first, second], key=rank) == [first, second]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        ("5", 5),
        ("-5", -5),
        ("+5", 0),
        ("05", 0),
        ("x", 0),
        ("2147483648", 0),
        ("2147483647", 2**31 - 1),
        ("5\n", 0),
        ("٣", 0),
    ],
)
def test_deletion_cost(text: str, cost: int) -> None:
    assert deletion_cost(text) == cost


def test_an_unreadable_deadline_is_the_earliest() -> None:
    assert (
        deadline("soon")
        == deadline("2030-01-01")
        == deadline("2030-01-01T00:00:00")
        == deadline("")
        < deadline("2026-01-01T00:00:00Z")
    )


@given(st.permutations([pod(f"a-{i}") for i in range(6)]))
def test_the_order_does_not_depend_on_the_input(pods: list[Pod]) -> None:
    assert [p.id.name for p in sorted(pods, key=rank)] == [f"a-{i}" for i in range(5, -1, -1)]


def test_scale_in_lists_who_leaves_and_kills_nothing() -> None:
    spec = NodeSet(Key("s", "a"), Meta(uid="set", version="9"), Key("s", "ctl"), replicas=3)
    workers = [pod(f"a-{i}") for i in range(3)]
    nodes = [
        FleetNode(
            NodeId("c", f"a-{i}"),
            SlurmNode(NodeId("c", f"a-{i}"), ("IDLE",)),
            pod=Key("s", f"a-{i}"),
            jobs=(),
            gpus_total=8,
        )
        for i in range(3)
    ]
    there = scene(FleetNodeSet(Key("s", "a"), spec, want=3, have=3), *workers, *nodes)
    plan = make_plan(Ask("nodeset.scale", ("a",), {"replicas": "1"}), there)
    assert [r.cells[0] for r in plan.rows] == ["a-2", "a-1"]
    assert plan.blast.jobs_killed == 0
    assert make_plan(Ask("nodeset.scale", ("a",), {"replicas": "3"}), there).refused
    with pytest.raises(UsageError):
        make_plan(Ask("nodeset.scale", ("a",), {"replicas": "-1"}), there)
