"""Who is woken by a change: from the old and the new object of any kind to the keys of a controller.

Both objects are mapped: what an object pointed to before it changed must hear of it too. A mapping that fails wakes
everybody, since an event that is lost would wait for the next poll.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from slinkytui.backend.controllers.runtime.queue import INITIAL, Queue

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
log = logging.getLogger(__name__)

Mapper = Callable[[T | None, T | None], Iterable[K]]
"""From an object before and after to keys; before is None for a new one, after for one that is gone."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner reference; `api_version` as `group/version`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


def each(keys_of: Callable[[T], Iterable[K]]) -> Mapper[T, K]:
    """The keys of the old and of the new object."""

    def mapper(old: T | None, new: T | None) -> Iterable[K]:
        return dict.fromkeys(key for one in (old, new) if one is not None for key in keys_of(one))

    return mapper


def when(changed: Callable[[T, T], bool], mapper: Mapper[T, K]) -> Mapper[T, K]:
    """Only changes that matter; what is new or gone always does."""

    def chosen(old: T | None, new: T | None) -> Iterable[K]:
        return mapper(old, new) if old is None or new is None or changed(old, new) else ()

    return chosen


def owned_by(
    kind: str, group: str, owners_of: Callable[[T], Iterable[Owner]], key_of: Callable[[T, Owner], K | None], *,
    controller: bool = True,
) -> Mapper[T, K]:  # fmt: skip
    """The owners of a kind, in any version of its group; those that control the object, or all with `controller` False.

    `key_of` gets the object and the reference and may know better, such as that the owner's UID is another one by now:
    then it answers None.
    """

    def keys_of(one: T) -> Iterable[K]:
        for owner in owners_of(one):
            found, _, _ = owner.api_version.rpartition("/")
            if owner.kind == kind and found == group and (owner.controller or not controller):
                key = key_of(one, owner)
                if key is not None:
                    yield key

    return each(keys_of)


@dataclass(frozen=True)
class Waker(Generic[T, K]):
    """Puts the keys that a change concerns into a queue. `everybody` lists all keys, for a mapping that fails."""

    what: str
    mapper: Mapper[T, K]
    queue: Queue[K]
    everybody: Callable[[], Iterable[K]]

    def __call__(self, old: T | None, new: T | None, *, initial: bool = False) -> None:
        priority = INITIAL if initial else 0
        try:
            keys = list(self.mapper(old, new))
        except Exception:  # a strange object of somebody's wakes all rather than stops the source
            log.exception("a change of %s could not be assigned: everybody is woken", self.what)
            keys = list(self.everybody())
        for key in keys:
            self.queue.add(key, priority=priority)
