"""One real Slurm and one real API server for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.real.world import Real
from tests.lab.kube import KubeLab, start_or_skip
from tests.lab.slurm import SlurmLab, missing, wait_for


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmLab]:
    why = missing()
    if why:
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
    lab = SlurmLab.start("26.05")
    try:
        # A job that holds two devices: what must never turn into zero.
        lab.run(
            "sbatch",
            "--job-name",
            "long",
            "--gres",
            "gpu:2",
            "--wrap",
            "sleep 86400",
            "--chdir",
            "/tmp",
            "-o",
            "/dev/null",
        )
        wait_for(lambda: lab.run("squeue", "-h", "-t", "running", "-o", "%i").strip(), 20, "the job does not run")
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="session")
def kube() -> Iterator[KubeLab]:
    lab = start_or_skip()
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture
def alone(slurm: SlurmLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Real:
    """The real Slurm without Kubernetes."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "token").write_text(slurm.token)
    return Real(slurm, tmp_path)
