"""Decoding of a jobs poll: rows cut and decoded one by one against json and dicts. Prints ratios of one run.

usage: python benchmarks/slurm_decode.py [JOBS]
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from slinkytui.backend.clock import RealClock
from slinkytui.backend.http import Answer, Request
from slinkytui.backend.slurm.client import VERSIONS, SlurmClient, parse
from slinkytui.backend.slurm.slicer import RowSlicer
from slinkytui.backend.slurm.tokens import StaticToken
from slinkytui.backend.slurm.wire import JOBS, read_row


def body(count: int) -> bytes:
    """A compact answer with records of about 4.9 kB and 137 fields, of the types that slurmrestd 26.05 gives them."""
    head = b'{"jobs":['
    records = b",".join(json.dumps(_record(i), separators=(",", ":")).encode() for i in range(count))
    return head + records + b'],"last_update":{"set":true,"infinite":false,"number":1},"errors":[],"warnings":[]}'


def _record(i: int) -> dict[str, Any]:
    def n(value: int | None) -> dict[str, Any]:
        return {"set": value is not None, "infinite": False, "number": value or 0}

    running, user = i % 10 == 0, f"user{i % 40}"
    read = {
        "account": f"team{i % 12}", "job_id": 100_000 + i, "job_state": ["RUNNING" if running else "PENDING"],
        "array_job_id": n(0), "array_task_id": n(None), "array_task_string": "", "het_job_id": n(0), "het_job_offset": n(0),
        "name": f"train-{i % 300}", "user_name": user, "user_id": 1000 + i % 40, "partition": "h100", "qos": "normal",
        "state_reason": "None" if running else "Priority", "hold": False, "priority": n(4000 + i % 1000),
        "nodes": f"h100-{i % 900}" if running else "", "node_count": n(1), "cpus": n(32), "tasks": n(1),
        "memory_per_node": n(256_000), "memory_per_cpu": n(None), "submit_time": n(1_796_000_000 + i),
        "eligible_time": n(1_796_000_000 + i), "start_time": n(1_796_001_000 + i if running else 0),
        "end_time": n(1_796_090_000 + i if running else 0), "time_limit": n(1440), "dependency": "", "resv_name": "",
        "exit_code": {"status": ["SUCCESS"], "return_code": n(0), "signal": {"id": n(None), "name": ""}},
        "required_nodes": "", "features": "", "gres_detail": ["gpu:h100:8(IDX:0-7)"] if running else [],
        "tres_req_str": "cpu=32,mem=256000M,node=1,billing=32,gres/gpu=8",
        "tres_alloc_str": "cpu=32,mem=256000M,node=1,billing=32,gres/gpu=8" if running else "", "tres_per_node": "gres/gpu:8",
        "comment": "", "admin_comment": "", "extra": "", "command": f"/home/{user}/run.sh", "container": "",
        "current_working_directory": f"/home/{user}", "standard_output": f"/home/{user}/slurm-{i}.out",
        "standard_error": f"/home/{user}/slurm-{i}.out", "requeue": True, "restart_cnt": 0, "nice": n(0),
    }  # fmt: skip
    rest: dict[str, Any] = {f"unread_number_{k}": n(k) for k in range(28)}
    rest |= {f"unread_text_{k}": "some text of usual length" if k % 3 else "" for k in range(38)}
    rest |= {f"unread_whole_{k}": k for k in range(14)} | {f"unread_list_{k}": ["A", "B"] for k in range(4)}
    rest["job_resources"] = {"select_type": ["CPU"], "nodes": {"count": 1, "allocation": [{"index": 0, "sockets": [{"index": 0, "cores": [{"index": c, "status": ["ALLOCATED"]} for c in range(16)]}]}]}}  # fmt: skip
    return {**read, **rest}


def sliced(data: bytes) -> tuple[int, float]:
    """Rows, and the longest time between two points at which the loop may turn."""
    slicer, count, longest = RowSlicer("jobs"), 0, 0.0
    for at in range(0, len(data), 65_536):
        began = time.perf_counter()
        for raw in slicer.feed(data[at : at + 65_536]):
            count += read_row(JOBS, raw, "c") is not None
        longest = max(longest, time.perf_counter() - began)
    return count + len(parse(slicer.finish())["jobs"]), longest


def second_poll(data: bytes) -> float:
    """CPU seconds of a poll whose records are known but for one in a hundred, by way of the real client."""
    moved = data.replace(b'99,"job_state":["PENDING"]', b'99,"job_state":["SUSPENDED"]')

    async def run() -> float:
        client = SlurmClient(_Fixed([data, moved]), StaticToken("t"), RealClock(), cluster="c")
        client.version = VERSIONS[0]
        await client.jobs()
        began = time.process_time()
        await client.jobs()
        return time.process_time() - began

    return asyncio.run(run())


class _Fixed:
    """A transport that gives these bodies, one after the other."""

    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies = bodies

    def send(self, request: Request, *, timeout_s: float | None = None) -> AbstractAsyncContextManager[Answer]:
        return self._send()

    @asynccontextmanager
    async def _send(self) -> AsyncIterator[Answer]:
        data = self._bodies.pop(0)

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(data), 65_536):
                yield data[at : at + 65_536]

        yield Answer(200, {}, chunks())

    async def close(self) -> None:
        """Nothing is open."""


def main() -> None:
    data = body(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    began = time.process_time()
    found, longest = sliced(data)
    ours = time.process_time() - began
    again = second_poll(data)
    began = time.process_time()
    rival = len(json.loads(data)["jobs"])
    theirs = time.process_time() - began
    print(
        f"{len(data) / 1e6:.1f} MB, {found} of {rival} jobs; ours {ours:.3f} s CPU, longest piece {longest * 1e3:.1f} ms; json + dicts {theirs:.3f} s; ratio {ours / theirs:.2f}; the next poll, when one record in a hundred has changed: ratio {again / theirs:.2f}"
    )


if __name__ == "__main__":
    main()
