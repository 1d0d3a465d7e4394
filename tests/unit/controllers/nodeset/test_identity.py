"""Who a pod is, and which labels are mended so that everybody else sees it, too."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.decide import decide
from slinkytui.backend.controllers.nodeset.identity import (
    claim_identity,
    collisions,
    daemon_host,
    label_repairs,
    mode_of,
    padding_in_use,
    slurm_name,
    target,
)
from slinkytui.backend.controllers.nodeset.world import (
    HOSTNAME_OVERRIDE,
    MODE,
    POD_HOSTNAME,
    POD_INDEX,
    POD_NAME,
)
from slinkytui.backend.models import Pod
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import NOW, did, info, kube, pairs, pod, record, slurm, world


def bare(at: int | str, labels: dict[str, str] | None = None, **fields: Any) -> Pod:
    """A pod `gpu-<at>` with these labels and fields only."""
    one = pod(at)
    meta = msgspec.structs.replace(one.meta, labels=pairs(labels or {}), annotations=())
    return msgspec.structs.replace(one, meta=meta, **{"node": "", "hostname": "", **fields})


STATEFUL, DAEMON = {MODE: "StatefulSet"}, {MODE: "DaemonSet"}


@pytest.mark.parametrize(
    ("found", "mode"),
    [
        case("", "label", bare(0, DAEMON), "DaemonSet"),
        case("", "label over name", bare("x4f2z", STATEFUL), "StatefulSet"),
        case("W27", "an ordinal", bare(0), "StatefulSet"),
        case("W27", "a random ending", bare("x4f2z"), "DaemonSet"),
        case("W27", "digits by chance", bare("12345", pinned="n1", hostname="n1"), "DaemonSet"),
        case("W27", "a pinned ordinal", bare(1, {POD_INDEX: "1"}, pinned="n1", hostname="a100-1"), "StatefulSet"),
        case("W27", "a pinned ordinal without labels", bare(1, pinned="n1", hostname="a100-1"), "StatefulSet"),
        case("W27", "a word that is no mode", bare(0, {MODE: "nonsense"}), "StatefulSet"),
    ],
)
def test_the_mode_of_a_pod(found: Pod, mode: str) -> None:
    assert mode_of(found, "gpu") == mode


@pytest.mark.parametrize(
    ("found", "name"),
    [
        case("I3", "its own name", bare(0, STATEFUL), "gpu-0"),
        case("I3", "its host name", bare(0, STATEFUL, hostname="a100-0"), "a100-0"),
        case("W35", "host network", bare(0, STATEFUL, hostname="a100-0", host_network=True, node="n1"), "n1"),
        case("W35", "slurmd cuts a long name", bare(0, STATEFUL, host_network=True, node="n1.example"), "n1"),
        case("W35", "host network and not scheduled", bare(0, STATEFUL, hostname="a100-0", host_network=True), ""),
        case("W35", "the label says something else", bare(0, {**STATEFUL, POD_HOSTNAME: "x"}, host_network=True, node="n1"), "n1"),
        case("", "daemon", bare("x", DAEMON, hostname="n1", host_network=True, node="n1.example"), "n1"),
        case("", "daemon without host name", bare("x", DAEMON), ""),
        case("W27", "no label, an ordinal", bare(0, hostname="a100-0"), "a100-0"),
    ],
)  # fmt: skip
def test_the_slurm_node_of_a_pod(found: Pod, name: str) -> None:
    assert slurm_name(found, "gpu") == name


@pytest.mark.parametrize(
    ("found", "identity"),
    [
        case("I8", "ordinal", bare(0, STATEFUL), "0"),
        case("I8 W36", "with its zeros", bare("007", STATEFUL), "007"),
        case("I8", "host", bare("x4f2z", {**DAEMON, POD_HOSTNAME: "n1"}), "n1"),
        case("V15", "daemon without label", bare("x4f2z", DAEMON, hostname="n1"), "n1"),
        case("V15", "not known", bare("x4f2z", STATEFUL), ""),
    ],
)
def test_what_claims_are_named_by(found: Pod, identity: str) -> None:
    assert claim_identity(found, "gpu") == identity


@pytest.mark.parametrize(
    ("fields", "node"),
    [({}, ""), ({"node": "n1"}, "n1"), ({"node": "n1", "pinned": "n2"}, "n1"), ({"pinned": "n2"}, "n2")],
)
def test_the_node_that_a_pod_is_for(fields: dict[str, Any], node: str) -> None:
    assert target(bare("x", **fields)) == node


RIGHT = {POD_NAME: "gpu-0", POD_INDEX: "0", POD_HOSTNAME: "gpu-0", **STATEFUL}
DAEMONS = {POD_NAME: "gpu-x4f2z", POD_HOSTNAME: "n1", **DAEMON}


@pytest.mark.parametrize(
    ("found", "repairs"),
    [
        case("I4", "an ordinal's are right", bare(0, RIGHT, hostname="gpu-0"), {}),
        case("I4", "a daemon's are right", bare("x4f2z", DAEMONS, hostname="n1"), {}),
        case("I4", "another padding is fine", bare("00", {**RIGHT, POD_NAME: "gpu-00", POD_INDEX: "00"}, hostname="gpu-0"), {}),
        case("I4", "a wrong name", bare(0, {**RIGHT, POD_NAME: "other"}, hostname="gpu-0"), {POD_NAME: "gpu-0"}),
        case("I4 I5", "a daemon's empty name", bare("x4f2z", {**DAEMONS, POD_NAME: ""}, hostname="n1"), {POD_NAME: "gpu-x4f2z"}),
        case("W27", "nothing at all", bare(0, hostname="gpu-0"), RIGHT),
        case("W27", "a daemon without any", bare("x4f2z", hostname="n1"), DAEMONS),
        case("W27", "a word that is no mode", bare(0, {**RIGHT, MODE: "x"}, hostname="gpu-0"), STATEFUL),
    ],
)  # fmt: skip
def test_labels_are_mended_in_place(found: Pod, repairs: dict[str, str]) -> None:
    assert label_repairs(found, "gpu") == repairs


def test_a_pass_mends_labels_and_touches_nothing_else() -> None:
    found = bare(0, {"controller.kubernetes.io/hash": "new"}, node="n0", hostname="gpu-0")
    assert did(decide(world(found), NOW)) == [
        "mark gpu-0 pod-hostname=gpu-0,pod-index=0,pod-name=gpu-0,scaling-mode=StatefulSet"
    ]


@pytest.mark.parametrize(
    ("wanted", "names", "former", "padding"),
    [
        case("", "nothing is there", 3, [], [], 3),
        case("", "as wanted", 2, ["gpu-00", "gpu-01", "data-gpu-123"], [], 2),
        case("", "both fit", 2, ["gpu-10", "gpu-11"], [0], 2),
        case("W36", "more zeros", 3, ["gpu-0", "gpu-12"], [], 0),
        case("W36", "less zeros", 0, ["gpu-007", "gpu-1234"], [], 3),
        case("W36", "claims alone", 0, ["data-gpu-07"], [], 2),
        case("W36", "the revision knows", 3, ["gpu-10"], [2], 2),
        case("W36", "mixed already", 2, ["gpu-0", "gpu-01"], [0], 2),
        case("", "no ordinals", 2, ["gpu-x4f2z", "data-gpu-n1"], [], 2),
    ],
)
def test_the_padding_that_pods_were_made_with(wanted: int, names: list[str], former: list[int], padding: int) -> None:
    assert padding_in_use(wanted, names, former) == padding


def test_hosts_of_daemons_have_the_prefix_of_their_set() -> None:
    node = kube("n1.example", notes={HOSTNAME_OVERRIDE: "rack7"})
    assert (daemon_host(kube("n1.example"), "gpu-"), daemon_host(node, "gpu-")) == ("gpu-n1", "rack7")


@pytest.mark.parametrize(
    ("pods", "taken", "expected"),
    [
        case("", "each its own", [bare(0, STATEFUL), bare(1, STATEFUL)], {}, {}),
        case("W34", "two of one set", [bare("a", DAEMON, hostname="n1"), bare("b", DAEMON, hostname="n1")], {},
             {"n1": ("gpu-a", "gpu-b")}),
        case("W34", "one of another set", [bare(0, STATEFUL)], {"gpu-0": "cpu-0"}, {"gpu-0": ("cpu-0", "gpu-0")}),
        case("W35", "not known, no clash", [bare(0, STATEFUL, host_network=True), bare(1, STATEFUL, host_network=True)], {}, {}),
    ],
)  # fmt: skip
def test_slurm_names_that_clash(pods: list[Pod], taken: dict[str, str], expected: dict[str, tuple[str, ...]]) -> None:
    assert collisions(pods, "gpu", taken) == expected


def test_an_unknown_slurm_name_is_no_drained_worker() -> None:
    """A pod on the host's network has no Slurm name before it is scheduled, and is then not looked up under another."""
    found = bare(0, STATEFUL, host_network=True, hostname="gpu-0", phase="Pending")
    other = record("0", comment="")
    assert not [e for e in did(decide(world(found, replicas=0, slurm_side=slurm(other)), NOW)) if e.startswith("drain")]


@holds("W35")
def test_a_record_of_this_name_that_names_another_pod_proves_nothing() -> None:
    """The name alone does not say whose record it is; the operator's note in it does."""
    foreign = info("0", "n9").replace("gpu-0", "cpu-0")
    side = slurm(record(0, "IDLE", "DRAIN", comment=foreign))
    decision = decide(world(pod(0), replicas=0, slurm_side=side), NOW)
    assert not [e for e in did(decision) if e.startswith("delete")]
    assert any("belongs to slurm/cpu-0" in r.text for r in decision.why)
