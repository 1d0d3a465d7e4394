"""Waiting on an injected clock: a deadline for any call, and the first of several things."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from slinkytui.backend.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled after `seconds` and then raises TimeoutError.

    It returns only when the work has ended: what was cancelled never goes on behind the caller's back.
    """
    task = asyncio.create_task(work)
    timer = asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        await cancelled(task, timer)
    raise TimeoutError(f"not done after {seconds:g} s")


async def first(*works: Coroutine[Any, Any, object]) -> int:
    """Which of the works ended first, by position; the others are cancelled. Its error is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        at = next(at for at, task in enumerate(tasks) if task.done())
        tasks[at].result()
        return at
    finally:
        await cancelled(*tasks)


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs and wait until it has ended."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    for task in left:
        if not task.cancelled():
            task.exception()
