"""Names of pods, hosts, claims and shared objects."""

from __future__ import annotations

import pytest

from slinkytui.backend.controllers.objects.marks import selector_text
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
from tests.rules import case, holds


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        case("I1", "first", "foo-0", ("foo", 0)),
        case("I1", "second", "bar-1", ("bar", 1)),
        case("C4 C5", "another set's", "foo-gpu-1234", ("foo-gpu", 1234)),
        case("I4", "padded", "foo-007", ("foo", 7)),
        case("", "the last of 32 bits", "foo-2147483647", ("foo", 2147483647)),
        case("", "beyond 32 bits", "foo-2147483648", ("foo", -1)),
        case("", "no number", "foo", ("", -1)),
        case("", "letters", "foo-x9", ("", -1)),
        case("", "empty", "", ("", -1)),
    ],
)
def test_ordinals_of_names(name: str, expected: tuple[str, int]) -> None:
    assert split_name(name) == expected


@pytest.mark.parametrize(
    ("prefix", "padding", "ordinal", "name", "host"),
    [
        case("I2", "plain", "", 0, 0, "gpu-0", "gpu-0"),
        case("I2", "padded", "", 3, 7, "gpu-007", "gpu-007"),
        case("I2", "wider than its padding", "", 2, 1234, "gpu-1234", "gpu-1234"),
        case("I2 X2", "host of its own", "n", 0, 4, "gpu-4", "n4"),
        case("I2", "both", "rack1-", 2, 4, "gpu-04", "rack1-04"),
    ],
)
def test_pods_and_hosts_of_ordinals(prefix: str, padding: int, ordinal: int, name: str, host: str) -> None:
    assert pod_name("gpu", ordinal, padding) == name
    assert host_of_ordinal(prefix, "gpu", ordinal, padding) == host


@pytest.mark.parametrize(
    ("node", "override", "prefix", "host"),
    [
        case("I10", "plain", "node-1", "", "", "node-1"),
        case("I10", "a dash at the end stays", "node-1-", "", "", "node-1-"),
        case("I10", "empty", "", "", "gpu-", ""),
        case("I10", "one letter", "a", "", "", "a"),
        case("I10", "AWS", "ip-10-0-0-1.us-west-2.compute.internal", "", "", "ip-10-0-0-1"),
        case("I10", "GCP", "gke-x.c.project.internal", "", "", "gke-x"),
        case("I10", "Azure", "aks-pool-1.internal.cloudapp.net", "", "", "aks-pool-1"),
        case("I6 I10 X36", "an override is taken as it stands", "node1.example", "Node.One", "gpu-", "Node.One"),
        case("I10", "an empty override is none", "node1.example", "", "", "node1"),
        case("W34", "the prefix of a NodeSet", "node1.example", "", "gpu-", "gpu-node1"),
    ],
)
def test_hosts_on_nodes(node: str, override: str, prefix: str, host: str) -> None:
    assert host_on_node(node, override, prefix) == host


@pytest.mark.parametrize(
    ("host", "words"),
    [
        case("", "plain", "gpu-1", ""),
        case("", "the longest", "a" * 63, ""),
        case("W34", "too long", "a" * 64, "more than 63"),
        case("W34", "a dot", "a.b-0", "no DNS label"),
        case("W34", "a capital", "Gpu-1", "no DNS label"),
        case("W34", "a dash at the end", "gpu-", "no DNS label"),
        case("W34", "empty", "", "no DNS label"),
        case("W34", "a line break", "gpu-1\n", "no DNS label"),
    ],
)
def test_hosts_that_no_pod_can_have(host: str, words: str) -> None:
    found = host_problem(host)
    assert words in found
    assert bool(found) == bool(words)


@holds("V14")
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
