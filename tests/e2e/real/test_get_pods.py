"""`get` against a real API server: the same pods as kubectl prints, by namespace, label and name, and refusals."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from slinkytui.cli import main
from tests.e2e.real.pods import make
from tests.lab.kube import KubeLab

COUNT = 1_000


@pytest.fixture(scope="module")
def space(kube: KubeLab) -> str:
    name = kube.namespace("many")
    asyncio.run(make(str(kube.kubeconfig), name, COUNT))
    return name


def got(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, object]]:
    assert main([*argv, "-o", "json"]) == 0
    return list(json.loads(capsys.readouterr().out))


@pytest.mark.kube
def test_every_pod_that_kubectl_prints(kube: KubeLab, space: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = ["--kubeconfig", str(kube.kubeconfig)]
    theirs = {(p["metadata"]["namespace"], p["metadata"]["name"])
              for p in json.loads(kube.kubectl("get", "pods", "-A", "-o", "json"))["items"]}  # fmt: skip
    ours = got(capsys, *config, "get", "pods", "-A")
    assert len(ours) == len(theirs) >= COUNT
    assert {(p["namespace"], p["name"]) for p in ours} == theirs
    assert len(got(capsys, *config, "get", "pods", "-n", space)) == COUNT
    for selector in ("tint=red", "tint!=red", "tint in (red,blue)", "!tint"):
        names = kube.kubectl("get", "pods", "-n", space, "-l", selector, "-o", "name").split()
        chosen = got(capsys, *config, "-n", space, "get", "pods", "-l", selector)
        assert sorted(f"pod/{p['name']}" for p in chosen) == sorted(names), selector
    assert [p["name"] for p in got(capsys, *config, "get", f"pod/{space}/pod-00007")] == ["pod-00007"]
    assert main([*config, "get", "pod", "pod-7"]) == 3


@pytest.mark.kube
def test_somebody_without_rights_is_refused(kube: KubeLab, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--kubeconfig", str(kube.kubeconfig), "--context", "nobody", "get", "pods"]) == 6
    assert 'User "nobody" cannot list resource "pods"' in capsys.readouterr().err
    made = json.loads(Path(kube.kubeconfig).read_text())
    made["users"] = [{"name": "admin", "user": {"token": "wrong"}}]
    (tmp_path / "config").write_text(json.dumps(made))
    assert main(["--kubeconfig", str(tmp_path / "config"), "get", "pods"]) == 6
    assert "Unauthorized" in capsys.readouterr().err


@pytest.mark.kube
def test_doctor_names_what_somebody_may_not(kube: KubeLab, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--kubeconfig", str(kube.kubeconfig), "--context", "reader", "doctor", "-o", "json"])
    rights = {f["name"]: f["text"] for f in json.loads(capsys.readouterr().out) if f["about"] == "rights"}
    assert rights["list pods"] == "yes" and rights["delete pods"].startswith("no")
    assert rights["create pods/eviction"].startswith("no")
