"""What a worker pod says of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slinkytui.backend.controllers.objects import marks
from slinkytui.backend.controllers.objects.readback import (
    controller_of,
    identity_of,
    is_made_by_us,
    label_repairs,
    ordinal_of,
    padding_in_use,
    pod_info_comment,
    read_comment,
    revision_of,
    scaling_mode_of,
    slurm_node_of,
    target_of,
)
from slinkytui.backend.controllers.objects.worker import Extras, OnNode, build_worker
from tests.unit.controllers.objects.worlds import controller, nodeset, pod, required_node

STATEFUL = {marks.SCALING_MODE: "StatefulSet"}
DAEMON = {marks.SCALING_MODE: "DaemonSet"}


@pytest.mark.parametrize(
    ("found", "mode"),
    [
        (pod("gpu-0", labels=DAEMON), "DaemonSet"),
        (pod("gpu-x4f2z", labels=STATEFUL), "StatefulSet"),
        (pod("gpu-0"), "StatefulSet"),
        (pod("gpu-x4f2z"), "DaemonSet"),
        (pod("cpu-0"), "DaemonSet"),
        (pod("gpu-12345", affinity=required_node("n1")), "DaemonSet"),
        (pod("gpu-1", labels={marks.POD_INDEX: "1"}, affinity=required_node("n1")), "StatefulSet"),
        (pod("gpu-0", labels={marks.SCALING_MODE: "nonsense"}), "StatefulSet"),
    ],
    ids=["label", "label-over-name", "W27-ordinal", "W27-random", "W27-other-set", "W27-digits-by-chance", "W27-pinned", "W27-word"],
)  # fmt: skip
def test_the_mode_of_a_pod(found: dict[str, Any], mode: str) -> None:
    assert scaling_mode_of(found, "gpu") == mode


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (pod("gpu-0", labels=STATEFUL), "gpu-0"),
        (pod("gpu-0", labels=STATEFUL, hostname="a100-0"), "a100-0"),
        (pod("gpu-0", labels=STATEFUL, hostname="a100-0", hostNetwork=True, nodeName="n1.example"), "n1.example"),
        (pod("gpu-0", labels=STATEFUL, hostname="a100-0", hostNetwork=True), ""),
        (pod("gpu-x", labels=DAEMON, hostname="n1", hostNetwork=True, nodeName="n1.example"), "n1"),
        (pod("gpu-x", labels=DAEMON), ""),
    ],
    ids=["name", "host", "host-network", "W35-unscheduled", "daemon", "daemon-without-host"],
)
def test_the_slurm_node_of_a_pod(found: dict[str, Any], name: str) -> None:
    assert slurm_node_of(found, "gpu") == name


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        ({}, ""),
        ({"nodeName": "n1"}, "n1"),
        ({"nodeName": "n1", "affinity": required_node("n2")}, "n1"),
        ({"affinity": required_node("n2")}, "n2"),
        ({"affinity": {"nodeAffinity": {}}}, ""),
    ],
)
def test_the_node_that_a_pod_is_for(spec: dict[str, Any], node: str) -> None:
    assert target_of(pod("gpu-x", **spec)) == node


def test_what_is_built_reads_back() -> None:
    stateful = build_worker(nodeset(ordinalPadding=3), controller(), 7, "abc", Extras())
    assert (revision_of(stateful), ordinal_of(stateful), scaling_mode_of(stateful, "gpu")) == ("abc", 7, "StatefulSet")
    assert identity_of(stateful, "gpu") == "007"
    assert controller_of(stateful)["uid"] == "uid-gpu"
    assert label_repairs(stateful, nodeset()) == {}
    daemon = build_worker(nodeset(scalingMode="DaemonSet"), controller(), OnNode("n1.example", {}), "abc", Extras())
    daemon["metadata"]["name"] = "gpu-x4f2z"
    assert (scaling_mode_of(daemon, "gpu"), target_of(daemon), identity_of(daemon, "gpu")) == (
        "DaemonSet",
        "n1.example",
        "n1",
    )
    assert label_repairs(daemon, nodeset()) == {marks.POD_NAME: "gpu-x4f2z"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod("foo-0", labels={marks.HASH: "h", marks.INSTANCE: "foo"}), True),
        (pod("foo-0", labels={marks.INSTANCE: "foo"}), False),
        (pod("foo-0", labels={marks.HASH: "h"}), False),
        (pod("foo-gpu-1234", labels={marks.HASH: "h", marks.INSTANCE: "foo"}), False),
        (pod("foo-x4f2z", labels={marks.HASH: "h", marks.INSTANCE: "foo"}, meta={"generateName": "foo-"}), True),
        (pod("foo-gpu-x4", labels={marks.HASH: "h", marks.INSTANCE: "foo"}, meta={"generateName": "foo-gpu-"}), False),
    ],
    ids=["C6", "W27-no-hash", "other-labels", "C5", "C9", "C10"],
)
def test_which_orphans_are_ours(found: dict[str, Any], expected: bool) -> None:
    assert is_made_by_us(found, "foo") is expected


@pytest.mark.parametrize(
    ("labels", "repairs"),
    [
        (
            {},
            {
                marks.POD_NAME: "gpu-0",
                marks.SCALING_MODE: "StatefulSet",
                marks.POD_INDEX: "0",
                marks.POD_HOSTNAME: "gpu-0",
            },
        ),
        (
            {marks.POD_NAME: "other", marks.POD_INDEX: "0", marks.POD_HOSTNAME: "gpu-0", **STATEFUL},
            {marks.POD_NAME: "gpu-0"},
        ),
        ({marks.POD_NAME: "gpu-0", marks.POD_INDEX: "0", marks.POD_HOSTNAME: "gpu-0", **STATEFUL}, {}),
    ],
    ids=["W27-bare", "wrong-name", "right"],
)
def test_labels_are_mended_in_place(labels: dict[str, str], repairs: dict[str, str]) -> None:
    assert label_repairs(pod("gpu-0", labels=labels, hostname="gpu-0"), nodeset(ordinalPadding=2)) == repairs


@pytest.mark.parametrize(
    ("names", "padding"),
    [([], None), (["gpu-0", "gpu-12"], 0), (["gpu-007", "gpu-1234"], 3), (["gpu-10"], 0), (["gpu-x4f2z"], None)],
)
def test_W36_the_padding_that_pods_were_made_with(names: list[str], padding: int | None) -> None:
    assert padding_in_use([pod(n) for n in names], "gpu") == padding


def test_the_comment_of_the_slurm_node() -> None:
    found = pod("gpu-0", nodeName="n1")
    text = pod_info_comment(found, nodeset())
    assert text == '{"namespace":"ns1","podName":"gpu-0","node":"n1","nodeSetName":"gpu","nodeSetUID":"uid-gpu"}'
    assert read_comment(text) == json.loads(text)
    assert pod_info_comment(pod("gpu-0"), None) == '{"namespace":"ns1","podName":"gpu-0","node":""}'


@pytest.mark.parametrize("text", ["", "bought in May", "[]", '{"podName":1}', "{", "null"])
def test_other_comments_say_nothing(text: str) -> None:
    assert read_comment(text) == {}
