"""Slurm's text grammars: hostlists, GRES, TRES, states, numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.models import INFINITE, Gres
from slinkytui.backend.slurm.gres import format_gres, parse_gres
from slinkytui.backend.slurm.hostlist import HostlistError, count, expand, fold
from slinkytui.backend.slurm.numbers import NumberObject, number, whole
from slinkytui.backend.slurm.states import is_drained, is_terminal, is_usable, node_word, squeue_code
from slinkytui.backend.slurm.tres import asked_gpus, gpus_of, parse_tres


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("(null)", []),
        ("None assigned", []),
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[01-03,10]", ["n01", "n02", "n03", "n10"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[09-11]", ["n09", "n10", "n11"]),
        ("n[1,01,001]", ["n1", "n01", "n001"]),
        ("n[1-2]-ib[0-1]", ["n1-ib0", "n1-ib1", "n2-ib0", "n2-ib1"]),
        ("nodeA,nodeB[001,003],nodeC", ["nodeA", "nodeB001", "nodeB003", "nodeC"]),
        ("rack[0-1]n[00-01]", ["rack0n00", "rack0n01", "rack1n00", "rack1n01"]),
    ],
)
def test_expand(text: str, names: list[str]) -> None:
    assert expand(text) == names
    assert count(text) == len(names)


@pytest.mark.parametrize("text", ["n[3-1]", "n[1-", "n1]", "n[a]", "n[1-2", ",", "n[[1]]"])
def test_bad_hostlists_are_refused(text: str) -> None:
    with pytest.raises(HostlistError):
        expand(text)


def test_a_hostlist_that_would_explode_is_refused() -> None:
    with pytest.raises(HostlistError, match="limit"):
        expand("n[0-9999999]")


names = st.lists(st.from_regex(r"[a-z]{1,4}-?[0-9]{0,4}(-ib)?", fullmatch=True), max_size=30)


@given(names)
def test_fold_and_expand_are_inverse(found: list[str]) -> None:
    assert expand(fold(found)) == found


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", ()),
        ("(null)", ()),
        ("N/A", ()),
        ("gpu", (Gres("gpu", "", 1),)),
        ("gpu:0(IDX:N/A)", (Gres("gpu", "", 0, ()),)),
        ("gpu:(null):4(IDX:0,2-3)", (Gres("gpu", "", 4, (0, 2, 3)),)),
        ("gpu:4(S:0-1)", (Gres("gpu", "", 4, None, "0-1"),)),
        ("gpu:a100:4(S:0),gpu:a30:2(S:1)", (Gres("gpu", "a100", 4, None, "0"), Gres("gpu", "a30", 2, None, "1"))),
        ("gpu:nvidia_h100_80gb_hbm3_4g.40gb:2(S:0,2)", (Gres("gpu", "nvidia_h100_80gb_hbm3_4g.40gb", 2, None, "0,2"),)),
        ("bandwidth:lustre:no_consume:4G", (Gres("bandwidth", "lustre", 4 << 30, no_consume=True),)),
        ("shard:8(3/8,-/8)", (Gres("shard", "", 8, per_device=((3, 8), (-1, 8))),)),
        ("craynetwork:4,gpu:h100:8", (Gres("craynetwork", "", 4), Gres("gpu", "h100", 8))),
    ],
)
def test_gres(text: str, entries: tuple[Gres, ...]) -> None:
    assert parse_gres(text) == entries
    assert parse_gres(format_gres(entries)) == entries


@pytest.mark.parametrize("text", ["gpu:8(IDX:a)", "gpu:8(IDX:0-)", "gpu(8", "shard:8(x/8)"])
def test_bad_gres_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"GRES|read"):
        parse_gres(text)


gres = st.builds(
    Gres,
    st.sampled_from(["gpu", "shard", "nic"]),
    st.sampled_from(["", "h100", "a-b_c.d"]),
    st.integers(0, 64),
    st.one_of(st.none(), st.lists(st.integers(0, 15), unique=True).map(lambda x: tuple(sorted(x)))),
)


@given(st.lists(gres, max_size=4).map(tuple))
def test_gres_round_trip(entries: tuple[Gres, ...]) -> None:
    assert parse_gres(format_gres(entries)) == entries


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("cpu=64,mem=96046M,node=2,billing=64,gres/gpu=8,gres/gpu:a100=6,gres/gpu:h100=2", 8),
        ("cpu=1,gres/gpu:a100=6,gres/gpu:h100=2", 8),
        ("cpu=1,mem=1.5T", None),
        ("", None),
    ],
)
def test_tres_counts_gpus_once(text: str, gpus: int | None) -> None:
    assert gpus_of(parse_tres(text)) == gpus


def test_tres_memory_is_mib() -> None:
    assert parse_tres("mem=1.5T")["mem"] == 1.5 * 1024 * 1024


@pytest.mark.parametrize(
    ("text", "gpus"),
    [("gres/gpu:h100:2", 2), ("gres/gpu=4", 4), ("gres:gpu:2", 2), ("gres/gpu", 1), ("license/x=3", 0), ("", 0)],
)
def test_asked_gpus(text: str, gpus: int) -> None:
    assert asked_gpus(text) == gpus


@pytest.mark.parametrize(
    ("states", "word", "usable", "drained"),
    [
        (["IDLE"], "idle", True, False),
        (["DRAIN", "IDLE"], "drained", False, True),
        (["IDLE", "DRAIN", "COMPLETING"], "draining", False, False),
        (["MIXED", "DRAIN"], "draining", False, False),
        (["DOWN", "NOT_RESPONDING"], "down*", False, False),
        (["IDLE", "NOT_RESPONDING"], "idle*", False, False),
        (["DRAIN"], "drain", False, False),
        (["UNKNOWN", "DRAIN"], "unknown+drain", False, False),
        (["IDLE", "MAINTENANCE"], "maint", False, False),
        (["IDLE", "RESERVED"], "reserved", True, False),
        (["ALLOCATED", "COMPLETING"], "allocated", True, False),
        (["HYPERSPACE"], "hyperspace", False, False),
        ([], "unknown", False, False),
    ],
)
def test_node_states_are_sets(states: list[str], word: str, usable: bool, drained: bool) -> None:
    for order in (states, states[::-1]):
        assert node_word(order).split("+")[0] == word.split("+")[0]
        assert is_usable(order) == usable
        assert is_drained(order) == drained


@given(
    st.sets(
        st.sampled_from(["IDLE", "MIXED", "ALLOCATED", "DOWN", "DRAIN", "COMPLETING", "NOT_RESPONDING", "FUTURE", "X"])
    )
)
def test_a_busy_or_unknown_node_is_never_drained(states: set[str]) -> None:
    if is_drained(states):
        assert "DRAIN" in states
        assert not states & {"MIXED", "ALLOCATED", "COMPLETING"}
        assert states & {"IDLE", "DOWN"}


@pytest.mark.parametrize(
    ("states", "code", "ended"),
    [
        (["RUNNING"], "R", False),
        (["CANCELLED", "COMPLETING"], "CG", False),
        (["FAILED"], "F", True),
        (["RUNNING", "CONFIGURING"], "CF", False),
        (["NEW"], "", False),
    ],
)
def test_job_states(states: list[str], code: str, ended: bool) -> None:
    assert squeue_code(states) == code
    assert is_terminal(states) == ended


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (NumberObject(False, True, 0), INFINITE),
        (NumberObject(False, False, 5), None),
        (NumberObject(True, False, 0), 0),
        (4294967294, None),
        (4294967295, INFINITE),
        (18446744073709551614, None),
        ("Infinity", INFINITE),
        (float("nan"), None),
        (None, None),
        ("x", None),
        (7, 7),
    ],
)
def test_numbers(value: object, found: float | None) -> None:
    assert number(value) == found  # type: ignore[arg-type]  # whatever a server may send
    assert whole(value) == (None if found == INFINITE else found)  # type: ignore[arg-type]
