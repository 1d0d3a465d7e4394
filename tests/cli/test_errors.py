"""One table of what can go wrong: the arguments, the exit code, and what the one line on stderr says."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest

from slinkytui.cli import main
from tests.cli.servers import answering, certificate, closed, kubeconfig, silent

REFUSED: Any = {"meta": {}, "errors": [{"description": "Authentication failure", "error_number": 1007, "error": "x"}]}
FORBIDDEN = {
    "kind": "Status",
    "status": "Failure",
    "message": "pods is forbidden: no",
    "reason": "Forbidden",
    "code": 403,
}


class Case(NamedTuple):
    """`argv` may name {places}; `says` are the parts of the line."""

    name: str
    argv: str
    code: int
    says: tuple[str, ...]


CASES = [
    Case("unknown command", "gett nodes", 2, ("gett", "did you mean get?")),
    Case("unknown option", "get nodes --slrum x", 2, ("--slrum", "did you mean --slurm?")),
    Case("option without value", "get nodes --kubeconfig", 2, ("--kubeconfig", "expected one argument")),
    Case("no kind", "get", 2, ("KIND",)),
    Case("unknown kind", "get nodess", 2, ("no kind 'nodess'", "did you mean nodes?")),
    Case("unknown kind of a name", "get nod/x", 2, ("no kind 'nod'",)),
    Case("two names", "get node/a b", 2, ("one name",)),
    Case("unknown output", "get nodes -o xml", 2, ("xml", "json")),
    Case("unknown sort field", "get nodes --sort stat", 2, ("no field 'stat'", "did you mean state?")),
    Case("unknown filter field", "get nodes -f stat=idle", 2, ("no field 'stat'", "did you mean state?")),
    Case("filter that cannot be read", "get nodes -f (state=idle", 2, ("not closed",)),
    Case("labels of Slurm rows", "get jobs -l a=b", 2, ("-l is for labels",)),
    Case("selector that cannot be read", "get pods -l a=b=c", 2, ("cannot read 'a=b=c'",)),
    Case("watch as CSV", "get nodes -w -o csv", 2, ("-w does not go with -o csv",)),
    Case("verb without plan or yes", "do node.drain gpu-1", 2, ("--plan --yes",)),
    Case("plan and yes", "do node.drain gpu-1 --plan --yes", 2, ("not allowed with",)),
    Case("if-plan without yes", "do node.drain gpu-1 --plan --if-plan x", 2, ("--if-plan goes with --yes",)),
    Case("setting without value", "do nodeset.scale gpu --plan --set replicas", 2, ("KEY=VALUE", "replicas")),
    Case("unknown verb", "do node.drian gpu-1 --plan", 2, ("no verb 'node.drian'", "did you mean node.drain?")),
    Case("simulated and real", "--sim --slurm http://x get nodes", 2, ("exclude each other",)),
    Case("speed that is none", "--sim --sim-speed fast get nodes", 2, ("wants a number",)),
    Case("timeout that is none", "get nodes --timeout -1", 2, ("must be greater than 0",)),
    Case("unknown theme", "--theme dusk", 2, ("dusk", "dark")),
    Case("address that is none", "--slurm host:6820 --token-file {token} get nodes", 2, ("is no address of slurmrestd",)),
    Case("no kubeconfig", "--kubeconfig {folder}/none get nodes", 2, ("no kubeconfig at", "none")),
    Case("kubeconfig that is no YAML", "--kubeconfig {broken} get nodes", 2, ("cannot be read", "broken")),
    Case("kubeconfig that is a list", "--kubeconfig {list} get nodes", 2, ("is no kubeconfig",)),
    Case("no such context", "--kubeconfig {kube_closed} --context x get nodes", 2, ("no context 'x'", "contexts: c")),
    Case("no token", "--slurm {closed} get nodes", 2, ("no Slurm token", "--token-file")),
    Case("token file missing", "--slurm {closed} --token-file {folder}/none get nodes", 2, ("token file", "cannot be read")),
    Case("token file is a folder", "--slurm {closed} --token-file {folder} get nodes", 2, ("token file", "cannot be read")),
    Case("token file empty", "--slurm {closed} --token-file {empty} get nodes", 2, ("token file", "is empty")),
    Case("CA file missing", "--slurm {closed} --token-file {token} --ca-file {folder}/none get nodes", 2, ("CA file",)),
    Case("Slurm closed", "--slurm {closed} --token-file {token} get nodes", 4, ("no answer", "{closed}")),
    Case("Slurm unknown host", "--slurm http://no.such.host.invalid:1 --token-file {token} get nodes", 4,
         ("no answer", "no.such.host.invalid")),
    Case("Slurm certificate", "--slurm {foreign} --token-file {token} get nodes", 4, ("no answer", "certificate")),
    Case("Slurm silent", "--slurm {silent} --token-file {token} --timeout 0.5 get nodes", 4, ("no answer in time", "{silent}")),
    Case("not Slurm", "--slurm {page} --token-file {token} get nodes", 4, ("no answer",)),
    Case("Slurm refuses", "--slurm {refusing} --token-file {token} get nodes", 6, ("refuse", "Authentication failure")),
    Case("token ended", "--slurm {refusing} --token-file {ended} get nodes", 6, ("the token ended", "ago")),
    Case("plan without Slurm", "--slurm {closed} --token-file {token} do node.drain a --reason x --plan", 4, ("no answer",)),
    Case("Kubernetes closed", "--kubeconfig {kube_closed} get pods", 4, ("no answer", "API server")),
    Case("Kubernetes closed, Slurm asked", "--kubeconfig {kube_closed} get nodes", 4, ("no answer", "API server")),
    Case("Kubernetes certificate", "--kubeconfig {kube_foreign} get pods", 4, ("no answer", "certificate")),
    Case("Kubernetes silent", "--kubeconfig {kube_silent} --timeout 0.5 get pods", 4, ("no answer in time", "kubernetes/", "{silent}")),
    Case("pods, while only Slurm is silent", "--kubeconfig {kube_403} --slurm {silent} --token-file {token} --timeout 5 get pods", 6,
         ("pods is forbidden",)),
    Case("Kubernetes 401", "--kubeconfig {kube_401} get pods", 6, ("not allowed", "credentials were refused")),
    Case("Kubernetes 403", "--kubeconfig {kube_403} get pods", 6, ("not allowed", "pods is forbidden")),
    Case("403 of a resource that is optional", "--kubeconfig {kube_403} get accountings", 6, ("not allowed",)),
    Case("pods without Kubernetes", "--slurm {refusing} --token-file {token} get pods", 2, ("come from Kubernetes",)),
    Case("console without a terminal", "--sim", 2, ("needs a terminal",)),
]  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("errors")
    files = {"broken": "a: [", "list": "- a\n", "empty": "\n", "token": "abc"}
    files["ended"] = jwt.encode({"exp": int(time.time()) - 7200, "sun": "alice"}, "k" * 32, algorithm="HS256")
    for name, text in files.items():
        (folder / name).write_text(text)
    foreign = certificate(folder)
    with (
        answering(401, REFUSED) as refusing, answering(200, b"<html>hello</html>") as page, silent() as mute,
        answering(200, {}, tls=foreign) as tls, answering(401, {"message": "Unauthorized"}) as k401,
        answering(403, FORBIDDEN) as k403,
    ):  # fmt: skip
        nobody = closed()
        yield {
            "folder": str(folder), **{n: str(folder / n) for n in files}, "closed": nobody, "refusing": refusing,
            "page": page, "silent": mute, "foreign": tls,
            "kube_closed": kubeconfig(folder / "kc", nobody), "kube_foreign": kubeconfig(folder / "kf", tls),
            "kube_silent": kubeconfig(folder / "ks", mute), "kube_401": kubeconfig(folder / "k401", k401),
            "kube_403": kubeconfig(folder / "k403", k403),
        }  # fmt: skip


def run(argv: list[str]) -> int:
    try:
        return main(argv)
    except SystemExit as left:
        return int(left.code or 0)


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_an_error_is_a_code_and_one_line(
    case: Case, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([word.format(**places) for word in case.argv.split()])
    out, err = capsys.readouterr()
    assert (code, out) == (case.code, ""), err
    assert err.startswith("slinkytui: ") and err.count("\n") == 1, err
    assert "Traceback" not in err
    for part in case.says:
        assert part.format(**places) in err


SIMULATED = [
    Case("no such node", "get node/h100-99", 3, ("node h100-99 not found", "did you mean h100-")),
    Case("no such target", "do node.drain nowhere --reason x --plan", 3, ("node nowhere not found",)),
    Case(
        "plan that is stale", "do node.drain h100-0 --reason x --yes --if-plan 000000000000", 5, ("the plan is", "now")
    ),
    Case("read only", "--read-only do node.drain h100-0 --reason x --yes", 6, ("--read-only",)),
]


@pytest.mark.parametrize("case", SIMULATED, ids=[c.name for c in SIMULATED])
def test_an_error_of_a_cluster_that_answers(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["--sim", "small", *case.argv.split()])
    out, err = capsys.readouterr()
    assert (code, out) == (case.code, ""), err
    assert err.startswith("slinkytui: ") and err.count("\n") == 1, err
    for part in case.says:
        assert part in err


def test_an_internal_error_is_one_line_and_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*_: object) -> int:
        raise KeyError("boom\x1b[2J")

    monkeypatch.setattr("slinkytui.commands_get.run_get", broken)
    assert run(["get", "nodes"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("slinkytui: internal error: KeyError") and err.count("\n") == 1 and "\x1b" not in err
    (log,) = tmp_path.rglob("internal-errors.log")
    assert "Traceback" in log.read_text() and str(log) in err
    assert run(["-v", "get", "nodes"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_server_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = {"kind": "Status", "message": "no\x1b]52;c;aGk=\x07\u202e\x9b2J", "reason": "Forbidden", "code": 403}
    with answering(403, evil) as url:
        assert run(["--kubeconfig", kubeconfig(tmp_path / "kc", url), "get", "pods"]) == 6
    err = capsys.readouterr().err
    assert "no ]52" in err and err.strip().isprintable()


def test_output_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "slinkytui", "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "slinkytui: cannot write the output: No space left on device\n")
