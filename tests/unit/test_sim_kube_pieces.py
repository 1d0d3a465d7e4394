"""The pieces of the simulated API server that no wire shows one by one: sets of fields, protobuf, ages, budgets."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend import crds
from slinkytui.backend.sim.cells import duration, pod_status, selector
from slinkytui.backend.sim.fieldset import ABSENT, compare, fields, from_v1, merged, shown, to_v1, without
from slinkytui.backend.sim.protobuf import decoded
from slinkytui.backend.sim.schema import recording, schema_of
from slinkytui.backend.sim.validate import RULES

POD = schema_of("", "v1", "Pod")
_words = st.text("abc/.", min_size=1, max_size=3)
_leaves = st.one_of(st.integers(), st.text(max_size=3), st.booleans(), st.lists(st.integers(), max_size=2))
_trees = st.recursive(_leaves, lambda inner: st.dictionaries(_words, inner, max_size=3), max_leaves=12)
_maps = st.dictionaries(_words, _trees, max_size=4)


@given(_maps)
def test_field_sets_survive_their_json(found: dict[str, Any]) -> None:
    paths = fields(found, {})
    assert from_v1(to_v1(paths)) == paths


@given(_maps, _maps)
def test_a_merge_has_all_that_was_applied(live: dict[str, Any], applied: dict[str, Any]) -> None:
    both = merged(live, applied, {})
    kept = fields(applied, {}) if applied else set()
    moved = compare(applied, both, {})
    assert not moved.removed and not {p for p in moved.modified if p in kept and p[:-1] in kept}
    assert merged(both, applied, {}) == both


@given(_maps)
def test_nothing_is_left_without_everything(found: dict[str, Any]) -> None:
    paths = fields(found, {})
    assert not found or without(found, paths, {}) is ABSENT
    assert compare(found, found, {}).added == set()
    assert without(found, set(), {}) == found


def test_list_elements_are_named_by_their_keys() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    pod = {"spec": {"containers": [{"name": "a", "ports": ports}]}, "metadata": {"finalizers": ["x.io/a"]}}
    names = {shown(p) for p in fields(pod, POD)}
    assert '.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]' in names
    assert '.spec.containers[name="a"].ports[containerPort=80,protocol="UDP"].protocol' in names
    assert '.metadata.finalizers[="x.io/a"]' in names


# Protobuf, written by hand as a client would.


def _number(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _part(field: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _number(field << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(field << 3 | 2) + _number(len(data)) + data


def _body(api: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + _part(1, _part(1, api) + _part(2, kind)) + _part(2, raw) + _part(3, "") + _part(4, "")


def test_a_secret_in_protobuf() -> None:
    meta = _part(1, "s") + _part(3, "") + _part(8, b"") + _part(11, _part(1, "a") + _part(2, "b"))
    body = _body("v1", "Secret", _part(1, meta) + _part(2, _part(1, "k") + _part(2, b"\x00v")) + _part(3, "Opaque"))
    assert decoded(body) == {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "b"}}, "data": {"k": "AHY="}, "type": "Opaque",
    }  # fmt: skip


def test_inline_structs_quantities_and_either() -> None:
    number = recording()["messages"]["io.k8s.api.core.v1.PodSpec"]
    volumes = next(int(n) for n, (name, _, _) in number.items() if name == "volumes")
    secret = next(
        int(n)
        for n, (name, *_) in recording()["messages"]["io.k8s.api.core.v1.VolumeSource"].items()
        if name == "secret"
    )
    volume = _part(1, "v") + _part(2, _part(secret, _part(1, "s")))
    found = decoded(_body("v1", "Pod", _part(2, _part(volumes, volume))))
    assert found is not None and found["spec"]["volumes"] == [{"name": "v", "secret": {"secretName": "s"}}]
    budget = _part(1, _part(1, 1) + _part(2, 0) + _part(3, "50%"))
    found = decoded(_body("policy/v1", "PodDisruptionBudget", _part(2, budget)))
    assert found is not None and found["spec"] == {"minAvailable": "50%"}
    found = decoded(
        _body("policy/v1", "PodDisruptionBudget", _part(2, _part(1, _part(1, 0) + _part(2, 3) + _part(3, ""))))
    )
    assert found is not None and found["spec"] == {"minAvailable": 3}


def test_options_of_a_deletion() -> None:
    raw = _part(1, 0) + _part(2, _part(1, "u")) + _part(4, "Background") + _part(5, "All")
    assert decoded(_body("policy/v1", "DeleteOptions", raw)) == {
        "apiVersion": "policy/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": "u"},
        "propagationPolicy": "Background", "dryRun": ["All"],
    }  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\x00\x0a\xff", b"k8s\x00\x0b", b"k8s\x00" + b"\xff" * 12])
def test_what_is_no_body_raises(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"protobuf|cut off|wire type"):
        decoded(body)


def test_an_unknown_kind_is_none_and_unknown_fields_are_skipped() -> None:
    assert decoded(_body("v1", "Nothing", b"")) is None
    odd = _number(99 << 3 | 1) + struct.pack("<d", 1.0) + _part(98, 7)
    assert decoded(_body("v1", "Namespace", _part(1, _part(1, "n")) + odd)) == {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"},
    }  # fmt: skip


# What is printed.


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "<invalid>"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"), (10_799, "179m"), (10_800, "3h"),
     (12_000, "3h20m"), (28_800, "8h"), (172_800, "2d"), (180_000, "2d2h"), (700_000, "8d"), (63_072_000, "2y"), (64_000_000, "2y10d")],
)  # fmt: skip
def test_ages(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_selectors_are_written_as_kubectl_reads_them() -> None:
    terms = [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "Exists"},
        {"key": "c", "operator": "DoesNotExist"},
    ]
    assert selector({"matchLabels": {"m": "1"}, "matchExpressions": terms}) == "m=1,a in (x,y),b,!c"
    assert (selector({"a": "b"}), selector(None), selector({"matchLabels": {}})) == ("a=b", "<none>", "<none>")


def test_a_pod_that_goes_says_so() -> None:
    pod = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}
    assert pod_status(pod) == "Terminating"


def test_every_rule_of_the_definitions_is_understood() -> None:
    def rules(node: dict[str, Any]) -> set[str]:
        own = {r["rule"] for r in node.get("x-kubernetes-validations", ())}
        return own.union(*(rules(n) for n in (node.get("properties") or {}).values()))

    said = set().union(
        *(rules(crds.document(d)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]) for d in crds.DEFINITIONS)
    )
    assert said == RULES.keys()
