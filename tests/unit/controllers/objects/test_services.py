"""What workers share, and the ConfigMap of sshd."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.objects.services import (
    build_ssh_config,
    build_worker_budget,
    build_worker_service,
    owners,
)
from slinkytui.backend.crds.nodeset import NodeSet
from tests.rules import case, holds
from tests.unit.controllers.objects.worlds import nodeset

OTHER: dict[str, Any] = {"controllerRef": {"name": "c2"}}


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        case("I11", "none", [], []),
        case("I11", "one", [nodeset("a")], ["a"]),
        case("I11 X18", "two by name", [nodeset("b"), nodeset("a")], ["a", "b"]),
        case("I11", "another Controller", [nodeset("a"), nodeset("b", **OTHER)], ["a"]),
        case("I11 X18", "another namespace", [nodeset("a"), nodeset("b", namespace="ns2")], ["a"]),
        case("I11", "no match", [nodeset("b", **OTHER)], []),
    ],
)
def test_owners_of_shared_objects(sets: list[NodeSet], expected: list[str]) -> None:
    found = owners("ns1", "c1", sets)
    assert [o["name"] for o in found] == expected
    assert all("controller" not in o and o["blockOwnerDeletion"] is True for o in found)


def test_the_service() -> None:
    found = build_worker_service("ns1", "c1", [nodeset("a")])
    assert found["metadata"]["name"] == "slurm-workers-c1"
    assert found["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"app.kubernetes.io/name": "slurmd", "slinky.slurm.net/cluster": "c1"},
        "ports": [{"name": "slurmd", "port": 6818, "targetPort": "slurmd", "protocol": "TCP"}],
    }


@holds("W5", "X17")
@pytest.mark.parametrize("replicas", [0, 1, 100])
@pytest.mark.parametrize("busy", [1, 4, 5000])
def test_the_budget_lets_no_busy_pod_go_whatever_the_replicas(busy: int, replicas: int) -> None:
    spec = build_worker_budget("ns1", "c1", [nodeset("a", replicas=replicas)])["spec"]
    assert "maxUnavailable" not in spec, "it would be counted by the owners' replicas"
    assert isinstance(spec["minAvailable"], int), "a percentage would be, too"
    assert busy - spec["minAvailable"] <= 0


def test_the_budget_selects_the_protected_pods_of_the_cluster() -> None:
    found = build_worker_budget("ns1", "c1", [])
    assert found["metadata"]["name"] == "slurm-workers-pdb-c1"
    assert found["spec"]["selector"] == {
        "matchLabels": {"nodeset.slinky.slurm.net/pod-protect": "true", "slinky.slurm.net/cluster": "c1"}
    }


def test_the_config_map_of_sshd() -> None:
    ssh = {"enabled": True, "sssdConfRef": {"name": "s", "key": "k"}}
    found = build_ssh_config(nodeset(ssh=ssh, meta={"labels": {"team": "hpc"}, "annotations": {"a": "b"}}))
    assert found is not None
    assert found["metadata"]["name"] == "gpu-ssh-config"
    assert found["metadata"]["labels"] == {
        "team": "hpc", "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "gpu",
        "app.kubernetes.io/component": "worker", "slinky.slurm.net/cluster": "c1",
    }  # fmt: skip
    assert found["metadata"]["annotations"] == {"a": "b"}
    assert found["metadata"]["ownerReferences"][0]["controller"] is True
    assert found["data"]["sshd_config"].startswith("#\n### GENERAL ###\n")
    assert build_ssh_config(nodeset(ssh={**ssh, "enabled": False})) is None
    assert build_ssh_config(nodeset()) is None
