"""Claims: names and content."""

from __future__ import annotations

from slinkytui.backend.controllers.objects.claims import (
    build_claims,
    claims_of,
)
from tests.rules import holds
from tests.unit.controllers.objects.worlds import nodeset

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10240Mi"}}}
TEMPLATE = {
    "metadata": {"name": "data", "labels": {"tier": "fast", "app.kubernetes.io/name": "x"}, "annotations": {"a": "b"}},
    "spec": SPEC,
}


@holds("V14")
def test_claims_of_a_worker() -> None:
    assert claims_of(nodeset(), "0") == {}
    found = nodeset("foo", volumeClaimTemplates=[TEMPLATE, {"metadata": {"name": "test"}}])
    assert claims_of(found, "0") == {"data": "data-foo-0", "test": "test-foo-0"}
    made = build_claims(found, "node-1")[0]
    assert made["metadata"] == {
        "name": "data-foo-node-1",
        "namespace": "ns1",
        "annotations": {"a": "b"},
        "labels": {"tier": "fast", "app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "foo"},
    }
    assert made["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    assert "status" not in made
