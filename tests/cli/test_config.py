"""Settings: file < environment < flags, and errors that name the file, the key and the nearest valid one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from slinkytui.cli import main, settings
from slinkytui.config import FIELDS, apply
from slinkytui.settings import Config


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mine.toml"
    monkeypatch.setenv("SLINKYTUI_CONFIG", str(path))
    return path


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, tuple[object, str]]:
    assert main([*argv, "config", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["settings"]
    return {k: (v["value"], v["from"]) for k, v in found.items()}


def test_nothing_set_is_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys)
    assert set(found) == set(FIELDS) == set(Config.model_fields)
    assert {k: v for k, (v, _) in found.items()} == Config().model_dump()
    assert {place for _, place in found.values()} == {"default"}


def test_flags_beat_the_environment_beats_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('theme = "light"\nnamespace = "a"\nplain = true\n[keys]\n"node.drain" = "ctrl+d,x"\n')
    monkeypatch.setenv("SLINKYTUI_NAMESPACE", "b")
    monkeypatch.setenv("SLINKYTUI_THEME", "safe")
    found = shown(capsys, "-n", "c")
    assert found["namespace"] == ("c", "command line")
    assert found["theme"] == ("safe", "SLINKYTUI_THEME")
    assert found["plain"] == (True, str(file))
    assert found["keys"] == ({"node.drain": "ctrl+d,x"}, str(file))
    assert shown(capsys, "-A")["namespace"] == ("", "command line")
    assert main(["config"]) == 0
    text = capsys.readouterr().out
    assert 'theme = "safe"' in text and "# SLINKYTUI_THEME" in text and 'keys."node.drain" = "ctrl+d,x"' in text


def test_the_settings_reach_the_commands(file: Path) -> None:
    file.write_text(
        'read_only = true\nscreen = "jobs"\ncontext = "prod"\nnamespace = "a"\n[columns]\nnodes = ["name", "state"]\n'
    )
    args = settings(["get", "nodes"])
    apply(args)
    assert (args.read_only, args.screen, args.context, args.columns) == (
        True,
        "jobs",
        "prod",
        {"nodes": ["name", "state"]},
    )
    simulated = settings(["--sim", "get", "nodes"])
    apply(simulated)
    assert (simulated.sim, simulated.context, simulated.namespace) == ("small", "", "")


def test_chosen_columns_are_the_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[columns]\nnodes = ["state", "name"]\n')
    assert main(["--sim", "get", "nodes"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["STATE", "NODE"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('them = "dark"', ("'them'", "did you mean theme?")),
        ('theme = "dusk"', ("theme", "'dusk'", "'safe'")),
        ('plain = "perhaps"', ("plain", "'perhaps'")),
        ("read_only = [1]", ("read_only",)),
        ('screen = "nodess"', ("screen", "did you mean nodes?")),
        ('[columns]\nnode = ["name"]', ("columns", "'node'", "did you mean nodes?")),
        ('[columns]\nnodes = ["nam"]', ("columns.nodes", "'nam'", "did you mean name?")),
        ("[keys]\nx = 3", ("keys.x",)),
        ('[keys]\n"node.drian" = "x"', ("keys", "'node.drian'", "did you mean node.drain?")),
        ("theme = dark", ("cannot be read", "line 1")),
    ],
)
def test_a_mistake_names_file_key_and_what_is_valid(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, says: tuple[str, ...]
) -> None:
    file.write_text(text)
    assert main(["config"]) == 2
    err = capsys.readouterr().err
    assert str(file) in err and err.count("\n") == 1
    for part in says:
        assert part in err


def test_every_key_is_listed_as_the_file_would_have_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[keys]\n"node.drain" = "ctrl+d"\n')
    assert main(["config", "--list-keys"]) == 0
    found = tomllib.loads("[keys]\n" + capsys.readouterr().out)["keys"]
    assert found["node.drain"] == "ctrl+d" and found["view.help"] == "question_mark" and len(found) > 30


def test_a_mistake_in_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SLINKYTUI_PLAIN", "perhaps")
    assert main(["config"]) == 2
    assert "the environment: plain" in capsys.readouterr().err


def test_a_named_file_must_be_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "nodes", "--sim"]) == 2
    assert f"no settings file {file}" in capsys.readouterr().err


def test_the_page_of_settings_has_every_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")
    for name, field in Config.model_fields.items():
        assert f"| `{name}` | {field.description}" in page
