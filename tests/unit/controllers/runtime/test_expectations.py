"""What was written and not yet seen: by UID, each with its own end, gone when its request fails."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.controllers.runtime.expectations import Expectations, Pending
from slinkytui.backend.errors import NotAllowed, NotFound
from tests.rules import holds
from tests.unit.controllers.virtual import run


@pytest.fixture
def time() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def found(time: VirtualClock) -> Expectations:
    return Expectations(time)


def counts(found: Pending) -> tuple[int, int, int]:
    return found.creates, found.changes, found.deletes


@holds("H3")
def test_a_create_is_expected_until_it_is_seen(found: Expectations) -> None:
    with found.creating("set", timeout_s=None) as creation:
        assert counts(found.pending("set")) == (1, 0, 0)
        creation.made("pod-1")
    assert counts(found.pending("set")) == (1, 0, 0)
    found.seen("set", "pod-2", "7")
    found.seen("other", "pod-1", "7")
    assert counts(found.pending("set")) == (1, 0, 0)
    found.seen("set", "pod-1", "8")
    assert not found.pending("set")


def test_the_watch_may_be_faster_than_the_answer(found: Expectations) -> None:
    with found.creating("set") as creation:
        found.seen("set", "pod-1", "7")
        assert found.pending("set")
        creation.made("pod-1")
    assert not found.pending("set")
    with found.deleting("set", "pod-1"):
        found.gone("set", "pod-1")
    assert not found.pending("set")


def test_a_pod_that_came_and_went_is_not_waited_for(found: Expectations) -> None:
    with found.creating("set") as creation:
        found.gone("set", "pod-1")
        creation.made("pod-1")
    assert not found.pending("set")


def test_w2_w32_a_request_that_fails_leaves_nothing(found: Expectations) -> None:
    with pytest.raises(NotAllowed), found.creating("set"):
        raise NotAllowed("namespace a is being terminated")
    with pytest.raises(NotFound), found.deleting("set", "pod-1"):
        raise NotFound("pod a")
    with found.creating("set"):
        pass
    assert not found.pending("set")


def test_w2_the_failure_of_one_leaves_the_others(found: Expectations) -> None:
    with found.creating("set") as creation:
        with pytest.raises(NotAllowed), found.deleting("set", "pod-9"):
            raise NotAllowed("pod")
        creation.made("pod-1")
    assert counts(found.pending("set")) == (1, 0, 0)


def test_one_is_never_clobbered_by_the_next(found: Expectations) -> None:
    for uid in ("pod-1", "pod-2"):
        with found.deleting("set", uid):
            pass
    with found.creating("set") as creation:
        creation.made("pod-3")
    assert counts(found.pending("set")) == (1, 0, 2)
    found.gone("set", "pod-2")
    found.gone("set", "pod-2")
    assert counts(found.pending("set")) == (1, 0, 1)


def test_w32_a_set_made_again_under_its_name_inherits_nothing(found: Expectations) -> None:
    with found.deleting("set-uid-1", "pod-1"):
        pass
    assert not found.pending("set-uid-2")
    found.forget("set-uid-1")
    assert not found.pending("set-uid-1")


def test_each_has_its_own_end(found: Expectations, time: VirtualClock) -> None:
    with found.deleting("set", "pod-1"):
        pass
    run(time.advance(200))
    with found.deleting("set", "pod-2", timeout_s=1000):
        pass
    assert found.pending("set") == Pending(0, 0, 2, 200.0, 100.0)
    run(time.advance(100))
    assert found.pending("set") == Pending(0, 0, 1, 100.0, 900.0)
    assert found.expired == 1
    run(time.advance(900))
    assert not found.pending("set")


def test_own_writes_are_waited_for_by_version(found: Expectations) -> None:
    with found.changing("set", "pod-1") as change:
        change.made("100")
    found.seen("set", "pod-1", "99")
    assert counts(found.pending("set")) == (0, 1, 0)
    found.seen("set", "pod-1", "1000")
    assert not found.pending("set")
    with found.changing("set", "pod-1") as change:
        found.seen("set", "pod-1", "1001")
        change.made("1001")
    assert not found.pending("set")
    with found.changing("set", "pod-1") as change:
        found.seen("set", "pod-1", "1001")
        change.made("1002")
    assert counts(found.pending("set")) == (0, 1, 0)
    found.gone("set", "pod-1")
    assert not found.pending("set")


def test_a_write_that_failed_or_has_no_readable_version_is_not_waited_for(found: Expectations) -> None:
    with found.changing("set", "pod-1") as change:
        change.made("abc")
    with found.changing("set", "pod-1"):
        pass
    with pytest.raises(NotFound), found.changing("set", "pod-1"):
        raise NotFound("pod")
    assert not found.pending("set")


def test_what_was_seen_is_not_kept(found: Expectations) -> None:
    for at in range(1000):
        found.seen("set", f"pod-{at}", "1")
        found.gone("set", f"pod-{at}")
    assert not found._owners
    with found.creating("set") as creation:
        creation.made("pod-1")
    found.seen("set", "pod-1")
    assert not found._owners


class Watched(RuleBasedStateMachine):
    """A cluster, a watch that lags behind it, and the expectations: they are never satisfied while the watch lags."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Expectations(VirtualClock())
        self.serial = 0
        self.cluster: set[str] = set()
        self.cache: set[str] = set()
        self.lag: list[tuple[str, str]] = []

    @rule(fails=st.booleans(), early=st.booleans())
    def create(self, fails: bool, early: bool) -> None:
        self.serial += 1
        uid = f"pod-{self.serial}"
        try:
            with self.found.creating("set") as creation:
                if fails:
                    raise NotAllowed("quota")
                self.cluster.add(uid)
                self.lag.append(("seen", uid))
                if early:
                    self.catch_up(len(self.lag))
                creation.made(uid)
        except NotAllowed:
            pass

    @rule(fails=st.booleans(), early=st.booleans(), data=st.data())
    def delete(self, fails: bool, early: bool, data: st.DataObject) -> None:
        if not self.cache:
            return
        uid = data.draw(st.sampled_from(sorted(self.cache)))
        try:
            with self.found.deleting("set", uid):
                if fails or uid not in self.cluster:
                    raise NotFound("pod")
                self.cluster.discard(uid)
                self.lag.append(("gone", uid))
                if early:
                    self.catch_up(len(self.lag))
        except NotFound:
            pass

    @rule(count=st.integers(1, 3))
    def catch_up(self, count: int) -> None:
        for kind, uid in self.lag[:count]:
            if kind == "seen":
                self.cache.add(uid)
                self.found.seen("set", uid, "1")
            else:
                self.cache.discard(uid)
                self.found.gone("set", uid)
        del self.lag[:count]

    @invariant()
    def satisfied_exactly_when_the_cache_shows_all(self) -> None:
        assert bool(self.found.pending("set")) == bool(self.lag)


TestWatched = Watched.TestCase
TestWatched.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
