"""The canonical form of pods and claims."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.crds.core import BadShape, canonical, shapes

CASES: list[tuple[str, str, Any, Any]] = [
    ("always-there", "Container", {}, {"name": "", "resources": {}}),
    ("containers-null", "PodSpec", {}, {"containers": None}),
    ("containers-empty", "PodSpec", {"containers": []}, {"containers": []}),
    ("unknown-gone", "PodSpec", {"containers": [], "nosuch": 1, "Hostname": "x"}, {"containers": []}),
    ("plain-false-gone", "PodSpec", {"containers": [], "hostNetwork": False, "hostname": ""}, {"containers": []}),
    (
        "pointed-false-stays", "PodSpec", {"containers": [], "enableServiceLinks": False, "terminationGracePeriodSeconds": 0},
        {"containers": [], "enableServiceLinks": False, "terminationGracePeriodSeconds": 0},
    ),
    ("empty-lists-gone", "PodSpec", {"containers": [], "tolerations": [], "nodeSelector": {}}, {"containers": []}),
    ("pointed-struct-stays", "PodSpec", {"containers": [], "securityContext": {}}, {"containers": [], "securityContext": {}}),
    ("nulls-gone", "PodSpec", {"containers": None, "affinity": None}, {"containers": None}),
    ("quantities", "ResourceRequirements", {"limits": {"cpu": 2, "memory": "1024Mi"}}, {"limits": {"cpu": "2", "memory": "1Gi"}}),
    ("inline-fields", "SecretKeySelector", {"name": "s"}, {"name": "s", "key": ""}),
    ("divisor", "ResourceFieldSelector", {"resource": "cpu"}, {"resource": "cpu", "divisor": "0"}),
    ("port-by-name", "HTTPGetAction", {"port": "slurmd"}, {"port": "slurmd"}),
    ("port-is-there", "HTTPGetAction", {}, {"port": 0}),
    ("texts-in-maps", "ObjectMeta", {"labels": {"a": None}}, {"labels": {"a": ""}}),
    (
        "in-depth", "[]Volume", [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
        [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {"resources": {}}}}}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_canonical_forms(kind: str, value: Any, expected: Any) -> None:
    assert canonical(value, kind) == expected
    assert canonical(expected, kind) == expected


BAD = [
    ("PodSpec", {"hostNetwork": "yes"}, "hostNetwork", "true or false"),
    ("PodSpec", {"containers": {}}, "containers", "a list, not an object"),
    (
        "PodSpec",
        {"containers": [{"env": [{"name": "A", "value": 5}]}]},
        "containers[0].env[0].value",
        "a text, not a number",
    ),
    ("PodSpec", {"terminationGracePeriodSeconds": 1.5}, "terminationGracePeriodSeconds", "a whole number"),
    ("PodSpec", {"priority": True}, "priority", "a whole number, not a boolean"),
    ("PodSpec", {"nodeSelector": {"a": 1}}, "nodeSelector.a", "a text"),
    ("PodSpec", {"securityContext": []}, "securityContext", "an object, not a list"),
    ("Container", {"resources": {"limits": {"cpu": "many"}}}, "resources.limits.cpu", "'many' is not a quantity"),
    ("Container", {"resources": {"limits": {"cpu": True}}}, "resources.limits.cpu", "a quantity"),
    ("Container", {"livenessProbe": {"httpGet": {"port": []}}}, "livenessProbe.httpGet.port", "a number or a text"),
]


@pytest.mark.parametrize(("kind", "value", "path", "words"), BAD, ids=[c[2] for c in BAD])
def test_the_field_that_is_wrong(kind: str, value: Any, path: str, words: str) -> None:
    with pytest.raises(BadShape) as found:
        canonical(value, kind)
    assert found.value.path == path
    assert words in found.value.message


def test_every_type_that_a_field_names_is_known() -> None:
    plain = {"string", "bool", "int", "byte", "float", "quantity", "either", "time", "any", "bytes"}
    kinds = {f.kind.lstrip("*[]{}") for fields in shapes().values() for f in fields.values()}
    assert kinds - plain <= set(shapes())
    assert shapes()["PodSpec"]["volumes"].key == "name"
    assert not shapes()["PodSpec"]["tolerations"].merges
