"""What the definitions of our six kinds let in and what they refuse, with the field and the words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kube.world import Hand

KEY = {"name": "keys", "key": "k"}
KEYS = {"slurmKeyRef": KEY, "jwtKeyRef": KEY}
REF = {"name": "slurm"}
WHERE = {"host": "ctld.example", "port": 6817}
HA = "ha needs persistence.existingClaim: a claim that all slurmctld can mount (ReadWriteMany)"
NO_JWT = "jwtKeyRef or jwtHs256KeyRef must be set when external is false"

GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "controller": ("controllers", KEYS),
    "controller with the old key": ("controllers", {"slurmKeyRef": KEY, "jwtHs256KeyRef": KEY}),
    "controller outside": ("controllers", {"external": True, "externalConfig": WHERE}),
    "controller with a backup": (
        "controllers", {**KEYS, "ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "state"}},
    ),
    "accounting": ("accountings", {**KEYS, "storageConfig": {"host": "db", "database": "acct", "passwordKeyRef": KEY}}),
    "nodeset": ("nodesets", {"controllerRef": REF, "slurmd": {"image": "slurmd"}}),
    "nodeset with a field of tomorrow": ("nodesets", {"controllerRef": REF, "template": {"spec": {"new": {"x": 1}}}}),
    "login set": ("loginsets", {"controllerRef": REF, "sssdConfRef": KEY}),
    "rest api": ("restapis", {"controllerRef": REF}),
    "token": ("tokens", {"jwtKeyRef": KEY, "username": "ada"}),
}  # fmt: skip
BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "controller without keys": ("controllers", {}, "slurmKeyRef must be set when external is false"),
    "controller without a key for tokens": ("controllers", {"slurmKeyRef": KEY}, NO_JWT),
    "controller outside and nowhere": (
        "controllers", {"external": True}, "externalConfig must be set when external is true",
    ),
    "backups without a volume": ("controllers", {**KEYS, "ha": {"enabled": True}, "persistence": {"enabled": True}}, HA),
    "backups without any persistence": ("controllers", {**KEYS, "ha": {"enabled": True}}, HA),
    "a key without its key": ("controllers", {**KEYS, "slurmKeyRef": {"name": "keys"}}, "spec.slurmKeyRef.key: Required value"),
    "nodeset without a controller": ("nodesets", {"slurmd": {"image": "x"}}, "spec.controllerRef: Required value"),
    "replicas in words": ("nodesets", {"controllerRef": REF, "replicas": "two"}, "spec.replicas: Invalid value: \"string\""),
    "another strategy": (
        "nodesets", {"controllerRef": REF, "updateStrategy": {"type": "Recreate"}}, "spec.updateStrategy.type: Unsupported value",
    ),
    "a schedule without times": (
        "nodesets", {"controllerRef": REF, "updateStrategy": {"type": "ScheduledUpdate"}},
        "scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate",
    ),
    "rest api without a controller": ("restapis", {}, "spec.controllerRef: Required value"),
    "token without a key": ("tokens", {"username": "ada"}, "jwtKeyRef or jwtHs256KeyRef must be set"),
}  # fmt: skip


def at(hand: Hand, plural: str) -> str:
    return f"/apis/slinky.slurm.net/v1beta1/namespaces/{hand.space}/{plural}"


def body(plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    kinds = {"restapis": "RestApi", "loginsets": "LoginSet", "nodesets": "NodeSet"}
    kind = kinds.get(plural, plural.removesuffix("s").title())
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize("name", GOOD)
async def test_let_in(hand: Hand, name: str) -> None:
    plural, spec = GOOD[name]
    made = await hand.make(at(hand, plural), body(plural, spec))
    assert {k: v for k, v in made["spec"].items() if k in spec and not isinstance(v, dict)} == {
        k: v for k, v in spec.items() if not isinstance(v, dict)
    }


@pytest.mark.parametrize("name", BAD)
async def test_refused(hand: Hand, name: str) -> None:
    plural, spec, words = BAD[name]
    status, found = await hand.ask("POST", at(hand, plural), body(plural, spec), kind="application/json")
    assert (status, found["reason"]) == (422, "Invalid")
    assert words in found["message"]
