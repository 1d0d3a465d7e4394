"""What slurmd and sshd are started with."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.objects.conf import conf_words, own_share, slurmd_args, sshd_config, with_topology
from tests.rules import case, holds
from tests.unit.controllers.objects.worlds import nodeset

TOPOLOGY = "Topology='\"$SLINKY_TOPOLOGY\"'"
WORDS = [
    case("", "plain", "", ["Features=gpu", TOPOLOGY]),
    case("", "features join", "Weight=10 feature=a", ["Features=a,gpu", "Weight=10", TOPOLOGY]),
    case("", "features sorted", "Features=z,a", ["Features=a,gpu,z", TOPOLOGY]),
    case("", "features once", "Feature=b Features=b,gpu", ["Features=b,gpu", TOPOLOGY]),
    case("", "malformed", "Weight10 Feature=a", ["Features=gpu", TOPOLOGY]),
    case("", "own topology", "Topology=t:s1", ["Features=gpu", "Topology=t:s1"]),
    case("", "title case", "MemSpecLimit=100 cpuspeclist=1", ["Cpuspeclist=1", "Features=gpu", "Memspeclimit=100", TOPOLOGY]),
    case("", "repeated", "Gres=gpu:1 gres=shard:2", ["Features=gpu", "Gres=gpu:1,shard:2", TOPOLOGY]),
    case("", "equals in value", "Extra=a=b", ["Extra=a=b", "Features=gpu", TOPOLOGY]),
    case("", "lines", "Weight=1\n\tGres=gpu:1\n", ["Features=gpu", "Gres=gpu:1", "Weight=1", TOPOLOGY]),
    case("W63", "nothing follows the topology", "Gres=gpu:h100:8 Weight=10", ["Features=gpu", "Gres=gpu:h100:8", "Weight=10", TOPOLOGY]),
    case("W63", "nor one's own", "Topology=t:s1 Weight=10", ["Features=gpu", "Weight=10", "Topology=t:s1"]),
    case("W63", "an empty one is left out", "Topology= Weight=10", ["Features=gpu", "Weight=10"]),
    case("W63", "so is any empty word", "Gres= Weight=10", ["Features=gpu", "Weight=10", TOPOLOGY]),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "expected"), WORDS)
def test_words_of_conf(extra: str, expected: list[str]) -> None:
    assert conf_words("gpu", extra) == expected


def test_arguments_of_slurmd() -> None:
    found = slurmd_args(nodeset(template={"spec": {"hostname": "a100-"}}), "c1-controller.ns1:6817")
    assert found == ["-Z", "--conf-server", "c1-controller.ns1:6817", "--conf", f"'Features=a100 {TOPOLOGY}'"]


OTHERS = ["-Z", "--conf", "-vv Topology=x"]


@pytest.mark.parametrize(
    ("topology", "last"),
    [
        case("W63 Q11", "none", "", "'Features=gpu Weight=10'"),
        case("W63 Q11", "its own", "topo-switch:s2,topo-block:b2", "'Features=gpu Weight=10 Topology=topo-switch:s2,topo-block:b2'"),
        case("", "one that a shell would read", "a'$(id)", f"'Features=gpu Weight=10 {TOPOLOGY}'"),
    ],
)  # fmt: skip
def test_the_topology_of_a_machine_that_is_known(topology: str, last: str) -> None:
    args = slurmd_args(nodeset(extraConf="Weight=10"), "c:1")
    assert with_topology([*args, *OTHERS], topology) == [*args[:4], last, *OTHERS]


SHARES: list[tuple[str, dict[str, str], dict[str, str], tuple[int, int]]] = [
    ("none", {}, {}, (0, 0)),
    ("own-over-pod", {"cpu": "4", "memory": "2Gi"}, {"cpu": "1", "memory": "1Gi"}, (1, 1024)),
    ("pod-only", {"memory": "1Gi"}, {}, (0, 1024)),
    ("cores-up", {}, {"cpu": "1500m"}, (2, 0)),
    ("memory-down", {}, {"memory": "2097151"}, (0, 1)),
    ("zero-is-none", {"cpu": "3"}, {"cpu": "0"}, (3, 0)),
    ("decimal", {}, {"memory": "1G"}, (0, 953)),
]


@pytest.mark.parametrize(("pod", "own", "expected"), [c[1:] for c in SHARES], ids=[c[0] for c in SHARES])
def test_the_share_of_the_machine(pod: dict[str, str], own: dict[str, str], expected: tuple[int, int]) -> None:
    found = nodeset(
        slurmd={"image": "x", "resources": {"limits": own}}, template={"spec": {"resources": {"limits": pod}}}
    )
    assert own_share(found) == expected


@holds("Q30")
@pytest.mark.parametrize(
    ("extra", "end"), [("", "\n"), ("MaxSessions 20\n", "MaxSessions 20\n\n")], ids=["none", "some"]
)
def test_the_text_of_sshd_config(extra: str, end: str) -> None:
    ssh: dict[str, Any] = {"enabled": True, "extraSshdConfig": extra, "sssdConfRef": {"name": "s", "key": "k"}}
    assert sshd_config(nodeset(ssh=ssh)) == (
        "#\n### GENERAL ###\nInclude /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\nSubsystem sftp internal-sftp\n"
        f"AuthenticationMethods publickey password\n#\n### EXTRA CONFIG ###\n{end}"
    )
    assert sshd_config(nodeset(ssh={**ssh, "enabled": False})) == ""
    assert sshd_config(nodeset()) == ""
