"""Controllers as far as workers need them, and durations."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.crds.controller import Controller, parse_controller
from slinkytui.backend.crds.shared import BadResource, parse_duration

KEY = {"name": "auth", "key": "slurm.key"}
OUTSIDE = {"external": True, "externalConfig": {"host": "ctld.example", "port": 7000}}


def parse(**spec: Any) -> Controller | BadResource:
    return parse_controller({"metadata": {"name": "c1", "namespace": "ns1"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "server", "cluster", "jwt", "replicas"),
    [
        ({"slurmKeyRef": KEY}, "c1-controller.ns1:6817", "ns1_c1", None, 1),
        ({"slurmKeyRef": KEY, "clusterName": "prod", "jwtHs256KeyRef": {"name": "old", "key": "k"}}, "c1-controller.ns1:6817", "prod", "old", 1),
        ({"slurmKeyRef": KEY, "jwtKeyRef": {"name": "new", "key": "k"}, "jwtHs256KeyRef": {"name": "old", "key": "k"}},
         "c1-controller.ns1:6817", "ns1_c1", "new", 1),
        ({**OUTSIDE, "ha": {"enabled": True}}, "ctld.example:7000", "ns1_c1", None, 1),
        ({"slurmKeyRef": KEY, "ha": {"enabled": True}}, "c1-controller.ns1:6817", "ns1_c1", None, 2),
        ({"slurmKeyRef": KEY, "ha": {"enabled": True, "backups": 2}}, "c1-controller.ns1:6817", "ns1_c1", None, 3),
        ({"slurmKeyRef": KEY, "externalConfig": {"host": "h", "port": 1}}, "c1-controller.ns1:6817", "ns1_c1", None, 1),
    ],
    ids=["plain", "old-key", "both-keys", "outside", "backup", "backups", "address-without-external"],
)  # fmt: skip
def test_what_workers_need(spec: dict[str, Any], server: str, cluster: str, jwt: str | None, replicas: int) -> None:
    found = parse(**spec)
    assert isinstance(found, Controller)
    assert (found.conf_server, found.cluster, found.spec.jwt_key and found.spec.jwt_key.name, found.replicas) == (
        server,
        cluster,
        jwt,
        replicas,
    )


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({}, "spec.slurmKeyRef"),
        ({"slurmKeyRef": {"name": "", "key": "k"}}, "spec.slurmKeyRef"),
        ({"slurmKeyRef": {"name": "a"}}, "spec.slurmKeyRef.key"),
        ({"external": True}, "spec.externalConfig"),
        ({"external": True, "externalConfig": {"host": "h", "port": 70000}}, "spec.externalConfig.port"),
        ({"external": True, "externalConfig": {"host": "", "port": 1}}, "spec.externalConfig.host"),
    ],
)
def test_what_cannot_be_used_names_its_field(spec: dict[str, Any], path: str) -> None:
    found = parse(**spec)
    assert isinstance(found, BadResource)
    assert found.path == path


@pytest.mark.parametrize("odd", [{}, {"metadata": {"name": "c"}, "spec": 5}, {"metadata": [], "spec": None}])
def test_nothing_raises(odd: dict[str, Any]) -> None:
    assert isinstance(parse_controller(odd), BadResource)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("15m", 900),
        ("1h30m", 5400),
        ("2h45m30s", 9930),
        ("1.5s", 1.5),
        ("500ms", 0.5),
        ("-1m", -60),
        (".5h", 1800),
        ("1us", 1e-6),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "1d", "m", "1h 30m", "one hour", "1.h.", "h1"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)
