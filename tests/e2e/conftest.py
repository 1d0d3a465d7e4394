"""A simulator in a process of its own, and the stock kubectl at it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.lab.kube import KubeLab, start_or_skip
from tests.lab.kube.binaries import missing, path


@dataclass(frozen=True)
class Kubectl:
    """`space` is where it starts from; files that `put` writes are there."""

    config: Path
    space: Path

    def __call__(self, *words: str, stdin: str = "", code: int = 0, timeout: float = 30) -> str:
        """What it prints, errors last. Any other exit code than `code` fails the test."""
        done = subprocess.run(
            [str(path("kubectl")), "--kubeconfig", str(self.config), "--cache-dir", str(self.space / "cache"), *words],
            input=stdin, capture_output=True, text=True, timeout=timeout, check=False, cwd=self.space,
        )  # fmt: skip
        assert done.returncode == code, f"kubectl {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def rows(self, *words: str) -> list[list[str]]:
        """A printed table as words; a cell with blanks in it is more than one."""
        return [line.split() for line in self(*words).splitlines()]

    def put(self, *found: dict[str, object]) -> str:
        """A manifest's file."""
        at = self.space / "manifest.yaml"
        at.write_text(yaml.safe_dump_all(found), encoding="utf-8")
        return str(at)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """One that keeps running, such as a watch."""
        return subprocess.Popen(
            [str(path("kubectl")), "--kubeconfig", str(self.config), "--cache-dir", str(self.space / "cache"), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.space,
        )  # fmt: skip


@pytest.fixture(scope="session")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """At scenario `small`, whose time runs five times as fast."""
    why = missing()
    if why:
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
    space = tmp_path_factory.mktemp("kubectl")
    config = space / "config"
    words = ["-m", "slinkytui.backend.sim", "small", "--speed", "5", "--write-kubeconfig", str(config), "--with-parent"]
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        assert json.loads(server.stdout.readline())["scenario"] == "small"
        yield Kubectl(config, space)
        # It ends with its stdin.
        server.stdin.close()
        assert server.wait(10) == 0


@pytest.fixture(scope="session")
def lab() -> Iterator[KubeLab]:
    """A real control plane with what the cases at both servers count on."""
    found = start_or_skip(kcm=True)
    try:
        found.namespace("slurm")
        spec = {"controllerRef": {"name": "slurm"}, "replicas": 4, "slurmd": {"image": "slurmd:26.05"}}
        body = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "a100"}, "spec": spec}
        found.post("/apis/slinky.slurm.net/v1beta1/namespaces/slurm/nodesets", body)
        at = "/apis/slinky.slurm.net/v1beta1/namespaces/slurm/nodesets/a100/status"
        status = {"selector": "", "nodeSetHash": ""}
        found.request("PATCH", at, {"status": status}, "application/merge-patch+json")
        yield found
    finally:
        found.stop()


@pytest.fixture(params=["sim", "real"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Kubectl:
    """At the simulator and at a real server: for cases that need no kubelet."""
    if request.param == "sim":
        found: Kubectl = request.getfixturevalue("kubectl")
        return found
    lab: KubeLab = request.getfixturevalue("lab")
    config = json.loads(lab.kubeconfig.read_text(encoding="utf-8"))
    for context in config["contexts"]:
        context["context"]["namespace"] = "slurm"
    (tmp_path / "config").write_text(json.dumps(config), encoding="utf-8")
    return Kubectl(tmp_path / "config", tmp_path)
