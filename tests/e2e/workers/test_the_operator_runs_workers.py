"""Our daemon on a real API server, a real scheduler and a real Slurm; its workers run as processes. No job is killed."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.kube import KubeLab, start_or_skip
from tests.lab.kubelet import Kubelet, need
from tests.lab.slurm import SlurmLab, wait_for
from tests.lab.slurm import missing as slurm_missing
from tests.lab.worker_pods import World

pytestmark = [pytest.mark.slurm, pytest.mark.kube]
SLINKY = "/apis/slinky.slurm.net/v1beta1/namespaces/slurm"
NODES = ("kind-1", "kind-2", "kind-3")
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmLab]:
    if why := slurm_missing():
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
    need()
    lab = SlurmLab.start("26.05", nodes=0, gpus=0)
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def kube(slurm: SlurmLab) -> Iterator[KubeLab]:
    lab = start_or_skip(kcm=True, scheduler=True)
    try:
        lab.namespace("slurm")
        key = base64.b64encode((slurm.folder / "etc/slurm.key").read_bytes()).decode()
        lab.post(
            "/api/v1/namespaces/slurm/secrets", {"metadata": {"name": "slurm-auth-slurm"}, "data": {"slurm.key": key}}
        )
        ref = {"name": "slurm-auth-slurm", "key": "slurm.key"}
        lab.post(f"{SLINKY}/controllers", {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": "slurm"},
            "spec": {"clusterName": slurm.cluster, "slurmKeyRef": ref, "jwtKeyRef": ref},
        })  # fmt: skip
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def kubelet(kube: KubeLab, slurm: SlurmLab) -> Iterator[Kubelet]:
    with Kubelet(kube, NODES, slurm) as running:
        yield running


class Ground(World):
    """The cluster under our daemon. `kill` ends the daemon with SIGKILL and starts it again."""

    def __init__(self, kube: KubeLab, slurm: SlurmLab, folder: Path) -> None:
        super().__init__(kube, slurm)
        self._folder = folder
        self._token = folder / "token"
        self._token.write_text(slurm.token)
        self._daemon: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [
            sys.executable, "-m", "slinkytui", "--daemon", "--kubeconfig", str(self.kube.kubeconfig), "-n", "slurm",
            "--slurm", f"slurm/slurm={self.slurm.url}", "--token-file", str(self._token), "--no-leader-elect",
        ]  # fmt: skip
        with (self._folder / "daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait(10)
        self.start()

    def end(self) -> None:
        assert self._daemon is not None
        self._daemon.send_signal(signal.SIGTERM)
        try:
            assert self._daemon.wait(12) == 0, self.log()
        finally:
            self._daemon.kill()

    def log(self) -> str:
        return (self._folder / "daemon.log").read_text()[-4000:]

    def told(self) -> str:
        """What each side says, for the message of a test that fails."""
        pods = json.loads(self.kube.request("GET", "/api/v1/namespaces/slurm/pods")[1])["items"]
        lines = [
            f"{p['metadata']['name']} {p['metadata'].get('deletionTimestamp', '')} {p['metadata'].get('annotations')} "
            f"{[(c['type'], c['status']) for c in p.get('status', {}).get('conditions', [])]}"
            for p in pods
        ]
        sets = json.loads(self.kube.request("GET", f"{SLINKY}/nodesets")[1])["items"]
        lines += [json.dumps(s.get("status")) for s in sets]
        return "\n".join([*lines, self.slurm.run("scontrol", "-o", "show", "nodes"), self.slurm.run("squeue")])

    def nodeset(self, name: str) -> dict[str, Any]:
        return dict(json.loads(self.kube.request("GET", f"{SLINKY}/nodesets/{name}")[1]))

    def condition(self, name: str, kind: str) -> dict[str, str]:
        found = self.nodeset(name).get("status", {}).get("conditions", [])
        return next((c for c in found if c["type"] == kind), {})

    def change(self, name: str, spec: dict[str, Any]) -> None:
        code, answer = self.kube.request("PATCH", f"{SLINKY}/nodesets/{name}", {"spec": spec}, MERGE)
        assert code == 200, answer

    def make(self, name: str, replicas: int, **spec: Any) -> None:
        self.kube.post(f"{SLINKY}/nodesets", {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": name},
            "spec": {"controllerRef": {"name": "slurm"}, "replicas": replicas, "slurmd": {"image": "slurmd:26.05"},
                     "logfile": {"image": "tail:1"}, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
                     "template": {"spec": {"hostname": f"{name}-", "terminationGracePeriodSeconds": 5}}, **spec},
        })  # fmt: skip

    def pods(self, name: str) -> dict[str, dict[str, Any]]:
        found = json.loads(self.kube.request("GET", "/api/v1/namespaces/slurm/pods")[1])["items"]
        mine = [p for p in found if p["metadata"]["labels"].get("app.kubernetes.io/instance") == name]
        return {p["metadata"]["name"]: p for p in mine}

    def until(self, done: Callable[[], object], seconds: float, what: str) -> float:
        """Seconds that it took."""
        began = time.monotonic()
        try:
            wait_for(done, seconds, what)
        except RuntimeError as error:
            raise AssertionError(f"{error}\n{self.told()}\n{self.log()}") from error
        return time.monotonic() - began

    def run_job(self, node: str, seconds: float) -> int:
        job = self.slurm.run(
            "sbatch", "--parsable", "-p", "all", "-w", node, "--no-requeue", "--chdir", "/tmp", "-o", "/dev/null",
            "--wrap", f"sleep {seconds}",
        )  # fmt: skip
        number = int(job.strip())
        self.until(lambda: self.state(number) == "RUNNING", 15, f"job {number} does not run")
        return number

    def state(self, job: int) -> str:
        return self.slurm.run("scontrol", "-o", "show", "job", str(job)).partition("JobState=")[2].split()[0]


@pytest.fixture
def ground(kube: KubeLab, slurm: SlurmLab, kubelet: Kubelet, tmp_path: Path) -> Iterator[Ground]:
    found = Ground(kube, slurm, tmp_path)
    try:
        yield found
    finally:
        for name in ("gpu", "cpu", "roll"):
            kube.request("PATCH", f"{SLINKY}/nodesets/{name}", {"metadata": {"annotations": {
                "tui.slinky.slurm.net/delete-without-drain": "true"}}}, MERGE)  # fmt: skip
            kube.request("DELETE", f"{SLINKY}/nodesets/{name}")
        try:
            wait_for(lambda: not json.loads(kube.request("GET", f"{SLINKY}/nodesets")[1])["items"], 30, "NodeSets stay")
        finally:
            found.end()


def test_workers_register_run_jobs_and_leave_when_idle(ground: Ground) -> None:
    ground.make("gpu", 2)
    ground.until(lambda: all(ground.node(f"gpu-{i}").startswith("idle") for i in (0, 1)), 40, "workers do not register")
    ground.until(lambda: ground.nodeset("gpu")["status"].get("slurmIdle") == 2, 15, "the status does not say so")
    job = ground.run_job("gpu-1", 12)
    ground.until(lambda: "pod-protect" in json.dumps(ground.pod("gpu-1")["metadata"]), 15, "it is not protected")
    # A cordon drains within two seconds, with its own words, and its end lifts it.
    ground.kube.kubectl(
        "annotate", "node", ground.pod("gpu-0")["spec"]["nodeName"], "nodeset.slinky.slurm.net/node-cordon-reason=fan 3"
    )
    ground.kube.kubectl("cordon", ground.pod("gpu-0")["spec"]["nodeName"])
    took = ground.until(lambda: "slurm-operator: fan 3" in ground.node("gpu-0"), 10, "a cordon does not drain")
    assert took < 2.0
    ground.kube.kubectl("uncordon", ground.pod("gpu-0")["spec"]["nodeName"])
    ground.until(lambda: "drain" not in ground.node("gpu-0"), 10, "an uncordon lifts nothing")
    # Scale-in waits for the job that runs on the worker which has to go.
    ground.slurm.run("scontrol", "update", "nodename=gpu-0", "state=drain", "reason=bad gpu")
    ground.change("gpu", {"replicas": 1})
    ground.until(lambda: "1 job on it" in ground.condition("gpu", "Draining").get("message", "") or not ground.pod("gpu-0"), 15, "nobody leaves")  # fmt: skip
    left = "gpu-0" if ground.pod("gpu-0") else "gpu-1"
    ground.until(lambda: len(ground.pods("gpu")) == 1, 40, "nobody has left")
    assert ground.state(job) in ("RUNNING", "COMPLETED"), left
    ground.until(lambda: ground.state(job) == "COMPLETED", 30, "the job did not end well")


def test_a_foreign_drain_survives_a_cancelled_scale_in_and_a_restart(ground: Ground) -> None:
    ground.make("cpu", 2)
    ground.until(lambda: all(ground.node(f"cpu-{i}").startswith("idle") for i in (0, 1)), 40, "workers do not register")
    job = ground.run_job("cpu-1", 60)
    ground.slurm.run("scontrol", "update", "nodename=cpu-1", "state=drain", "reason=bad dimm")
    ground.until(lambda: "bad dimm" in ground.node("cpu-1"), 10, "not drained")
    ground.slurm.run("scontrol", "update", "nodename=cpu-0", "state=drain", "reason=bad dimm too")
    ground.kube.kubectl("-n", "slurm", "annotate", "pod", "cpu-0", "nodeset.slinky.slurm.net/pod-deletion-cost=100")
    ground.change("cpu", {"replicas": 1})
    ground.until(lambda: ground.condition("cpu", "Draining").get("status") == "True", 15, "nothing drains")
    ground.kill()
    ground.change("cpu", {"replicas": 2})
    ground.until(lambda: ground.condition("cpu", "Draining").get("status") == "False", 20, "it still drains")
    assert "bad dimm" in ground.node("cpu-1")
    assert "bad dimm too" in ground.node("cpu-0")
    assert ground.state(job) == "RUNNING"
    assert sorted(ground.pods("cpu")) == ["cpu-0", "cpu-1"]
    ground.slurm.run("scancel", str(job))
    for at in (0, 1):
        ground.slurm.run("scontrol", "update", f"nodename=cpu-{at}", "state=undrain")


def test_a_rolling_update_with_a_daemon_that_is_killed_ten_times(ground: Ground) -> None:
    """A new argument for slurmd, a job on every worker, and SIGKILL at ten random moments: every job ends well."""
    ground.make("roll", 3)
    ground.until(
        lambda: all(ground.node(f"roll-{i}").startswith("idle") for i in range(3)), 40, "workers do not register"
    )
    before = {n: p["metadata"]["uid"] for n, p in ground.pods("roll").items()}
    jobs = [ground.run_job(f"roll-{i}", 6 + 4 * i) for i in range(3)]
    ground.change("roll", {"slurmd": {"image": "slurmd:26.05", "args": ["-v"]}})
    chance = random.Random(7)
    for _ in range(10):
        time.sleep(chance.uniform(0.1, 2.5))
        ground.kill()
        away = [n for n, p in ground.pods("roll").items() if p["metadata"].get("deletionTimestamp")]
        assert len(away) <= 1, away
    ground.until(
        lambda: len(ground.pods("roll")) == 3
        and not {p["metadata"]["uid"] for p in ground.pods("roll").values()} & set(before.values())
        and all(ground.node(f"roll-{i}").startswith("idle") for i in range(3)),
        90, "the update does not end",
    )  # fmt: skip
    assert [ground.state(j) for j in jobs] == ["COMPLETED"] * 3
    args = [p["spec"]["containers"][0]["args"] for p in ground.pods("roll").values()]
    assert all("-v" in a for a in args)
