"""What slurmd and sshd are started with."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.objects.conf import conf_words, own_share, slurmd_args, sshd_config
from tests.unit.controllers.objects.worlds import nodeset

TOPOLOGY = "Topology='\"$SLINKY_TOPOLOGY\"'"
WORDS = [
    ("plain", "", ["Features=gpu", TOPOLOGY]),
    ("features-join", "Weight=10 feature=a", ["Features=a,gpu", TOPOLOGY, "Weight=10"]),
    ("features-sorted", "Features=z,a", ["Features=a,gpu,z", TOPOLOGY]),
    ("features-once", "Feature=b Features=b,gpu", ["Features=b,gpu", TOPOLOGY]),
    ("malformed", "Weight10 Feature=a", ["Features=gpu", TOPOLOGY]),
    ("own-topology", "Topology=t:s1", ["Features=gpu", "Topology=t:s1"]),
    ("title-case", "MemSpecLimit=100 cpuspeclist=1", ["Cpuspeclist=1", "Features=gpu", "Memspeclimit=100", TOPOLOGY]),
    ("repeated", "Gres=gpu:1 gres=shard:2", ["Features=gpu", "Gres=gpu:1,shard:2", TOPOLOGY]),
    ("equals-in-value", "Extra=a=b", ["Extra=a=b", "Features=gpu", TOPOLOGY]),
    ("lines", "Weight=1\n\tGres=gpu:1\n", ["Features=gpu", "Gres=gpu:1", TOPOLOGY, "Weight=1"]),
]


@pytest.mark.parametrize(("extra", "expected"), [c[1:] for c in WORDS], ids=[c[0] for c in WORDS])
def test_words_of_conf(extra: str, expected: list[str]) -> None:
    assert conf_words("gpu", extra) == expected


def test_arguments_of_slurmd() -> None:
    found = slurmd_args(nodeset(template={"spec": {"hostname": "a100-"}}), "c1-controller.ns1:6817")
    assert found == ["-Z", "--conf-server", "c1-controller.ns1:6817", "--conf", f"'Features=a100 {TOPOLOGY}'"]


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
