"""The slicer cuts any list into the rows that it holds, whatever the chunks and the strings in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.models import Job, SlurmNode
from slinkytui.backend.slurm.client import parse
from slinkytui.backend.slurm.slicer import RowSlicer
from slinkytui.backend.slurm.wire import JOBS, NODES, read_row

texts = st.one_of(st.text(max_size=12), st.sampled_from(['},{"name":', "\n    },\n    {", '"nodes": [', "\\", '"']))
inner = st.lists(texts.map(lambda t: {"k": t}), max_size=2)
rows = st.lists(
    st.tuples(texts, st.integers(), inner).map(lambda t: {"name": t[0], "n": t[1], "inner": t[2]}), max_size=6
)
"""Records whose keys stand in one order, as a server writes them."""


def sliced(body: bytes, sizes: list[int]) -> list[object]:
    slicer, found, at = RowSlicer("nodes"), [], 0
    for size in [*sizes, len(body)]:
        found += [json.loads(r) for r in slicer.feed(body[at : at + size])]
        at += size
    document = parse(slicer.finish())
    return [*found, *document["nodes"], document["last_update"]]


@given(rows, st.lists(st.integers(1, 40), max_size=30), st.sampled_from([None, 2]))
def test_rows_come_out_as_they_went_in(found: list[dict[str, object]], sizes: list[int], indent: int | None) -> None:
    document = {"nodes": found, "last_update": 7, "errors": []}
    body = json.dumps(document, indent=indent, separators=None if indent else (",", ":")).encode()
    assert sliced(body, sizes) == [*found, 7]


def test_a_row_that_cannot_be_read_whole_is_flagged_and_kept() -> None:
    row = read_row(NODES, b'{"name":"n1","state":["IDLE"],"cpus":{"bad":[1]},"reason":7}', "c")
    assert isinstance(row, SlurmNode)
    assert row.states == ("IDLE",)
    assert "reason" in row.flagged


@pytest.mark.parametrize("raw", [b"{", b'{"state":[]}', b"[]", b"null"])
def test_a_row_without_a_name_is_lost_and_counted(raw: bytes) -> None:
    assert read_row(NODES, raw, "c") is None


def test_array_and_het_ids_are_squeues() -> None:
    record = {"job_id": 20, "array_job_id": {"set": True, "number": 13}, "array_task_id": {"set": True, "number": 4}}
    rest = {
        "job_id": 13,
        "array_job_id": {"set": True, "number": 13},
        "array_task_id": {"set": False},
        "array_task_string": "5-9%2",
    }
    het = {"job_id": 11, "het_job_id": {"set": True, "number": 10}, "het_job_offset": {"set": True, "number": 1}}
    found = [read_row(JOBS, json.dumps(r).encode(), "c") for r in (record, rest, het)]
    assert [str(j.id) for j in found if isinstance(j, Job)] == ["13_4", "13", "10+1"]
    assert isinstance(found[1], Job)
    assert found[1].task_count == 5
