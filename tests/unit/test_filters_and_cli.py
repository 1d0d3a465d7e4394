"""The filter language, the argument orders, and that a simulated command stays simulated."""

from __future__ import annotations

import itertools

import pytest

from slinkytui.backend import FleetNode, NodeId, SlurmNode, UsageError
from slinkytui.backend.store import Store
from slinkytui.cli import settings
from slinkytui.kinds import KINDS, find_kind
from slinkytui.kinds.base import Context
from slinkytui.kinds.filters import compile_filter
from slinkytui.kinds.order import natural

CTX = Context(1_800_000_000, Store())
NODES = KINDS["nodes"]


def node(name: str, states: tuple[str, ...], gpus: int | None, reason: str = "") -> FleetNode:
    return FleetNode(
        NodeId("c", name), SlurmNode(NodeId("c", name), states, reason=reason), gpus_total=gpus, gpus_used=0, jobs=()
    )


ROWS = [
    node("gpu-1", ("IDLE",), 8),
    node("gpu-2", ("MIXED", "DRAIN"), 8, "xid 79"),
    node("cpu-1", ("IDLE",), 0),
    node("odd", ("DOWN",), None),
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["gpu-1", "gpu-2", "cpu-1", "odd"]),
        ("state=idle", ["gpu-1", "cpu-1"]),
        ("state=idle & gpus>0", ["gpu-1"]),
        ("state=idle gpus>0", ["gpu-1"]),
        ("state=idle & gpus>0 & name~^gpu", ["gpu-1"]),
        ("name~^(gpu|odd)", ["gpu-1", "gpu-2", "odd"]),
        ("state~^(drain|mix)", ["gpu-2"]),
        ("gpus=0 | state=down", ["cpu-1", "odd"]),
        ("!(state=idle)", ["gpu-2", "odd"]),
        ("gpus>=0", ["gpu-1", "gpu-2", "cpu-1"]),
        ("gpus!=8", ["cpu-1"]),
        ("!gpus=8", ["cpu-1"]),
        ("gpus=", ["odd"]),
        ("xid", ["gpu-2"]),
        ('"xid 79"', ["gpu-2"]),
        ("(state=idle | state=down) & name~1$", ["gpu-1", "cpu-1"]),
    ],
)
def test_filters(text: str, names: list[str]) -> None:
    test = compile_filter(text, NODES)
    assert [r.id.name for r in ROWS if test(r, CTX)] == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stat=idle", "did you mean state"),
        ("gpus>x", "wants a number"),
        ("name~[", "no regular expression"),
        ("(state=idle", "not closed"),
        ("state=idle &", "missing"),
    ],
)
def test_bad_filters_say_what_to_do(text: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        compile_filter(text, NODES)
    assert words in error.value.line()


def test_kinds_by_every_word() -> None:
    for kind in KINDS.values():
        for word in (kind.id, kind.singular, kind.id.upper(), *kind.aliases):
            assert find_kind(word) is kind
        assert len(set(kind.fields)) == len(kind.fields), kind.id


def test_names_sort_as_people_count() -> None:
    assert sorted(["gpu-10", "gpu-9", "gpu-1", "a"], key=natural) == ["a", "gpu-1", "gpu-9", "gpu-10"]


PIECES = [["--sim"], ["get"], ["nodes"], ["-o", "json"], ["-n", "slurm"]]


@pytest.mark.parametrize("value", [[], ["small"], ["huge"]], ids=["bare", "small", "huge"])
def test_no_order_of_arguments_loses_the_simulator(value: list[str]) -> None:
    seen = 0
    for order in itertools.permutations(range(len(PIECES))):
        words = [w for i in order for w in ([*PIECES[i], *value] if i == 0 else PIECES[i])]
        try:
            found = settings(words)
        except SystemExit as refused:
            assert refused.code == 2
            continue
        assert found.sim == (value[0] if value else "small"), words
        seen += 1
    assert seen >= 10


@pytest.mark.parametrize(
    "words",
    [
        ["--sim", "--slurm", "http://x"],
        ["get", "nodes", "--kubeconfig", "f", "--sim"],
        ["--context", "prod", "--sim", "get", "nodes"],
        ["--sim=", "--token-file", "t"],
    ],
)
def test_the_simulator_excludes_real_clusters(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        settings(words)
    assert refused.value.code == 2


def test_global_options_hold_before_and_after() -> None:
    for words in (["-n", "a", "get", "pods"], ["get", "-n", "a", "pods"], ["get", "pods", "-n", "a"]):
        assert settings(words).namespace == "a"
    assert settings(["-n", "a", "get", "pods", "-A"]).namespace == ""
