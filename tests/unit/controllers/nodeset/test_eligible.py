"""Where a daemon worker would run, by what its template asks of a machine."""

from __future__ import annotations

from typing import Any

import pytest

from slinkytui.backend.controllers.nodeset.eligible import fit
from slinkytui.backend.controllers.nodeset.spec import spec_of
from slinkytui.backend.models import KubeNode
from tests.rules import case
from tests.unit.controllers.nodeset.worlds import kube
from tests.unit.controllers.objects.worlds import nodeset

FAST = {"matchExpressions": [{"key": "speed", "operator": "In", "values": ["fast"]}]}
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
MINE = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("template", "node", "runs"),
    [
        case("I9", "nothing is asked", {}, kube("n1"), True),
        case("I9", "an affinity without terms", {"affinity": {"podAntiAffinity": {}}}, kube("n1"), True),
        case("I9", "its affinity fits", affinity(FAST), kube("n1", labels={"speed": "fast"}), True),
        case("I9", "its affinity does not", affinity(FAST), kube("n1", labels={"speed": "slow"}), False),
        case("I9", "any of its terms", affinity(FAST, NAMED), kube("n1"), True),
        case("I9", "none of its terms", affinity(FAST, NAMED), kube("n2"), False),
        case("I9", "its node selector fits", {"nodeSelector": {"a": "b"}}, kube("n1", labels={"a": "b"}), True),
        case("I9", "its node selector does not", {"nodeSelector": {"a": "b"}}, kube("n1"), False),
        case("I9", "its tolerations", {"tolerations": MINE}, kube("n1", taints=("gpu=yes:NoSchedule",)), True),
        case("I9", "not its tolerations", {}, kube("n1", taints=("gpu=yes:NoSchedule",)), False),
        case("I9", "the workers' own taint", {}, kube("n1", taints=("nodeset.slinky.slurm.net/worker:NoExecute",)), True),
    ],
)  # fmt: skip
def test_the_machines_that_a_template_takes(template: dict[str, Any], node: KubeNode, runs: bool) -> None:
    spec = spec_of(nodeset(scalingMode="DaemonSet", template={"spec": template}))
    assert fit(node, spec).run is runs
