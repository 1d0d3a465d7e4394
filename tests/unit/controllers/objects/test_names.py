"""Names of pods, hosts, claims and shared objects."""

from __future__ import annotations

import pytest

from slinkytui.backend.controllers.objects.marks import HOSTNAME_OVERRIDE, selector_text
from slinkytui.backend.controllers.objects.names import (
    claim_name,
    cluster_domain,
    host_of_ordinal,
    host_on_node,
    host_problem,
    pod_name,
    search_domain,
    split_name,
)
from tests.unit.controllers.objects.worlds import nodeset


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("foo-0", ("foo", 0)),
        ("bar-1", ("bar", 1)),
        ("foo-gpu-1234", ("foo-gpu", 1234)),
        ("foo-007", ("foo", 7)),
        ("foo-2147483647", ("foo", 2147483647)),
        ("foo-2147483648", ("foo", -1)),
        ("foo", ("", -1)),
        ("foo-x9", ("", -1)),
        ("", ("", -1)),
    ],
)
def test_ordinals_of_names(name: str, expected: tuple[str, int]) -> None:
    assert split_name(name) == expected


@pytest.mark.parametrize(
    ("prefix", "padding", "ordinal", "name", "host"),
    [
        ("", 0, 0, "gpu-0", "gpu-0"),
        ("", 3, 7, "gpu-007", "gpu-007"),
        ("", 2, 1234, "gpu-1234", "gpu-1234"),
        ("n", 0, 4, "gpu-4", "n4"),
        ("rack1-", 2, 4, "gpu-04", "rack1-04"),
    ],
)
def test_pods_and_hosts_of_ordinals(prefix: str, padding: int, ordinal: int, name: str, host: str) -> None:
    found = nodeset(ordinalPadding=padding, template={"spec": {"hostname": prefix} if prefix else {}})
    assert (pod_name(found, ordinal), host_of_ordinal(found, ordinal)) == (name, host)


@pytest.mark.parametrize(
    ("node", "override", "host"),
    [
        ("node-1", None, "node-1"),
        ("node-1-", None, "node-1-"),
        ("", None, ""),
        ("a", None, "a"),
        ("ip-10-0-0-1.us-west-2.compute.internal", None, "ip-10-0-0-1"),
        ("gke-x.c.project.internal", None, "gke-x"),
        ("aks-pool-1.internal.cloudapp.net", None, "aks-pool-1"),
        ("node1.example", "Node.One", "Node.One"),
        ("node1.example", "", "node1"),
    ],
)
def test_hosts_on_nodes(node: str, override: str | None, host: str) -> None:
    assert host_on_node(node, {} if override is None else {HOSTNAME_OVERRIDE: override}) == host


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("gpu-1", ""),
        ("a" * 63, ""),
        ("a" * 64, "more than 63"),
        ("a.b-0", "no DNS label"),
        ("Gpu-1", "no DNS label"),
        ("gpu-", "no DNS label"),
        ("", "no DNS label"),
        ("gpu-1\n", "no DNS label"),
    ],
)
def test_W34_hosts_that_no_pod_can_have(host: str, words: str) -> None:
    found = host_problem(host)
    assert words in found
    assert bool(found) == bool(words)


def test_claims_are_named_by_template_set_and_identity() -> None:
    assert claim_name("datadir", "foo", "0") == "datadir-foo-0"
    assert claim_name("datadir", "foo", "node-1") == "datadir-foo-node-1"


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("search ns1.svc.k8s.example svc.k8s.example k8s.example\nnameserver 10.0.0.1", "k8s.example"),
        ("nameserver 10.0.0.1\nsearch svc.cluster.local.", "cluster.local"),
        ("search corp.example", "cluster.local"),
        ("", "cluster.local"),
    ],
    ids=["own", "dot", "host", "empty"],
)
def test_the_domain_of_the_cluster(text: str, domain: str) -> None:
    assert cluster_domain(text) == domain
    assert search_domain("c1", "ns1", domain) == f"slurm-workers-c1.ns1.svc.{domain}"


def test_the_selector_as_text() -> None:
    assert selector_text("foo") == "app.kubernetes.io/instance=foo,app.kubernetes.io/name=slurmd"
