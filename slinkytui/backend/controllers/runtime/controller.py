"""A controller: one queue, some workers, one reconcile. What a reconcile raises ends here and becomes a retry."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

from slinkytui.backend.clock import Clock
from slinkytui.backend.controllers.runtime.logs import Pass, current
from slinkytui.backend.controllers.runtime.outcome import After, Done, Outcome, Refused, Retry
from slinkytui.backend.controllers.runtime.queue import INITIAL, Queue, QueueClosed
from slinkytui.backend.controllers.runtime.stats import ReconcileStats
from slinkytui.backend.controllers.runtime.waiting import within
from slinkytui.backend.errors import SlinkyError

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

HANG_S: Final = 2.0
"""How long work that was cancelled is waited for."""
LIMIT_S: Final = 300.0
"""A reconcile that takes longer hangs: it is cancelled and tried again."""


class Controller(Generic[K]):
    """`keys` lists all keys there are: they are wanted anew whenever the workers start.

    The queue lives as long as the controller. While another process leads, keys gather in it, each once.
    """

    def __init__(
        self, name: str, reconcile: Callable[[K], Coroutine[Any, Any, Outcome]], clock: Clock, *, workers: int = 1,
        queue: Queue[K] | None = None, keys: Callable[[], Iterable[K]] = tuple, limit_s: float = LIMIT_S,
        ids: Callable[[], str] = lambda: uuid.uuid4().hex[:12], text: Callable[[K], str] = str,
    ) -> None:  # fmt: skip
        self.name, self.workers = name, workers
        self.queue: Queue[K] = queue if queue is not None else Queue(clock)
        self.stats = ReconcileStats()
        self.active: dict[K, str] = {}
        """The reconcile id of each key that is worked on."""
        self._reconcile, self._clock, self._keys, self._limit_s = reconcile, clock, keys, limit_s
        self._ids, self._text = ids, text
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: set[asyncio.Task[Any]] = set()
        self._pausing = False

    def start(self) -> None:
        """Start the workers; every key is wanted, those that events put into the queue first."""
        self._pausing = False
        for key in self._keys():
            self.queue.add(key, priority=INITIAL)
        self._tasks = {asyncio.create_task(self._work(), name=f"{self.name}/{at}") for at in range(self.workers)}

    def pause(self) -> None:
        """Take no further key; what is worked on goes on."""
        self._pausing = True
        for task in self._tasks - self._busy:
            task.cancel()

    async def stop(self, grace_s: float) -> bool:
        """Whether all work ended by itself within the grace; what did not was cancelled, and its key is wanted again."""
        self.pause()
        if self._busy and grace_s > 0:
            try:
                await within(self._clock, grace_s, _ended(self._busy))
            except TimeoutError:
                pass
        in_time = not self._busy
        left = {task for task in self._tasks if not task.done()}
        for task in left:
            task.cancel()
        try:
            if left:
                await within(self._clock, HANG_S, _ended(left))
        except TimeoutError:
            # The gate keeps it from writing; to wait for it would keep the lease from those who can work.
            log.error("work of controller %s goes on though it was cancelled", self.name)
        self._tasks = set()
        return in_time

    def unhealthy(self) -> str:
        """ "" while every worker lives, else what happened to one of them."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and not self._pausing:
                return f"worker {task.get_name()} ended: {task.exception()!r}"
        return ""

    async def _work(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        while not self._pausing:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            self._busy.add(me)
            try:
                await self._one(key)
            finally:
                self._busy.discard(me)

    async def _one(self, key: K) -> None:
        reconcile_id = self._ids()
        token = current.set(Pass(self.name, self._text(key), reconcile_id))
        self.active[key] = reconcile_id
        started = self._clock.monotonic()
        try:
            self._conclude(key, await self._outcome(key))
        except asyncio.CancelledError:
            self.queue.add(key)
            raise
        finally:
            self.stats.time.observe(max(0.0, self._clock.monotonic() - started))
            del self.active[key]
            self.queue.done(key)
            current.reset(token)

    async def _outcome(self, key: K) -> Outcome:
        try:
            return await within(self._clock, self._limit_s, self._reconcile(key))
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            return Retry("something that it waited for was cancelled")
        except TimeoutError as error:
            log.error("the reconcile was cut off: %s", error)
            return Retry(f"cut off: {error}")
        except SlinkyError as error:
            log.warning("the reconcile failed: %s", error.line())
            return Retry(error.line())
        except Exception as error:  # the worker's wall: one key's fault is that key's alone
            self.stats.panics += 1
            log.exception("the reconcile raised")
            return Retry(f"{type(error).__name__}: {error}")

    def _conclude(self, key: K, outcome: Outcome) -> None:
        match outcome:
            case Done():
                self.queue.forget(key)
                result = "success"
            case After(delay, error):
                if error:
                    self.queue.refuse(key, error)
                else:
                    self.queue.forget(key)
                self.queue.add(key, after=delay)
                result = "requeue_after"
            case Retry(error, soonest):
                delay = self.queue.retry(key, error, within=soonest)
                log.info("again in %.3f s: %s", delay, error)
                self.stats.errors += 1
                result = "error"
            case Refused(error):
                self.queue.refuse(key, error)
                log.warning("refused until something changes: %s", error)
                self.stats.errors += 1
                result = "terminal_error"
        self.stats.results[result] += 1


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tasks)
