"""What was written and is not yet seen in the caches. While something is, a decision would count it twice or not at all.

Everything is kept by UID: of the owner, so that an object made again under the same name inherits nothing, and of the
object, so that its successor is not taken for it. Each expectation stands alone, has its own end and goes when its
request fails; a record that others overwrite or a counter that drifts does not exist.

What terminates already is not expected to go: nothing new would come of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from slinkytui.backend.clock import Clock

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 300.0
"""After this long something was missed, and to go on is better than to stand still."""


class Kind(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclass(slots=True, eq=False)
class _Expected:
    kind: Kind
    since: float
    end: float
    uid: str = ""
    """Of the object; "" while its creation is under way."""
    version: int = 0
    under_way: bool = True
    """The request is not answered yet."""


@dataclass(slots=True)
class _Owner:
    expected: list[_Expected] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    """Versions of objects that were seen while requests were under way: the watch may be faster than the answer."""
    gone: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Pending:
    """What an owner still waits to see. `oldest_s` and `next_end_s` in seconds from now, back and ahead."""

    creates: int = 0
    changes: int = 0
    deletes: int = 0
    oldest_s: float = 0.0
    next_end_s: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.creates or self.changes or self.deletes)


class Creation:
    """A request under way; `made` tells what came of it. Left without `made`, nothing is expected."""

    def __init__(self) -> None:
        self.uid = ""

    def made(self, uid: str) -> None:
        self.uid = uid


class Change:
    """A write under way. Left without `made`, or with a version that is no number, nothing is expected."""

    def __init__(self) -> None:
        self.version = ""

    def made(self, version: str) -> None:
        """The resourceVersion of the answer."""
        self.version = version


class Expectations:
    def __init__(self, clock: Clock, *, timeout_s: float = TIMEOUT_S) -> None:
        self._clock, self._timeout_s = clock, timeout_s
        self._owners: dict[str, _Owner] = {}
        self.expired = 0
        """How many were never seen."""

    # -- around each request

    @contextmanager
    def creating(self, owner: str, *, timeout_s: float | None = None) -> Iterator[Creation]:
        """Around one create. The names that we give are fixed, so that one whose answer was lost is tried again and
        answered with "exists": it need not be expected."""
        creation = Creation()
        with self._request(owner, Kind.CREATE, "", timeout_s) as expected:
            yield creation
            expected.uid = creation.uid
            if not creation.uid:
                self._drop(owner, expected)

    @contextmanager
    def deleting(self, owner: str, uid: str, *, timeout_s: float | None = None) -> Iterator[None]:
        """Around the delete of the object with this UID, until it is seen to terminate or to be gone."""
        with self._request(owner, Kind.DELETE, uid, timeout_s):
            yield

    @contextmanager
    def changing(self, owner: str, uid: str, *, timeout_s: float | None = None) -> Iterator[Change]:
        """Around one write to an object, until the version that it made is seen."""
        change = Change()
        with self._request(owner, Kind.CHANGE, uid, timeout_s) as expected:
            yield change
            if change.version.isdigit():
                expected.version = int(change.version)
            else:
                self._drop(owner, expected)

    @contextmanager
    def _request(self, owner: str, kind: Kind, uid: str, timeout_s: float | None) -> Iterator[_Expected]:
        expected = self._new(kind, uid, timeout_s)
        self._owners.setdefault(owner, _Owner()).expected.append(expected)
        try:
            yield expected
        except BaseException:
            self._drop(owner, expected)
            raise
        finally:
            expected.under_way = False
            self._settle(owner)

    def _new(self, kind: Kind, uid: str, timeout_s: float | None) -> _Expected:
        now = self._clock.monotonic()
        return _Expected(kind, now, now + (self._timeout_s if timeout_s is None else timeout_s), uid)

    # -- from the watches

    def seen(self, owner: str, uid: str, version: str = "") -> None:
        """An object of the owner is in the cache, in this version."""
        record = self._owners.get(owner)
        if record is not None:
            record.seen[uid] = max(record.seen.get(uid, 0), int(version) if version.isdigit() else 0)
            self._settle(owner)

    def gone(self, owner: str, uid: str) -> None:
        """An object of the owner terminates or is deleted; nothing more is expected of it."""
        record = self._owners.get(owner)
        if record is not None:
            record.gone.add(uid)
            self._settle(owner)

    def forget(self, owner: str) -> None:
        """The owner is gone, or another process led meanwhile."""
        self._owners.pop(owner, None)

    def clear(self) -> None:
        """Another process led meanwhile: nothing is known any more."""
        self._owners.clear()

    # -- before each decision

    def pending(self, owner: str) -> Pending:
        """What is still to be seen; falsy: nothing."""
        now = self._clock.monotonic()
        record = self._owners.get(owner)
        if record is None:
            return Pending()
        for expected in [e for e in record.expected if e.end <= now]:
            self.expired += 1
            log.warning("%s of %s was not seen in time", expected.kind, expected.uid or "a new object")
            record.expected.remove(expected)
        self._tidy(owner)
        if not record.expected:
            return Pending()
        count = {kind: sum(e.kind is kind for e in record.expected) for kind in Kind}
        return Pending(
            count[Kind.CREATE], count[Kind.CHANGE], count[Kind.DELETE],
            now - min(e.since for e in record.expected), min(e.end for e in record.expected) - now,
        )  # fmt: skip

    # -- inside

    def _settle(self, owner: str) -> None:
        record = self._owners.get(owner)
        if record is not None:
            record.expected = [e for e in record.expected if not _fulfilled(e, record)]
            self._tidy(owner)

    def _drop(self, owner: str, expected: _Expected) -> None:
        record = self._owners.get(owner)
        if record is not None and expected in record.expected:
            record.expected.remove(expected)
            self._tidy(owner)

    def _tidy(self, owner: str) -> None:
        """What the watches said early is kept only as long as something waits for it."""
        record = self._owners.get(owner)
        if record is None or record.expected:
            return
        del self._owners[owner]


def _fulfilled(expected: _Expected, record: _Owner) -> bool:
    if expected.kind is Kind.DELETE:
        return expected.uid in record.gone
    if expected.under_way or not expected.uid:
        return False
    seen = record.seen.get(expected.uid)
    return expected.uid in record.gone or (seen is not None and seen >= expected.version)
