"""Ways in: which kubeconfig entry wins, and what a plugin's failure looks like."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from slinkytui.backend.errors import ConfigError, SlinkyError
from slinkytui.backend.kube.access import TokenFile, load


def kubeconfig(folder: Path, name: str, user: dict[str, Any], *, server: str = "http://one", context: str = "c") -> str:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": context,
        "clusters": [{"name": "k", "cluster": {"server": server}}], "users": [{"name": "u", "user": user}],
        "contexts": [{"name": context, "context": {"cluster": "k", "user": "u", "namespace": "slurm"}}],
    }  # fmt: skip
    (folder / name).write_text(json.dumps(config))
    return str(folder / name)


@pytest.mark.parametrize(
    ("user", "want"),
    [({"token": "t"}, "Bearer t"), ({"username": "a", "password": "b"}, "Basic YTpi"), ({}, "")],
)
async def test_what_is_sent(tmp_path: Path, user: dict[str, Any], want: str) -> None:
    access = load(kubeconfig(tmp_path, "one", user))
    assert await access.credentials.header() == want
    assert (access.server, access.namespace, access.context) == ("http://one", "slurm", "c")


async def test_the_first_file_wins(tmp_path: Path) -> None:
    one = kubeconfig(tmp_path, "one", {"token": "1"})
    two = kubeconfig(tmp_path, "two", {"token": "2"}, server="http://two", context="d")
    merged = load(os.pathsep.join([one, two]))
    assert (merged.server, merged.context, merged.contexts) == ("http://one", "c", ("c", "d"))


@pytest.mark.parametrize("context", ["nope"])
def test_a_context_that_is_not_there_names_the_others(tmp_path: Path, context: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(kubeconfig(tmp_path, "one", {}), context)
    assert "contexts: c" in error.value.line()


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    tokens = TokenFile(str(file))
    assert await tokens.header() == "Bearer old"
    (tmp_path / "fresh").write_text("new\n")
    (tmp_path / "fresh").rename(file)
    assert await tokens.header() == "Bearer new"


def plugin(folder: Path, script: str) -> dict[str, Any]:
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(file), "interactiveMode": "Never"}}


async def test_a_plugin_is_asked_again_after_a_refusal(tmp_path: Path) -> None:
    answer = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t%s"}}'
    script = f"echo x >> {tmp_path}/runs; printf '{answer}' $(wc -l < {tmp_path}/runs)"
    access = load(kubeconfig(tmp_path, "one", plugin(tmp_path, script)))
    assert await access.credentials.header() == await access.credentials.header() == "Bearer t1"
    await access.credentials.refused()
    assert await access.credentials.header() == "Bearer t2"


async def test_a_plugin_that_fails_says_so(tmp_path: Path) -> None:
    access = load(kubeconfig(tmp_path, "one", plugin(tmp_path, "echo no session >&2; exit 3")))
    with pytest.raises(SlinkyError) as error:
        await access.credentials.header()
    assert "context c" in error.value.line()
