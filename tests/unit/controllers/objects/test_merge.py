"""A user's containers and pod template over the operator's."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.objects.merge import container, merged, pod_spec, pruned
from tests.rules import case, holds


def names(found: list[dict[str, Any]], key: str = "name") -> list[Any]:
    return [f[key] for f in found]


ORDERS = [
    ("new-ones-first", "ab", "xy", "xyab"),
    ("nothing-new", "abc", "b", "abc"),
    ("patch-order-wins", "abc", "ca", "bca"),
    ("before-what-they-stood-before", "abcd", "xd", "xabcd"),
    ("new-behind-known", "abc", "bx", "abxc"),
    ("no-base", "", "ba", "ba"),
]


@pytest.mark.parametrize(("base", "patch", "order"), [c[1:] for c in ORDERS], ids=[c[0] for c in ORDERS])
def test_the_order_of_merged_lists(base: str, patch: str, order: str) -> None:
    found = merged(
        {"env": [{"name": n, "value": "base"} for n in base]}, {"env": [{"name": n} for n in patch]}, "Container"
    )
    assert "".join(names(found["env"])) == order
    assert [e.get("value") for e in found["env"]] == ["base" if n in base else None for n in order]


KEYS = [
    ("Container", "ports", "containerPort", 6818, 22),
    ("Container", "volumeMounts", "mountPath", "/etc/slurm", "/data"),
    ("Container", "volumeDevices", "devicePath", "/dev/a", "/dev/b"),
    ("PodSpec", "volumes", "name", "slurm-etc", "data"),
    ("PodSpec", "imagePullSecrets", "name", "one", "two"),
    ("PodSpec", "hostAliases", "ip", "10.0.0.1", "10.0.0.2"),
    ("PodSpec", "topologySpreadConstraints", "topologyKey", "zone", "rack"),
    ("PodSpec", "resourceClaims", "name", "one", "two"),
]


@pytest.mark.parametrize(("kind", "field", "key", "old", "new"), KEYS, ids=[c[1] for c in KEYS])
def test_lists_with_a_merge_key(kind: str, field: str, key: str, old: Any, new: Any) -> None:
    base = {field: [{key: old, "kept": 1}]}
    found = merged(base, {field: [{key: old, "more": 2}, {key: new}]}, kind)
    assert found[field] == [{key: old, "kept": 1, "more": 2}, {key: new}]
    assert base == {field: [{key: old, "kept": 1}]}


@pytest.mark.parametrize("field", ["tolerations", "readinessGates"])
def test_lists_without_one_are_replaced(field: str) -> None:
    assert merged({field: [{"key": "a"}]}, {field: [{"key": "b"}]}, "PodSpec") == {field: [{"key": "b"}]}


def test_maps_are_merged_and_lists_in_them_replaced() -> None:
    base = {
        "securityContext": {"privileged": True, "capabilities": {"add": ["A", "B"]}},
        "resources": {"limits": {"cpu": "250m", "memory": "500Mi"}},
    }
    patch = {"securityContext": {"capabilities": {"add": ["C"]}}, "resources": {"limits": {"cpu": "100m"}}}
    assert merged(base, patch, "Container") == {
        "securityContext": {"privileged": True, "capabilities": {"add": ["C"]}},
        "resources": {"limits": {"cpu": "100m", "memory": "500Mi"}},
    }  # fmt: skip


def test_what_the_base_lacks_is_taken_as_it_stands() -> None:
    both = [{"topologyKey": "zone", "maxSkew": 1}, {"topologyKey": "zone", "maxSkew": 2}]
    assert merged({}, {"topologySpreadConstraints": both}, "PodSpec") == {"topologySpreadConstraints": both}


@holds("Q4")
def test_an_explicit_false_wins_and_empty_things_say_nothing() -> None:
    user = {
        "name": "",
        "image": None,
        "resources": {},
        "securityContext": {"privileged": False, "runAsUser": 0, "seLinuxOptions": {"user": ""}},
    }
    assert pruned(user) == {"securityContext": {"privileged": False, "runAsUser": 0}}
    found = container({"name": "slurmd", "securityContext": {"privileged": True}}, user)
    assert found == {"name": "slurmd", "securityContext": {"privileged": False, "runAsUser": 0}}


def test_arguments_are_appended_and_commands_replaced() -> None:
    found = container({"args": ["-a", "-b"], "command": ["x"]}, {"args": ["-c"], "command": ["y"], "name": "mine"})
    assert found == {"args": ["-a", "-b", "-c"], "command": ["y"], "name": "mine"}
    assert "args" not in container({"name": "a"}, {"image": "b"})


PROBE = {"httpGet": {"path": "/livez"}, "failureThreshold": 6}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        case("W58", "another handler", {"exec": {"command": ["true"]}}, {"exec": {"command": ["true"]}, "failureThreshold": 6}),
        case("Q3 W58", "no handler", {"failureThreshold": 60}, {"httpGet": {"path": "/livez"}, "failureThreshold": 60}),
        case("", "the same handler", {"httpGet": {"port": 1}}, {"httpGet": {"port": 1}, "failureThreshold": 6}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("probe", ["livenessProbe", "readinessProbe", "startupProbe"])
def test_a_handler_replaces_the_base_handler(probe: str, user: dict[str, Any], expected: dict[str, Any]) -> None:
    assert container({probe: PROBE}, {probe: user})[probe] == expected


def test_a_hook_of_another_kind_replaces_ours() -> None:
    base = {"lifecycle": {"preStop": {"exec": {"command": ["down"]}}}}
    found = container(
        base, {"lifecycle": {"preStop": {"httpGet": {"path": "/stop"}}, "postStart": {"exec": {"command": ["up"]}}}}
    )
    assert found["lifecycle"] == {"preStop": {"httpGet": {"path": "/stop"}}, "postStart": {"exec": {"command": ["up"]}}}


def test_the_containers_of_a_template_stand_behind_ours() -> None:
    base = {"containers": [{"name": "slurmd"}], "initContainers": [{"name": "logfile"}], "volumes": [{"name": "v"}]}
    found = pod_spec(base, {"containers": [{"name": "side"}], "initContainers": None, "volumes": [{"name": "w"}]})
    assert names(found["containers"]) == ["slurmd", "side"]
    assert names(found["initContainers"]) == ["logfile"]
    assert names(found["volumes"]) == ["w", "v"]
