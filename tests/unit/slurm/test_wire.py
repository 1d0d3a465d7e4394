"""One odd field never costs a record, one odd record never costs a list."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.models import Job, SlurmNode
from slinkytui.backend.slurm.wire import JOBS, NODES, PARTITIONS, RESERVATIONS, Shape, read_row

NUMBER = {"set": True, "infinite": False, "number": 4}
UNSET = {"set": False, "infinite": False, "number": 0}
RECORDS: dict[str, tuple[Shape, dict[str, Any]]] = {
    "node": (NODES, {
        "name": "n1", "state": ["MIXED", "DRAIN"], "reason": "x", "reason_changed_at": NUMBER, "features": ["gpu"], "partitions": ["all"],
        "cpus": 64, "alloc_cpus": 8, "cpu_load": 512, "real_memory": 64000, "free_mem": NUMBER, "gres": "gpu:h100:8(S:0-1)",
        "gres_used": "gpu:h100:2(IDX:0-1)", "tres": "cpu=64", "boot_time": NUMBER, "weight": 1, "comment": "",
    }),
    "job": (JOBS, {
        "job_id": 7, "job_state": ["RUNNING"], "array_job_id": UNSET, "array_task_id": UNSET, "het_job_id": UNSET, "name": "train",
        "user_name": "alice", "hold": False, "priority": NUMBER, "nodes": "n[1-2]", "node_count": {**NUMBER, "number": 2}, "cpus": NUMBER,
        "gres_detail": ["gpu:h100:2(IDX:0-1)", "gpu:h100:2(IDX:0-1)"], "tres_alloc_str": "cpu=4,gres/gpu=4", "tres_per_node": "gres/gpu:2",
        "time_limit": {"set": False, "infinite": True, "number": 0}, "exit_code": {"status": ["SUCCESS"], "return_code": NUMBER, "signal": {"id": UNSET, "name": ""}},
        "start_time": NUMBER, "requeue": True, "restart_cnt": 0,
    }),
    "partition": (PARTITIONS, {
        "name": "all", "nodes": {"configured": "n[1-2]", "total": 2}, "partition": {"state": ["UP"]}, "maximums": {"time": UNSET},
        "cpus": {"total": 4}, "tres": {"configured": "cpu=4"}, "priority": {"tier": 1},
    }),
    "reservation": (RESERVATIONS, {"name": "maint", "node_list": "n1", "start_time": NUMBER, "end_time": NUMBER, "flags": ["MAINT"]}),
}  # fmt: skip
ODD = [
    None,
    "",
    [],
    {},
    0,
    -1,
    "x",
    1.5,
    True,
    [None],
    [[1]],
    {"set": "x"},
    {"set": True, "number": "7"},
    2**70,
    "Infinity",
    4294967294,
]
FIELDS = [(kind, key) for kind, (shape, record) in RECORDS.items() for key in record if key != shape.name]


@pytest.mark.parametrize(("kind", "key"), FIELDS, ids=[f"{k}-{f}" for k, f in FIELDS])
def test_a_field_that_is_missing_or_odd_leaves_the_record(kind: str, key: str) -> None:
    shape, record = RECORDS[kind]
    without = {k: v for k, v in record.items() if k != key}
    for changed in (without, *({**record, key: odd} for odd in ODD)):
        row = read_row(shape, json.dumps(changed).encode(), "c")
        assert row is not None, changed[key]
        assert row.id == read_row(shape, json.dumps(record).encode(), "c").id or "job_id" in key  # type: ignore[attr-defined, union-attr]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["set", "number", "infinite", "x"]), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@given(st.sampled_from(FIELDS), values)
def test_no_value_breaks_a_record(field: tuple[str, str], value: Any) -> None:
    shape, record = RECORDS[field[0]]
    assert read_row(shape, json.dumps({**record, field[1]: value}).encode(), "c") is not None


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    for shape, _ in RECORDS.values():
        read_row(shape, raw, "c")


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"tres_alloc_str": "cpu=64,node=2,gres/gpu=8,gres/gpu:a100=6,gres/gpu:h100=2"}, 8),
        ({"tres_alloc_str": "cpu=1,gres/gpu:a100=6,gres/gpu:h100=2"}, 8),
        ({"tres_per_node": "gres/gpu:4", "node_count": {"set": True, "number": 3}}, 12),
        ({"tres_per_job": "gres/gpu:h100:2", "node_count": {"set": True, "number": 3}}, 2),
        ({"tres_per_task": "gres/gpu:2", "tasks": {"set": True, "number": 5}}, 10),
        ({"tres_per_task": "gres/gpu:2"}, None),
        ({"tres_req_str": "cpu=1,mem=1G"}, 0),
        ({}, None),
    ],
)
def test_the_gpus_of_a_job_are_counted_once(fields: dict[str, Any], gpus: int | None) -> None:
    row = read_row(JOBS, json.dumps({"job_id": 1, "job_state": ["PENDING"], **fields}).encode(), "c")
    assert isinstance(row, Job)
    assert row.gpus == gpus


def test_a_negative_load_and_future_values_are_kept_apart_from_unset() -> None:
    raw = {"name": "n", "cpu_load": 4294967294, "free_mem": UNSET, "weight": 0, "gres_used": None, "state": "IDLE"}
    row = read_row(NODES, json.dumps(raw).encode(), "c")
    assert isinstance(row, SlurmNode)
    assert (row.cpu_load, row.free_memory_mib, row.weight, row.gres_used) == (None, None, 0, None)
    assert row.states == ("IDLE",)
