"""`get`: names, selectors, what -w prints, inert text, and the page that lists the JSON keys."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinkytui.backend import (
    Controller,
    FleetNode,
    Job,
    JobId,
    Key,
    KubeNode,
    Meta,
    NodeId,
    NotFound,
    Pod,
    RestApi,
    SlurmNode,
    Source,
    Table,
    UsageError,
)  # fmt: skip
from slinkytui.backend.fleet.join import MADE_OF
from slinkytui.backend.store import Store
from slinkytui.cli import main
from slinkytui.cli import settings as parsed
from slinkytui.commands_get import named, query_of
from slinkytui.commands_watch import Away, Printer
from slinkytui.completion import script, words
from slinkytui.kinds import KINDS
from slinkytui.kinds.base import Context
from slinkytui.kinds.render import as_object, inert
from slinkytui.labels import compile_selector
from tests.lab.programs import program

CTX = Context(1_800_000_000, Store())
ROOT = Path(__file__).parents[2]


def node(name: str, state: str = "IDLE", reason: str = "") -> FleetNode:
    return FleetNode(NodeId("c", name), SlurmNode(NodeId("c", name), (state,), reason=reason), gpus_total=0, jobs=())


class Nothing:
    """Tables that must not be looked at."""

    def rows(self, table: Table) -> Mapping[Any, Any]:
        raise AssertionError(f"looks into {table}")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("pods", {Table.PODS}),
        ("jobs -f nodes>1", {Table.JOBS}),
        ("nodes -f state~drain -o name", MADE_OF[Table.NODES]),
        ("nodes -f gpus>0 -o name --sort reason", MADE_OF[Table.NODES]),
        ("nodes -f jobs>0 -o name", MADE_OF[Table.NODES] | {Table.JOBS}),
        ("nodes -f drain -o name", MADE_OF[Table.NODES] | {Table.JOBS}),
        ("nodes -o name --sort=-jobs", MADE_OF[Table.NODES] | {Table.JOBS}),
        ("nodes", MADE_OF[Table.NODES] | {Table.JOBS}),
        ("nodes -o json -f state=idle", MADE_OF[Table.NODES] | {Table.JOBS}),
        ("gpus -o name", MADE_OF[Table.GPUS]),
        ("journal", {Table.JOURNAL}),
    ],
)
def test_a_question_reads_what_it_is_about(text: str, reads: set[Table]) -> None:
    assert query_of(asked(text)).reads == reads


def test_rows_of_kubernetes_are_printed_without_slurm() -> None:
    """`get` does not wait for Slurm when it prints them."""
    rows: dict[str, Any] = {
        "pods": Pod(Key("a", "b"), Meta()), "kubenodes": KubeNode(Key("", "n"), Meta()),
        "controllers": Controller(Key("a", "c"), Meta()), "restapis": RestApi(Key("a", "r"), Meta(), Key("a", "c")),
    }  # fmt: skip
    for kind in (KINDS[name] for name in rows):
        assert not {Table.NODES, Table.JOBS} & query_of(asked(kind.id)).reads
        assert as_object(rows[kind.id], kind, Context(0, Nothing()))


def asked(text: str) -> argparse.Namespace:
    return parsed(["get", *text.split()])


def printed(text: str, steps: Sequence[tuple[str, FleetNode | None]], start: list[FleetNode]) -> list[str]:
    out: list[str] = []
    printer = Printer(query_of(asked(text)), out.append)
    printer.start(start, CTX)
    for name, row in steps:
        printer.take(NodeId("c", name), row, CTX)
    return "".join(out).splitlines()


def test_a_table_that_is_watched_prints_changed_rows_only() -> None:
    steps = [("a", node("a")), ("a", node("a", "DRAIN", "xid")), ("b", node("b")), ("a", None), ("z", None)]
    lines = printed("nodes -w", steps, [node("a")])
    assert [line.split()[0] for line in lines] == ["NODE", "a", "a", "b", "a"]
    assert lines[2].endswith("xid") and lines[4].endswith("(gone)")


def test_json_that_is_watched_is_one_row_a_line_with_its_event() -> None:
    steps = [("a", node("a", "DOWN")), ("a", node("a", "DOWN")), ("b", node("b")), ("a", None)]
    rows = [json.loads(line) for line in printed("nodes -w -o json", steps, [node("a")])]
    assert [(r["name"], r["event"]) for r in rows] == [("a", "added"), ("a", "changed"), ("b", "added"), ("a", "gone")]
    assert set(rows[0]) - {"event"} == {c.field for c in (*KINDS["nodes"].columns, *KINDS["nodes"].extra) if c.json}
    assert all("event" not in k.fields for k in KINDS.values())


def test_a_row_that_leaves_the_filter_is_gone() -> None:
    steps = [("a", node("a", "DOWN")), ("b", node("b", "DOWN"))]
    rows = [json.loads(line) for line in printed("nodes -w -o json -f state=idle", steps, [node("a")])]
    assert [(r["name"], r["event"]) for r in rows] == [("a", "added"), ("a", "gone")]


def test_a_name_is_watched_alone() -> None:
    assert printed("node/b -w -o name", [("a", node("a")), ("b", node("b"))], []) == ["node/b"]


def test_a_server_that_is_away_is_told_once_and_once_when_it_is_back() -> None:
    said: list[str] = []
    away = Away(said.append)
    for state in ("live", "stale", "stale", "live", "live"):
        away.tell([Source("slurm/c/nodes", state, error="refused")])
    assert len(said) == 2 and "no answer" in said[0] and said[1] == "slurm/c/nodes is back"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", "abc"), ("app=x", "a"), ("app==x", "a"), ("app!=x", "bc"), ("app", "ab"), ("!app", "c"), ("app in (x, y)", "ab"),
        ("app notin (x)", "bc"), ("app in (x,y),tier=db", "b"), ("k8s.io/name=n-1", "c"),
    ],
)  # fmt: skip
def test_selectors(text: str, chosen: str) -> None:
    labels = {"a": {"app": "x"}, "b": {"app": "y", "tier": "db"}, "c": {"k8s.io/name": "n-1"}}
    test = compile_selector(text)
    assert "".join(k for k, v in labels.items() if test(v)) == chosen


@pytest.mark.parametrize("text", ["a=b=c", "=x", "a in x", "a in (b", "a,,b", "a<3", "a b"])
def test_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError):
        compile_selector(text)


def test_names_are_exact_and_an_array_is_its_tasks() -> None:
    jobs = [
        Job(JobId("c", 7, 1), 8, ("RUNNING",)),
        Job(JobId("c", 7, 2), 9, ("RUNNING",)),
        Job(JobId("c", 70), 70, ("RUNNING",)),
    ]
    kind = KINDS["jobs"]
    assert [str(r.id) for r in named(jobs, "7", kind)] == ["7_1", "7_2"]
    assert [str(r.id) for r in named(jobs, "7_2", kind)] == ["7_2"]
    assert [str(r.id) for r in named(jobs, "70", kind)] == ["70"]
    with pytest.raises(NotFound) as missing:
        named([node("gpu-1"), node("gpu-2")], "gpu-11", KINDS["nodes"])
    assert "did you mean gpu-1?" in missing.value.line()


EVIL = "a\x1b]52;c;aGk=\x07 \x1b[31m \u202egnp \x9b2J \u2066x"


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "csv", "name"])
def test_what_is_printed_is_inert_and_json_and_yaml_keep_the_value(output: str) -> None:
    import yaml

    from slinkytui.commands_get import render

    row = node("n\x1b]8;;x", "DRAIN", EVIL)
    text = render([row], query_of(asked(f"nodes -o {output}")), CTX)
    assert text.replace("\n", "").isprintable()
    if output in ("json", "yaml"):
        (found,) = json.loads(text) if output == "json" else yaml.safe_load(text)
        assert (found["reason"], found["name"]) == (EVIL, "n\x1b]8;;x")


@given(st.text(max_size=40))
def test_json_stays_the_same_json(text: str) -> None:
    held = json.dumps([text], ensure_ascii=False)
    assert json.loads(inert(held, "json")) == [text]


@settings(max_examples=200)
@given(st.data())
def test_no_order_of_arguments_turns_a_simulated_command_into_a_real_one(data: st.DataObject) -> None:
    pieces: list[list[str]] = [
        ["--sim", *data.draw(st.sampled_from([[], ["small"], ["huge"], ["nodes"]]))], ["get"], ["nodes"], ["x"],
        ["-n", "--sim"], ["-f", "state=idle"], ["--sort", "--sim"], ["-o", "json"], ["-A"], ["--", "-w"], ["--timeout", "3"],
    ]  # fmt: skip
    chosen = [pieces[0], *data.draw(st.lists(st.sampled_from(pieces[1:]), unique_by=tuple, max_size=8))]
    argv = [w for piece in data.draw(st.permutations(chosen)) for w in piece]
    try:
        found = parsed(argv)
    except SystemExit as refused:
        assert refused.code == 2
    else:
        assert found.sim and not found.slurm and not found.kubeconfig and not found.context


def test_following_ends_with_130_when_interrupted() -> None:
    command = [sys.executable, "-m", "slinkytui", "--sim", "small", "get", "nodes", "-w", "-o", "name"]
    with program(command) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("node/")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")


def test_a_reader_that_leaves_is_no_error() -> None:
    into, out = os.pipe()
    os.close(into)
    command = [sys.executable, "-m", "slinkytui", "--sim", "small", "get", "jobs"]
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(out)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_tells_what_was_found_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sim", "small", "doctor", "-o", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    by_name = {(f["about"], f["name"]): f for f in found}
    assert by_name["Slurm sim_small", "found"]["text"] == "RestApi slurm/slurm, through the API server's service proxy"
    assert "JWT key" in by_name["Slurm sim_small", "token"]["text"]
    assert by_name["rights", "create pods/eviction"]["text"] == "yes"
    assert by_name["verbs in Slurm sim_small", "node.drain"]["text"] == "yes"
    assert by_name["verbs in namespace slurm", "nodeset.scale"]["text"] == "yes"
    assert by_name["sources", "kubernetes/pods"]["text"].startswith("live")
    assert main(["--sim", "--read-only", "doctor"]) == 0
    assert re.search(r"! nodeset.scale +started with --read-only", capsys.readouterr().out)
    assert main(["--kubeconfig", "/no/such/file", "doctor"]) == 4
    assert "✗ engine" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_kinds_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    from slinkytui.cli import parser

    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert text == script(shell, parser())
    for word in ("doctor", "nodesets", "node.drain"):
        assert word in text
    assert {"--watch", "--selector", "--sim"} <= set(words(parser())["get"])


def test_the_page_of_get_lists_every_key_of_every_kind() -> None:
    page = (ROOT / "docs" / "get.md").read_text(encoding="utf-8")
    assert page.partition("## JSON keys\n")[2] == json_keys()


def json_keys() -> str:
    """The generated part of docs/get.md; `python -m tests.cli.test_get` prints it."""
    lines = ["\nGenerated from the kinds. A key that is here stays.\n"]
    for kind in KINDS.values():
        keys = " ".join(f"`{c.field}`" for c in (*kind.columns, *kind.extra) if c.json)
        words = ", ".join((kind.singular, *kind.aliases))
        lines.append(f"**{kind.id}** ({words}): {keys}\n")
    return "\n".join(lines)


if __name__ == "__main__":
    print(json_keys(), end="")
