"""The daemon as a process at a simulated cluster: what it serves, that one of two works, and plans that are kept to the letter."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

LEASE_S = 15
"""How long a lease is good for that is not renewed."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(done: Callable[[], object], seconds: float, what: Callable[[], str]) -> float:
    """Seconds that it took; the last look is told where it does not come."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > seconds:
            pytest.fail(f"not within {seconds:g} s: {what()}")
        time.sleep(0.1)
    return time.monotonic() - began


class Daemon:
    def __init__(self, config: Path, space: Path, name: str, *more: str) -> None:
        self.port, self._log = free_port(), space / f"{name}.log"
        self.socket = space / f"{name}.sock"
        command = [
            sys.executable, "-m", "slinkytui", "--daemon", "--kubeconfig", str(config), "--health", f"127.0.0.1:{self.port}",
            "--metrics", f"127.0.0.1:{self.port}", "--socket", str(self.socket), *more,
        ]  # fmt: skip
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def get(self, path: str) -> tuple[int, str]:
        try:
            found = httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=2)
        except httpx.TransportError as error:
            return 0, repr(error)
        return found.status_code, found.text

    def ready(self) -> str:
        status, text = self.get("/readyz")
        return text if status == 200 else ""

    def log(self) -> str:
        return self._log.read_text()[-3000:]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(10)


class Cluster:
    """A simulator of its own, and commands at it."""

    def __init__(self, config: Path, space: Path) -> None:
        self.config, self.space = config, space
        self._daemons: list[Daemon] = []

    def daemon(self, name: str, *more: str) -> Daemon:
        found = Daemon(self.config, self.space, name, *more)
        self._daemons.append(found)
        return found

    def end(self) -> None:
        for one in self._daemons:
            one.end()

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "slinkytui", "--kubeconfig", str(self.config), *words], capture_output=True, text=True,
            timeout=60, check=False, env={**os.environ, "HOME": str(self.space)},
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def rows(self, kind: str, *more: str) -> list[dict[str, Any]]:
        return list(json.loads(self.run("get", kind, "-o", "json", *more)))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    config = tmp_path / "config"
    words = ["-m", "slinkytui.backend.sim", "small", "--write-kubeconfig", str(config), "--with-parent"]
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        assert json.loads(server.stdout.readline())["scenario"] == "small"
        found = Cluster(config, tmp_path)
        try:
            yield found
        finally:
            found.end()
            server.stdin.close()
            assert server.wait(10) == 0


def test_what_it_serves_and_how_it_ends(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    until(lambda: one.ready().startswith("ok (leading"), 30, one.log)
    assert one.get("/healthz") == (200, "ok")
    metrics = one.get("/metrics")[1]
    for name in (
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "controller_runtime_reconcile_total",
    ):
        assert f'\n{name}{{controller="nodeset-controller"' in metrics, metrics
    assert one.socket.stat().st_mode & 0o077 == 0
    began = time.monotonic()
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(10) == 0, one.log()
    assert time.monotonic() - began < 10
    assert not one.socket.exists()
    lines = [json.loads(line) for line in one.log().splitlines()[1:]]
    assert lines[-1]["message"] == "ended" and {"time", "level", "logger"} <= set(lines[-1])


def test_one_of_two_works_and_the_other_takes_over(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    until(lambda: one.ready().startswith("ok (leading"), 30, one.log)
    two = cluster.daemon("two")
    until(lambda: two.ready().startswith("ok (following"), 30, two.log)
    assert "held by" in two.ready()
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(10) == 0
    # A lease that is given up is taken at once.
    until(lambda: two.ready().startswith("ok (leading"), 6, two.log)
    three = cluster.daemon("three")
    until(lambda: three.ready().startswith("ok (following"), 30, three.log)
    # One that stands still loses the lease, and does not write when it wakes.
    two.process.send_signal(signal.SIGSTOP)
    until(lambda: three.ready().startswith("ok (leading"), LEASE_S + 6, three.log)
    two.process.send_signal(signal.SIGCONT)
    until(lambda: two.process.poll() is not None or two.ready().startswith("ok (following"), 20, two.log)
    assert three.ready().startswith("ok (leading")
    three.process.kill()
    three.process.wait(10)
    # One that was killed gives nothing up: the lease runs out.
    until(lambda: two.ready().startswith("ok (leading"), LEASE_S + 6, two.log)


def test_a_scale_in_is_planned_and_carried_out_to_the_letter(cluster: Cluster) -> None:
    one = cluster.daemon("one")
    until(lambda: one.ready().startswith("ok (leading"), 30, one.log)
    ask = ("do", "nodeset.scale", "h100", "--set", "replicas=6")
    plan = json.loads(cluster.run(*ask, "--plan", "-o", "json"))["plan"]
    chosen = [row["cells"][0] for row in plan["rows"]]
    assert len(chosen) == 2 and plan["blast"]["jobs_killed"] == 0
    assert plan["headers"] == ["POD", "NODE", "STATE", "JOBS"]
    # Another plan's hash: nothing is done.
    assert "plan" in cluster.run(*ask, "--yes", "--if-plan", "000000000000", code=5)
    # The world changes between plan and act: a person prefers another pod to go.
    others = [r["name"] for r in cluster.rows("pods", "-f", "name~^h100") if r["name"] not in chosen]
    patch = {"metadata": {"annotations": {"nodeset.slinky.slurm.net/pod-deletion-cost": "-100"}}}
    annotate(cluster.config, others[0], patch)
    until(lambda: planned(cluster, ask) != chosen, 10, lambda: str(planned(cluster, ask)))
    assert "plan" in cluster.run(*ask, "--yes", "--if-plan", plan["hash"], code=5)
    assert {r["name"] for r in cluster.rows("pods", "-f", "name~^h100")} >= set(chosen)
    fresh = json.loads(cluster.run(*ask, "--plan", "-o", "json"))["plan"]
    leaving = [row["cells"][0] for row in fresh["rows"]]
    assert others[0] in leaving
    cluster.run(*ask, "--yes", "--if-plan", fresh["hash"])
    stay = {r["name"] for r in cluster.rows("pods", "-f", "name~^h100")} - set(leaving)
    time.sleep(3)
    there = {r["name"] for r in cluster.rows("pods", "-f", "name~^h100")}
    assert there >= stay
    held = cluster.run("explain", "nodeset/h100")
    assert all(name in held for name in there & set(leaving)), held
    assert not any(f"{name}: scale-in" in held for name in stay), held


def planned(cluster: Cluster, ask: tuple[str, ...]) -> list[str]:
    found = json.loads(cluster.run(*ask, "--plan", "-o", "json"))["plan"]
    return [row["cells"][0] for row in found["rows"]]


def annotate(config: Path, pod: str, patch: dict[str, Any]) -> None:
    found = yaml.safe_load(config.read_text())
    server, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(server["certificate-authority-data"]).decode())
    answer = httpx.patch(
        f"{server['server']}/api/v1/namespaces/slurm/pods/{pod}", content=json.dumps(patch), verify=trusted,
        headers={"authorization": f"Bearer {user['token']}", "content-type": "application/merge-patch+json"},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
