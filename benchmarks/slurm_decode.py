"""Decoding of a jobs poll: rows cut and decoded one by one against json and dicts. Prints ratios of one run.

usage: python benchmarks/slurm_decode.py [JOBS]
"""

from __future__ import annotations

import json
import sys
import time

from slinkytui.backend.slurm.client import parse
from slinkytui.backend.slurm.slicer import RowSlicer
from slinkytui.backend.slurm.wire import JOBS, read_row


def body(count: int) -> bytes:
    """A compact answer with records of about 4.9 kB, as slurmrestd gives them."""
    pad = {f"unread_field_{i}": {"set": True, "infinite": False, "number": i} for i in range(70)}
    jobs = [
        {"account": "a", "job_id": i, "job_state": ["PENDING"], "user_name": "alice", "name": f"job {i}", "tres_req_str": "cpu=8,mem=64G,node=1,gres/gpu=8", **pad}
        for i in range(count)
    ]  # fmt: skip
    return json.dumps(
        {"jobs": jobs, "last_update": {"set": True, "number": 1}, "errors": []}, separators=(",", ":")
    ).encode()


def sliced(data: bytes) -> tuple[int, float]:
    """Rows, and the longest time between two points at which the loop may turn."""
    slicer, count, longest = RowSlicer("jobs"), 0, 0.0
    for at in range(0, len(data), 65_536):
        began = time.perf_counter()
        for raw in slicer.feed(data[at : at + 65_536]):
            count += read_row(JOBS, raw, "c") is not None
        longest = max(longest, time.perf_counter() - began)
    return count + len(parse(slicer.finish())["jobs"]), longest


def main() -> None:
    data = body(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    began = time.process_time()
    found, longest = sliced(data)
    ours = time.process_time() - began
    began = time.process_time()
    rival = len(json.loads(data)["jobs"])
    theirs = time.process_time() - began
    print(
        f"{len(data) / 1e6:.1f} MB, {found} of {rival} jobs; ours {ours:.3f} s CPU, longest piece {longest * 1e3:.1f} ms; json + dicts {theirs:.3f} s; ratio {ours / theirs:.2f}"
    )


if __name__ == "__main__":
    main()
