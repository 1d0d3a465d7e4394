"""Revisions: the hashed bytes, the hashes that the Slinky operator gives, names and equality."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.objects.marks import HASH
from slinkytui.backend.controllers.objects.revision import (
    build_revision,
    encoded,
    fnv1,
    is_same,
    next_number,
    revision_data,
    revision_hash,
    revision_name,
)
from tests.rules import case, holds
from tests.unit.controllers.objects.worlds import nodeset

IMAGES: dict[str, Any] = {
    "controllerRef": {"name": "slurm"},
    "slurmd": {"image": "registry.example/slurmd:26.05"},
    "logfile": {"image": "registry.example/tail:1"},
}
HASHES = [
    case("W29", "empty template", "54bd6c46c8", {**IMAGES, "template": {"spec": {}}, "pinToNode": True, "replicas": 2}),
    case("W29", "host network", "8586b675b", {**IMAGES, "template": {"spec": {"hostNetwork": True}}}),
    case(
        "W29", "limits", "7cd8bc454c",
        {
            **IMAGES,
            "slurmd": {**IMAGES["slurmd"], "resources": {"limits": {"cpu": "2", "memory": "4Gi"}}},
            "template": {"spec": {"hostname": "worker-"}},
        },
    ),
    case(
        "W29", "limits spelled otherwise", "7cd8bc454c",
        {
            **IMAGES,
            "slurmd": {**IMAGES["slurmd"], "tty": False, "args": [], "resources": {"limits": {"cpu": 2, "memory": "4096Mi"}}},
            "template": {"metadata": {"labels": None}, "spec": {"hostname": "worker-", "hostNetwork": False, "nosuch": 1}},
        },
    ),
    case(
        "W29", "daemon", "b459b9468",
        {
            **IMAGES, "extraConf": "Features=fast,ib", "oversubscribeNode": True, "scalingMode": "DaemonSet",
            "template": {"spec": {
                "dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True, "nodeSelector": {"kubernetes.io/os": "linux"},
            }},
        },
    ),
    case(
        "W29", "rich", "7bb67cbb8b",
        {
            **IMAGES, "extraConf": "Weight=10 Gres=gpu:h100:8", "ordinalPadding": 3,
            "slurmd": {
                **IMAGES["slurmd"], "args": ["-vv"],
                "env": [{"name": "PAM_SLURM_ADOPT_OPTIONS", "value": "action_adopt_failure=deny"}],
                "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}},
                "volumeMounts": [{"mountPath": "/scratch", "name": "scratch"}, {"mountPath": "/dev/shm", "name": "shm"}],
            },
            "ssh": {"enabled": True, "extraSshdConfig": "MaxSessions 20\n", "sssdConfRef": {"key": "sssd.conf", "name": "sssd"}},
            "template": {
                "metadata": {"annotations": {"note": "second"}, "labels": {"team": "hpc"}},
                "spec": {
                    "hostname": "gpu-", "nodeSelector": {"accelerator": "h100"}, "terminationGracePeriodSeconds": 120,
                    "initContainers": [{"command": ["true"], "image": "registry.example/warm:1", "name": "warm"}],
                    "tolerations": [{"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"}],
                    "volumes": [{"emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}, "name": "shm"}],
                },
            },
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "spec"), HASHES)
def test_the_hashes_of_the_slinky_operator(expected: str, spec: dict[str, Any]) -> None:
    assert revision_hash(revision_data(nodeset(**spec))) == expected


UNHASHED: list[dict[str, Any]] = [
    {"replicas": 9}, {"scalingMode": "DaemonSet"}, {"pinToNode": True}, {"minReadySeconds": 3}, {"partition": {"enabled": True}},
    {"updateStrategy": {"type": "OnDelete"}}, {"workloadDisruptionProtection": False}, {"controllerRef": {"name": "other"}},
    {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}, {"volumeClaimTemplates": [{"metadata": {"name": "d"}}]},
    {"meta": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
]  # fmt: skip
HASHED: list[dict[str, Any]] = [
    {"ordinalPadding": 1}, {"oversubscribeNode": True}, {"extraConf": "A=1"}, {"slurmd": {"image": "x"}}, {"logfile": {"image": "x"}},
    {"ssh": {"enabled": False, "sssdConfRef": {"name": "s", "key": "k"}}}, {"template": {"metadata": {"labels": {"a": "b"}}}},
]  # fmt: skip


@pytest.mark.parametrize("spec", UNHASHED, ids=lambda s: next(iter(s)))
def test_what_makes_no_pod_makes_no_revision(spec: dict[str, Any]) -> None:
    assert revision_data(nodeset(**spec)) == revision_data(nodeset())


@pytest.mark.parametrize("spec", HASHED, ids=lambda s: next(iter(s)))
def test_what_makes_a_pod_makes_a_revision(spec: dict[str, Any]) -> None:
    one, other = revision_data(nodeset(**spec)), revision_data(nodeset())
    assert revision_hash(one) != revision_hash(other)
    assert not is_same(one, other)


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0x811C9DC5), (b"a", 0x050C5D7E), (b"foobar", 0x31F0B262)], ids=["empty", "a", "foobar"]
)
def test_fnv1_by_its_published_vectors(data: bytes, expected: int) -> None:
    assert fnv1(data) == expected


def test_bytes_are_sorted_compact_and_safe_in_html() -> None:
    found = encoded({"b": "<a & b>\u2028é\x7f", "a": [1, True, None]})
    assert found == '{"a":[1,true,null],"b":"\\u003ca \\u0026 b\\u003e\\u2028é\x7f"}'.encode()


def test_a_collision_gives_another_hash() -> None:
    data = revision_data(nodeset())
    assert len({revision_hash(data, n) for n in range(5)}) == 5


def test_long_names_are_cut() -> None:
    assert revision_name("n" * 253, "abc") == "n" * 223 + "-abc"


@holds("W28", "R5")
def test_a_revision_carries_the_labels_that_its_list_selects_by() -> None:
    made = build_revision(
        nodeset(
            meta={"annotations": {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            template={"metadata": {"labels": {"team": "hpc", "app.kubernetes.io/name": "other"}}},
        ),
        number=3,
    )
    meta = made["metadata"]
    assert meta["labels"] == {
        "team": "hpc",
        "app.kubernetes.io/name": "slurmd",
        "app.kubernetes.io/instance": "gpu",
        HASH: revision_hash(made["data"]),
    }
    assert meta["name"] == f"gpu-{meta['labels'][HASH]}"
    assert meta["annotations"] == {"a": "b"}
    assert [o["uid"] for o in meta["ownerReferences"] if o["controller"]] == ["uid-gpu"]
    assert made["revision"] == 3


@pytest.mark.parametrize(("known", "expected"), [([], 1), ([1], 2), ([4, 2], 5)])
def test_numbers_go_up(known: list[int], expected: int) -> None:
    assert next_number(known) == expected


@holds("W29")
def test_a_key_that_is_left_out_has_its_default() -> None:
    now = revision_data(nodeset(ssh={"enabled": True, "sssdConfRef": {"name": "s", "key": "k"}}))
    spec = {k: v for k, v in now["spec"].items() if k not in ("oversubscribeNode", "ordinalPadding")}
    spec["slurmd"] = {"image": "slurmd", "resources": None, "tty": False, "$patch": "replace"}
    assert is_same({"spec": spec}, now)
    assert is_same(now, {"spec": spec})


@holds("W29")
def test_what_cannot_be_read_is_the_same_as_nothing_else() -> None:
    odd = {"spec": {"template": {"spec": {"volumes": "none"}}}}
    assert is_same(odd, dict(odd))
    assert not is_same(odd, revision_data(nodeset()))
