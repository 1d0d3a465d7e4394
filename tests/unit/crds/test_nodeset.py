"""NodeSets as types: defaults, what is refused, what is doubted, and that types and definitions have the same fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from slinkytui.backend.crds.nodeset import (
    MaxUnavailable,
    NodeSet,
    NodeSetSpec,
    Partition,
    Retain,
    RollingUpdate,
    ScheduledUpdate,
    Ssh,
    UpdateStrategy,
    doubts,
    parse_nodeset,
)
from slinkytui.backend.crds.schema import Shape, made
from slinkytui.backend.crds.shared import BadResource, KeyRef, LocalRef

PLAIN: dict[str, Any] = {"controllerRef": {"name": "c"}, "slurmd": {"image": "w"}}


def raw(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "gpu", "namespace": "ns1"}, "spec": {**PLAIN, **spec}}


def parsed(**spec: Any) -> NodeSet:
    found = parse_nodeset(raw(**spec))
    assert isinstance(found, NodeSet), found
    return found


@pytest.mark.parametrize("given", [{}, dict.fromkeys(made(NodeSetSpec)["properties"])], ids=["absent", "null"])
def test_defaults_hold_when_the_server_has_not_filled_them_in(given: dict[str, Any]) -> None:
    spec = parsed(**{**given, **PLAIN}).spec
    assert (spec.replicas, spec.scaling_mode, spec.ordinal_padding, spec.revision_history_limit) == (
        1,
        "StatefulSet",
        0,
        0,
    )
    assert (spec.pin_to_node, spec.oversubscribe_node, spec.workload_disruption_protection) == (False, False, True)
    assert spec.update_strategy.type == "RollingUpdate"
    assert spec.update_strategy.rolling_update.max_unavailable.given == "25%"
    assert spec.persistent_volume_claim_retention_policy == Retain(when_deleted="Retain", when_scaled="Retain")
    assert spec.prune_slurm_node_records == "Never"
    assert spec.template == {"metadata": {}, "spec": {"containers": None}}
    assert (spec.slurmd, spec.logfile) == ({"name": "", "image": "w", "resources": {}}, {"name": "", "resources": {}})
    assert not spec.has_ssh
    assert doubts(spec) == ()


def test_metadata() -> None:
    found = parse_nodeset(
        {
            "metadata": {
                "name": "gpu", "namespace": "ns1", "uid": "u", "generation": 3, "resourceVersion": "7", "labels": {"a": "b"},
                "annotations": None, "finalizers": ["f"], "deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}],
            },
            "spec": PLAIN, "status": {"replicas": 2},
        }
    )  # fmt: skip
    assert isinstance(found, NodeSet)
    assert found.meta.deletion_timestamp == datetime(2026, 1, 1, tzinfo=UTC)
    assert (found.is_deleting, found.meta.generation, found.meta.annotations, found.status) == (
        True,
        3,
        {},
        {"replicas": 2},
    )


BAD = [
    ("spec.controllerRef", "Required value", {"controllerRef": None}),
    ("spec.controllerRef.name", "must not be empty", {"controllerRef": {"name": ""}}),
    ("spec.replicas", "greater than or equal to 0", {"replicas": -1}),
    ("spec.replicas", "valid integer", {"replicas": "2"}),
    ("spec.scalingMode", "'StatefulSet' or 'DaemonSet'", {"scalingMode": "Deployment"}),
    ("spec.ordinalPadding", "greater than or equal to 0", {"ordinalPadding": -1}),
    ("spec.pinToNode", "valid boolean", {"pinToNode": "true"}),
    ("spec.updateStrategy.type", "RollingUpdate", {"updateStrategy": {"type": "Recreate"}}),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", "a number", {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1.5}}}),
    ("spec.updateStrategy.scheduledUpdate.startTime", "datetime", {"updateStrategy": {"scheduledUpdate": {"startTime": "tomorrow"}}}),
    ("spec.updateStrategy.scheduledUpdate.duration", "not a duration", {"updateStrategy": {"scheduledUpdate": {"duration": "1d"}}}),
    ("spec.ssh.sssdConfRef", "Required value", {"ssh": {"enabled": True}}),
    ("spec.ssh.sssdConfRef.name", "must not be empty", {"ssh": {"enabled": True, "sssdConfRef": {"key": "k"}}}),
    ("spec.template.spec.hostname", "not a host name", {"template": {"spec": {"hostname": "GPU-"}}}),
    ("spec.template.spec.hostname", "not a host name", {"template": {"spec": {"hostname": "a\nNodeName=x"}}}),
    ("spec.template.spec.hostname", "not a host name", {"template": {"spec": {"hostname": "-"}}}),
    ("spec.template", "must be an object", {"template": []}),
    ("spec.template.spec.volumes[0].name", "must be a text", {"template": {"spec": {"volumes": [{"name": 1}]}}}),
    ("spec.template.metadata.labels.a", "must be a text", {"template": {"metadata": {"labels": {"a": 1}}}}),
    ("spec.slurmd", "must be an object", {"slurmd": []}),
    ("spec.slurmd.resources.limits.cpu", "not a quantity", {"slurmd": {"resources": {"limits": {"cpu": "x"}}}}),
    ("spec.partition.config", "pattern", {"partition": {"enabled": True, "config": "MaxTime=1\nPartitionName=x"}}),
    ("spec.pruneSlurmNodeRecords", "'Never' or 'NodeNotFound'", {"pruneSlurmNodeRecords": "Always"}),
    (
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "'Retain' or 'Delete'",
        {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Keep"}},
    ),
    ("spec.volumeClaimTemplates", "names", {"volumeClaimTemplates": [{"spec": {}}]}),
    ("spec.volumeClaimTemplates", "each its own", {"volumeClaimTemplates": [{"metadata": {"name": "a"}}] * 2}),
    ("spec.volumeClaimTemplates", "must be a list", {"volumeClaimTemplates": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "words", "spec"), BAD, ids=[f"{c[0]}-{n}" for n, c in enumerate(BAD)])
def test_what_cannot_be_used_names_its_field(path: str, words: str, spec: dict[str, Any]) -> None:
    found = parse_nodeset(raw(**spec))
    assert isinstance(found, BadResource)
    assert found.path == path
    assert words in found.message
    assert str(found) == f"{path}: {found.message}"


@pytest.mark.parametrize(
    "odd", [{}, {"metadata": None, "spec": 5}, {"metadata": {"name": ""}, "spec": PLAIN}, {"spec": []}]
)
def test_nothing_raises(odd: dict[str, Any]) -> None:
    assert isinstance(parse_nodeset(odd), BadResource)


@pytest.mark.parametrize(
    ("host", "name"),
    [("", "gpu"), ("a100-", "a100"), ("a.b-", "a.b"), ("n", "n"), ("n--", "n")],
)
def test_the_name_in_slurm(host: str, name: str) -> None:
    assert parsed(template={"spec": {"hostname": host}}).slurm_name == name


@pytest.mark.parametrize(
    ("given", "total", "expected"),
    [
        (1, 10, 1), (0, 10, 0), (-1, 10, 0), (20, 10, 10), ("25%", 10, 3), ("25%", 0, 0), ("10%", 100, 10), ("1%", 4, 1),
        ("100%", 7, 7), ("150%", 4, 4), ("0%", 4, 0), ("00%", 4, 0), ("many", 4, 1), ("5", 4, 1), ("", 4, 1), ("-5%", 4, 1), ("many", 0, 0),
    ],
)  # fmt: skip
def test_how_many_may_be_away(given: int | str, total: int, expected: int) -> None:
    spec = parsed(updateStrategy={"rollingUpdate": {"maxUnavailable": given}}).spec
    assert spec.update_strategy.rolling_update.max_unavailable == MaxUnavailable(given)
    assert MaxUnavailable(given).of(total) == expected


DOUBTS = [
    (
        "updateStrategy.rollingUpdate.maxUnavailable",
        "no worker go",
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
    ),
    (
        "updateStrategy.rollingUpdate.maxUnavailable",
        "no worker go",
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "00%"}}},
    ),
    (
        "updateStrategy.rollingUpdate.maxUnavailable",
        "more than all",
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "150%"}}},
    ),
    (
        "updateStrategy.rollingUpdate.maxUnavailable",
        "1 is taken",
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "many"}}},
    ),
    ("updateStrategy.scheduledUpdate.startTime", "nothing is updated", {"updateStrategy": {"type": "ScheduledUpdate"}}),
    ("minReadySeconds", "0 is taken", {"minReadySeconds": -1}),
    ("revisionHistoryLimit", "0 is taken", {"revisionHistoryLimit": -1}),
    ("ordinalPadding", "10 digits", {"ordinalPadding": 20}),
    ("extraConf", "line break", {"extraConf": "Weight=1\nGres=gpu:1"}),
    ("extraConf", "all of it is ignored", {"extraConf": "Weight=1 Gres"}),
    ("template.spec.containers", "no name", {"template": {"spec": {"containers": [{"image": "x"}]}}}),
]


@pytest.mark.parametrize(("path", "words", "spec"), DOUBTS, ids=[f"{c[0]}-{n}" for n, c in enumerate(DOUBTS)])
def test_what_is_accepted_with_a_doubt(path: str, words: str, spec: dict[str, Any]) -> None:
    (found,) = doubts(parsed(**spec).spec)
    assert found.path == f"spec.{path}"
    assert words in found.message


def test_what_is_negative_counts_as_none() -> None:
    spec = parsed(minReadySeconds=-1, revisionHistoryLimit=-2).spec
    assert (spec.min_ready_s, spec.kept_revisions) == (0, 0)


def test_a_schedule() -> None:
    update = {
        "type": "ScheduledUpdate",
        "scheduledUpdate": {"startTime": "2030-01-01T00:00:00+01:00", "duration": "1h30m", "flags": ["MAINT"]},
    }
    found = parsed(updateStrategy=update).spec.update_strategy.scheduled_update
    assert found is not None
    assert (found.start_time, found.duration, found.flags) == (
        datetime(2029, 12, 31, 23, tzinfo=UTC),
        5400.0,
        ["MAINT"],
    )


TYPES: list[tuple[type[Shape], tuple[str, ...]]] = [
    (NodeSetSpec, ()),
    (LocalRef, ("controllerRef",)),
    (Ssh, ("ssh",)),
    (KeyRef, ("ssh", "sssdConfRef")),
    (Partition, ("partition",)),
    (UpdateStrategy, ("updateStrategy",)),
    (RollingUpdate, ("updateStrategy", "rollingUpdate")),
    (ScheduledUpdate, ("updateStrategy", "scheduledUpdate")),
    (Retain, ("persistentVolumeClaimRetentionPolicy",)),
]
FILLED = {"slurmd", "logfile", "template"}
"""The type has them always: they are made canonical before."""
BY_TEXT = {"scheduledUpdate.duration": "30m", "rollingUpdate.maxUnavailable": "25%"}


@pytest.mark.parametrize(("model", "path"), TYPES, ids=[t.__name__ for t, _ in TYPES])
def test_types_and_definitions_have_the_same_fields(model: type[Shape], path: tuple[str, ...]) -> None:
    node = made(NodeSetSpec)
    for step in path:
        node = node["properties"][step]
    fields = {to_camel(name): field for name, field in model.model_fields.items()}
    assert set(fields) == set(node["properties"])
    types_need = {name for name, field in fields.items() if field.is_required()} - FILLED
    # `enabled` is needed by the definition where the object is given; the type goes by its default.
    assert types_need == set(node.get("required", ())) - {"enabled"}
    for name, schema in node["properties"].items():
        if "default" in schema and f"{(*path, '')[-2] if path else ''}.{name}" not in BY_TEXT:
            assert fields[name].default == schema["default"], name


def test_defaults_that_are_written_as_text() -> None:
    update = made(NodeSetSpec)["properties"]["updateStrategy"]["properties"]
    assert MaxUnavailable().given == update["rollingUpdate"]["properties"]["maxUnavailable"]["default"] == "25%"
    assert update["scheduledUpdate"]["properties"]["duration"]["default"] == "30m"
    assert ScheduledUpdate().duration == 1800.0
