"""Which reconcile a log line belongs to: each line written during one carries controller, key and reconcile id."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pass:
    """One reconcile. All three are text."""

    controller: str = ""
    key: str = ""
    reconcile_id: str = ""


NO_PASS = Pass()
current: ContextVar[Pass] = ContextVar("pass", default=NO_PASS)
"""The reconcile under way here; tasks that it starts inherit it."""


class PassFilter(logging.Filter):
    """Put on a handler it sets `controller`, `key` and `reconcile_id` on every record ("" outside of a reconcile)."""

    def filter(self, record: logging.LogRecord) -> bool:
        here = current.get()
        record.controller, record.key, record.reconcile_id = here.controller, here.key, here.reconcile_id
        return True
