"""Who is woken by a change."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from slinkytui.backend.clock import VirtualClock
from slinkytui.backend.controllers.runtime.mapping import Mapper, Owner, Waker, each, owned_by, when
from slinkytui.backend.controllers.runtime.queue import INITIAL, Queue

GROUP = "example.org"


@dataclass(frozen=True)
class Thing:
    space: str = "a"
    points_to: tuple[str, ...] = ()
    owners: tuple[Owner, ...] = ()
    label: str = ""


def owner(name: str, *, kind: str = "Set", version: str = f"{GROUP}/v1", controller: bool = True) -> Owner:
    return Owner(version, kind, name, f"uid-{name}", controller)


def points(thing: Thing) -> tuple[str, ...]:
    return thing.points_to


def owners(thing: Thing) -> tuple[Owner, ...]:
    return thing.owners


def relabelled(old: Thing, new: Thing) -> bool:
    return old.label != new.label


def names_of(*, controller: bool = True) -> Mapper[Thing, str]:
    return owned_by("Set", GROUP, owners, lambda t, o: f"{t.space}/{o.name}", controller=controller)


def test_both_the_old_and_the_new_target_are_woken() -> None:
    mapper = each(points)
    assert list(mapper(Thing(points_to=("a", "b")), Thing(points_to=("b", "c")))) == ["a", "b", "c"]
    assert list(mapper(None, Thing(points_to=("c",)))) == ["c"]
    assert list(mapper(Thing(points_to=("a",)), None)) == ["a"]


def test_a_change_that_does_not_matter_wakes_nobody() -> None:
    mapper: Mapper[Thing, str] = when(relabelled, each(points))
    thing = Thing(points_to=("a",))
    assert list(mapper(thing, thing)) == []
    assert list(mapper(thing, Thing(points_to=("a",), label="x"))) == ["a"]
    assert list(mapper(None, thing)) == list(mapper(thing, None)) == ["a"]


@pytest.mark.parametrize(
    ("found", "woken"),
    [
        (owner("x"), ["a/x"]),
        (owner("x", version=f"{GROUP}/v2beta1"), ["a/x"]),
        (owner("x", version="v1"), []),
        (owner("x", version="other.org/v1"), []),
        (owner("x", kind="Deployment"), []),
        (owner("x", controller=False), []),
    ],
)
def test_the_controlling_owner_of_the_kind_is_woken(found: Owner, woken: list[str]) -> None:
    assert list(names_of()(None, Thing(owners=(found,)))) == woken


def test_an_object_that_changes_hands_wakes_both_and_shared_ones_all() -> None:
    assert list(names_of()(Thing(owners=(owner("x"),)), Thing(owners=(owner("y"),)))) == ["a/x", "a/y"]
    shared = Thing(owners=(owner("x", controller=False), owner("y", controller=False)))
    assert list(names_of(controller=False)(None, shared)) == ["a/x", "a/y"]


def test_an_owner_made_again_is_not_taken_for_the_old_one() -> None:
    uids = {"x": "uid-new"}

    def key_of(thing: Thing, found: Owner) -> str | None:
        return found.name if uids.get(found.name) == found.uid else None

    mapper = owned_by("Set", GROUP, owners, key_of)
    assert list(mapper(None, Thing(owners=(owner("x"),)))) == []


def test_a_mapping_that_fails_wakes_everybody(caplog: pytest.LogCaptureFixture) -> None:
    queue: Queue[str] = Queue(VirtualClock())

    def broken(old: Thing | None, new: Thing | None) -> list[str]:
        raise KeyError("controllerRef")

    Waker("pods", broken, queue, lambda: ["x", "y"])(None, Thing())
    assert {row.key for row in queue.table()} == {"x", "y"}
    assert "everybody is woken" in caplog.text


def test_the_first_list_goes_behind_what_happens() -> None:
    queue: Queue[str] = Queue(VirtualClock())
    waker = Waker("things", each(points), queue, tuple)
    waker(None, Thing(points_to=("old", "both")), initial=True)
    waker(None, Thing(points_to=("new", "both")))
    assert {row.key: row.priority for row in queue.table()} == {"old": INITIAL, "both": 0, "new": 0}
