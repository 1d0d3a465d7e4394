"""What a pass writes beside its pods: nothing that is there already, whatever else stands in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.blueprint import revise, shared
from slinkytui.backend.controllers.nodeset.decision import Apply, ForgetRevision, RankRevision
from slinkytui.backend.controllers.objects.marks import HASH
from slinkytui.backend.controllers.objects.revision import build_revision
from slinkytui.backend.crds.nodeset import NodeSet, parse_nodeset
from slinkytui.backend.models import Key, Manifest, Meta


def nodeset(image: str = "slurmd:1", **spec: Any) -> NodeSet:
    found = parse_nodeset({
        "metadata": {"name": "gpu", "namespace": "slurm", "uid": "set"},
        "spec": {"controllerRef": {"name": "ctl"}, "slurmd": {"image": image}, **spec},
    })  # fmt: skip
    assert isinstance(found, NodeSet)
    return found


def held(body: dict[str, Any], *, listed: bool = False, uid: str = "u") -> Manifest:
    """The object in the cache; `listed`: out of a list, whose items do not say what they are."""
    meta = body["metadata"]
    labels = tuple(sorted((meta.get("labels") or {}).items()))
    body = {k: v for k, v in body.items() if not listed or k not in ("apiVersion", "kind")}
    return Manifest(
        Key("slurm", meta["name"]), Meta(uid, "1", labels=labels, owner_uid="set"), msgspec.json.encode(body)
    )


def made(one: NodeSet) -> dict[str, Manifest]:
    effects = shared(one, [one], {}, {}, {})
    assert all(isinstance(e, Apply) and not e.exists for e in effects)
    return {e.plural: held(dict(e.body)) for e in effects if isinstance(e, Apply)}


@pytest.mark.parametrize("listed", [True, False])
def test_objects_that_are_right_are_left_alone(listed: bool) -> None:
    one = nodeset()
    found = {
        plural: held(msgspec.json.decode(m.body), listed=listed) for plural, m in made(one).items()
    }  # fmt: skip
    services = {m.id.name: m for p, m in found.items() if p == "services"}
    budgets = {m.id.name: m for p, m in found.items() if p == "poddisruptionbudgets"}
    assert shared(one, [one], services, budgets, {}) == []


def test_a_budget_that_counts_replicas_is_replaced() -> None:
    """W5."""
    one = nodeset()
    body = msgspec.json.decode(made(one)["poddisruptionbudgets"].body)
    body["spec"] = {"maxUnavailable": 0, "selector": body["spec"]["selector"]}
    services = {m.id.name: m for p, m in made(one).items() if p == "services"}
    (patch,) = shared(one, [one], services, {body["metadata"]["name"]: held(body)}, {})
    assert isinstance(patch, Apply)
    assert patch.exists
    assert patch.body["spec"]["maxUnavailable"] is None
    assert patch.body["spec"]["minAvailable"] == 2**31 - 1


def test_a_revision_that_is_there_is_found_without_our_labels() -> None:
    """W28: found by its owner, as other operators leave it."""
    body = build_revision(nodeset(), 1)
    body["metadata"]["labels"] = {HASH: body["metadata"]["labels"][HASH]}
    found = revise(nodeset(), [held(body)], [body["metadata"]["name"]], [])
    assert (found.hash, found.effects) == (body["metadata"]["labels"][HASH], ())


def test_going_back_ranks_the_old_revision_first_again() -> None:
    first, second = build_revision(nodeset("slurmd:1"), 1), build_revision(nodeset("slurmd:2"), 2)
    names = [r["metadata"]["name"] for r in (first, second)]
    used = [second["metadata"]["labels"][HASH]]
    found = revise(nodeset("slurmd:1"), [held(first, uid="1"), held(second, uid="2")], names, used)
    assert found.hash == first["metadata"]["labels"][HASH]
    assert found.effects == (RankRevision(names[0], 3),)


def test_revisions_of_no_pod_go_beyond_the_limit() -> None:
    old = [build_revision(nodeset(f"slurmd:{i}"), i) for i in range(1, 5)]
    rows = [held(r, uid=str(i)) for i, r in enumerate(old)]
    names = [r["metadata"]["name"] for r in old]
    found = revise(nodeset("slurmd:4", revisionHistoryLimit=1), rows, names, [old[1]["metadata"]["labels"][HASH]])
    assert found.effects == (ForgetRevision(names[0], "0"),)
