"""What `doctor` makes of tokens, clocks and ages; and against servers that do not answer."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest

from slinkytui.backend.clusters import Link
from slinkytui.backend.models import Key, Source
from slinkytui.backend.options import Options
from slinkytui.cli import main
from slinkytui.commands_doctor import Finding, freshness, report, skew, token_finding
from tests.cli.servers import answering, closed, kubeconfig

NOW = 1_800_000_000.0


def token(path: Path, end: float | None) -> str:
    said = {"sun": "alice", **({} if end is None else {"exp": int(end)})}
    path.write_text(jwt.encode(said, "k" * 32, algorithm="HS256"))
    return str(path)


@pytest.mark.parametrize(
    ("end", "state", "says"),
    [
        (NOW + 7200, "ok", "ends in 2h00"), (NOW + 60, "note", "ends in 60s"), (NOW - 3 * 86_400, "bad", "ended 3d ago"),
        (None, "note", "says no end"),
    ],
)  # fmt: skip
def test_a_token_has_a_source_and_an_end(tmp_path: Path, end: float | None, state: str, says: str) -> None:
    path = token(tmp_path / "t", end)
    found = token_finding("Slurm c", Options(token_file=path), Link("", "http://x", ""), NOW)
    assert (found.state, found.text) == (state, f"file {path}, {says}")


def test_a_token_may_come_from_the_environment_or_a_key_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link("", "http://x", "")
    assert token_finding("a", Options(), link, NOW).state == "bad"
    link.controller = Key("slurm", "ctl")
    assert "JWT key of Controller slurm/ctl" in token_finding("a", Options(), link, NOW).text
    monkeypatch.setenv("SLURM_JWT", jwt.encode({"exp": int(NOW) + 3600}, "k" * 32, algorithm="HS256"))
    found = token_finding("a", Options(), link, NOW)
    assert found.text == "SLURM_JWT, ends in 60m" and "ey" not in found.text


def test_clocks() -> None:
    assert skew("a", NOW + 1, NOW).text == "as ours"
    assert skew("a", NOW - 10, NOW) == Finding("a", "clock", "ok", "10s behind ours")
    assert skew("a", NOW + 600, NOW) == Finding("a", "clock", "note", "10m ahead of ours")


def test_ages() -> None:
    assert freshness(Source("s", "live", NOW - 3, rows=5), NOW).text == "live, 3s old, 5 rows"
    stale = freshness(Source("s", "stale", NOW - 90, error="refused"), NOW)
    assert (stale.state, stale.text) == ("bad", "stale, last answer 90s ago: refused")
    assert freshness(Source("s", "refused", error="no"), NOW).text == "refused, never answered: no"
    assert freshness(Source("s", "absent"), NOW).state == "note"


def test_a_report_is_inert() -> None:
    assert report([Finding("a\x1b[2J", "b\x9b", "bad", "c\u202e")]).replace("\n", "").isprintable()


def test_nothing_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = kubeconfig(tmp_path / "kc", closed())
    assert main(["--kubeconfig", config, "doctor", "--timeout", "5"]) == 4
    out = capsys.readouterr().out
    assert "✗ server" in out and "does not answer" in out and "✗ kubernetes/pods" in out and "✗ cluster" in out


def test_slurm_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = token(tmp_path / "t", None)
    body = {"meta": {}, "errors": [{"description": "Authentication failure", "error_number": 1007, "error": "x"}]}
    with answering(401, body) as url:
        assert main(["--slurm", url, "--token-file", path, "doctor"]) == 4
    out = capsys.readouterr().out
    assert "given with --slurm" in out and "✗ answer" in out and "Authentication failure" in out
