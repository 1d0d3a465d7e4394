"""A real API server with worker pods that are named as the nodes of a real Slurm: `get` shows one picture of both."""

from __future__ import annotations

import json

import pytest

from slinkytui.cli import main
from tests.e2e.real.world import Real
from tests.lab.kube import KubeLab

SLINKY = "/apis/slinky.slurm.net/v1beta1"


@pytest.mark.slurm
@pytest.mark.kube
def test_nodes_and_pods_are_one_picture(alone: Real, kube: KubeLab, capsys: pytest.CaptureFixture[str]) -> None:
    lab, space = alone.lab, kube.namespace("joined")
    at = f"{SLINKY}/namespaces/{space}"
    secret = {"name": "none", "key": "none"}
    kube.post(f"{at}/controllers", {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": "ctl"},
        "spec": {"clusterName": lab.cluster, "slurmKeyRef": secret, "jwtKeyRef": secret},
    })  # fmt: skip
    kube.post(f"{at}/nodesets", {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "gpu"},
        "spec": {"controllerRef": {"name": "ctl"}, "replicas": 3},
    })  # fmt: skip
    owner = json.loads(kube.request("GET", f"{at}/nodesets/gpu")[1])
    reference = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "gpu",
                 "uid": owner["metadata"]["uid"], "controller": True}  # fmt: skip
    for name in ("gpu-0", "gpu-1", "gpu-9"):
        kube.post(f"/api/v1/namespaces/{space}/pods", {
            "metadata": {"name": name, "ownerReferences": [reference]},
            "spec": {"hostname": name, "containers": [{"name": "slurmd", "image": "none"}]},
        })  # fmt: skip
    kube.hollow(2)
    assert kube.run_pods(space) == 3
    argv = ["--kubeconfig", str(kube.kubeconfig), "-n", space, "--slurm", f"{space}/ctl={lab.url}",
            "--token-file", str(alone.folder / "token")]  # fmt: skip
    assert main([*argv, "get", "nodes", "-o", "json"]) == 0
    rows = {r["name"]: r for r in json.loads(capsys.readouterr().out)}
    assert set(rows) == {"gpu-0", "gpu-1", "gpu-2", "gpu-9"}
    assert (rows["gpu-0"]["pod"], rows["gpu-0"]["nodeset"], rows["gpu-0"]["k8s"]) == (f"{space}/gpu-0", "gpu", "Ready")
    assert rows["gpu-0"]["kubenode"].startswith("hollow-") and rows["gpu-0"]["gpus"] == 8
    # gpu-2 has a slurmd and no pod, gpu-9 a pod and no slurmd: neither is passed over in silence.
    assert rows["gpu-2"]["pod"] is None and rows["gpu-2"]["disagreement"]
    assert rows["gpu-9"]["pod"] == f"{space}/gpu-9" and rows["gpu-9"]["disagreement"]
    assert main([*argv, "get", "nodesets", "-o", "json"]) == 0
    (nodeset,) = json.loads(capsys.readouterr().out)
    assert (nodeset["name"], nodeset["gpus"]) == ("gpu", 16)
