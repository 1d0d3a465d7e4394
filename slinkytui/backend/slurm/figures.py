"""Licences, shares and the server's own figures: read rarely, from plain records, into rows."""

from __future__ import annotations

from typing import Any

import msgspec

from slinkytui.backend.models import Diag, License, Share, SlurmName
from slinkytui.backend.slurm.numbers import Number, NumberObject, moment, number, whole


def _number(value: Any) -> Number:
    """A number object, or a plain number."""
    return msgspec.convert(value, NumberObject) if isinstance(value, dict) else value


def license_row(record: dict[str, Any], cluster: str) -> License:
    """One licence; counts that the server does not say are None."""
    return License(
        SlurmName(cluster, str(record.get("LicenseName") or "")), whole(record.get("Total")), whole(record.get("Used")),
        whole(record.get("Free")), whole(record.get("Reserved")), bool(record.get("Remote")),
    )  # fmt: skip


def share_row(record: dict[str, Any], cluster: str) -> Share:
    """One line of sshare: an account, or a user in one, told by its type."""
    name, parent = str(record.get("name") or ""), str(record.get("parent") or "")
    is_user = "USER" in (record.get("type") or ())
    found = record.get("fairshare")
    fair: dict[str, Any] = found if isinstance(found, dict) else {}
    return Share(
        str(record.get("cluster") or cluster), parent if is_user else name, name if is_user else "", parent,
        number(_number(record.get("shares"))), number(_number(record.get("shares_normalized"))), whole(record.get("usage")),
        number(_number(record.get("effective_usage"))), number(_number(fair.get("factor"))),
    )  # fmt: skip


def diag_row(found: dict[str, Any]) -> Diag:
    """sdiag's figures; what a release does not give is None."""

    def count(key: str) -> int | None:
        return whole(_number(found.get(key)))

    active = found.get("bf_active")
    return Diag(
        taken=moment(_number(found.get("req_time"))), since=moment(_number(found.get("req_time_start"))),
        server_threads=count("server_thread_count"), agent_queue=count("agent_queue_size"),
        dbd_queue=count("dbd_agent_queue_size"), jobs_pending=count("jobs_pending"), jobs_running=count("jobs_running"),
        jobs_submitted=count("jobs_submitted"), jobs_started=count("jobs_started"), jobs_completed=count("jobs_completed"),
        jobs_canceled=count("jobs_canceled"), jobs_failed=count("jobs_failed"), cycle_last_us=count("schedule_cycle_last"),
        cycle_mean_us=count("schedule_cycle_mean"), bf_cycle_last_us=count("bf_cycle_last"),
        bf_active=active if isinstance(active, bool) else None,
    )  # fmt: skip
