"""What a pass writes beside its pods: nothing that is there already, whatever else stands in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slinkytui.backend.controllers.nodeset.blueprint import Revised, Workshop, revise, shared, with_padding_in_use
from slinkytui.backend.controllers.nodeset.decision import Apply, CreatePod, ForgetRevision, RankRevision
from slinkytui.backend.controllers.objects.marks import HASH
from slinkytui.backend.controllers.objects.revision import build_revision, revision_data
from slinkytui.backend.crds.controller import Controller, parse_controller
from slinkytui.backend.crds.nodeset import NodeSet, parse_nodeset
from slinkytui.backend.models import Key, Manifest, Meta, Pod
from tests.rules import case, holds
from tests.unit.controllers.nodeset.worlds import pod
from tests.unit.controllers.objects.worlds import required_node


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


@holds("W5")
def test_a_budget_that_counts_replicas_is_replaced() -> None:
    one = nodeset()
    body = msgspec.json.decode(made(one)["poddisruptionbudgets"].body)
    body["spec"] = {"maxUnavailable": 0, "selector": body["spec"]["selector"]}
    services = {m.id.name: m for p, m in made(one).items() if p == "services"}
    (patch,) = shared(one, [one], services, {body["metadata"]["name"]: held(body)}, {})
    assert isinstance(patch, Apply)
    assert patch.exists
    assert patch.body["spec"]["maxUnavailable"] is None
    assert patch.body["spec"]["minAvailable"] == 2**31 - 1


@holds("Q20")
def test_a_service_that_somebody_changed_is_mended() -> None:
    one = nodeset()
    body = msgspec.json.decode(made(one)["services"].body)
    body["spec"]["publishNotReadyAddresses"] = False
    budgets = {m.id.name: m for p, m in made(one).items() if p == "poddisruptionbudgets"}
    (patch,) = shared(one, [one], {body["metadata"]["name"]: held(body)}, budgets, {})
    assert isinstance(patch, Apply)
    assert patch.body["spec"]["publishNotReadyAddresses"] is True


def revision(
    at: int, *, number: int | None = None, labels: dict[str, str] | None = None, collisions: int = 0
) -> Manifest:
    """The revision of image `slurmd:<at>`."""
    body = build_revision(nodeset(f"slurmd:{at}"), at if number is None else number, collisions)
    if labels is not None:
        body["metadata"]["labels"] = labels
    return held(body, uid=str(at))


def name_of(at: int) -> str:
    return revision(at).id.name


def hash_of(at: int) -> str:
    return dict(revision(at).meta.labels)[HASH]


def acts(found: Revised) -> list[str]:
    """What is written, with the image's number in place of a name."""
    names = {name_of(i): str(i) for i in range(1, 7)}
    words = []
    for effect in found.effects:
        match effect:
            case Apply():
                words.append(f"create {names[effect.body['metadata']['name']]} as {effect.body['revision']}")
            case RankRevision():
                words.append(f"rank {names[effect.name]} as {effect.number}")
            case ForgetRevision():
                words.append(f"forget {names[effect.name]}")
            case _:
                raise AssertionError(effect)
    return words


REVISIONS = [
    case("R4", "the first", 1, 0, [], [], [], ["create 1 as 1"]),
    case("R9 R11 W28", "a second look", 1, 0, [revision(1)], [], [1], []),
    case("R5 W28", "found without our labels", 1, 0, [revision(1, labels={HASH: hash_of(1)})], [], [1], []),
    case("R6", "another set's", 1, 0, [], [revision(2)], [], ["create 1 as 1"]),
    case("R9", "all alike", 1, 5, [revision(1, number=1), revision(1, number=2)], [], [], []),
    case("R12", "the next number", 3, 9, [revision(1), revision(2)], [], [], ["create 3 as 3"]),
    case("R10", "an older one is still in use", 2, 0, [revision(1), revision(2)], [], [1, 2], []),
    case("R10 R12", "back to an older one", 1, 0, [revision(1), revision(2)], [], [2], ["rank 1 as 3"]),
    case("R7 W28", "no room for history", 2, 0, [revision(1), revision(2), revision(3, number=0)], [], [1], ["forget 3"]),
    case("R8 W28", "room for two", 6, 2, [revision(i) for i in range(1, 7)], [], [2, 3], ["forget 1"]),
    case("R8 W28", "the oldest first", 6, 1, [revision(i) for i in range(1, 7)], [], [3, 6], ["forget 1", "forget 2", "forget 4"]),
    case("R12", "a negative limit is none", 2, -1, [revision(1), revision(2)], [], [], ["forget 1"]),
    case("R3 W28", "an orphan of our content", 1, 0, [], [revision(1)], [], []),
]  # fmt: skip


@pytest.mark.parametrize(("image", "limit", "owned", "others", "used", "expected"), REVISIONS)
def test_revisions(
    image: int, limit: int, owned: list[Manifest], others: list[Manifest], used: list[int], expected: list[str]
) -> None:
    one = nodeset(f"slurmd:{image}", revisionHistoryLimit=limit)
    found = revise(one, owned, others, [hash_of(i) for i in used])
    assert acts(found) == expected
    assert found.hash == hash_of(image)


@holds("W28")
def test_three_templates_after_each_other_leave_what_pods_are_of() -> None:
    """Each is made once; what no pod is of any more goes, as soon as there is no room for it."""
    kept: list[Manifest] = []
    written: list[list[str]] = []
    for image, used in ((1, []), (1, [1]), (2, [1]), (2, [1, 2]), (3, [2]), (3, [2, 3]), (3, [3])):
        found = revise(nodeset(f"slurmd:{image}", revisionHistoryLimit=0), kept, [], [hash_of(i) for i in used])
        written.append(acts(found))
        gone = {e.name for e in found.effects if isinstance(e, ForgetRevision)}
        made = [held(dict(e.body)) for e in found.effects if isinstance(e, Apply)]
        kept = [m for m in kept if m.id.name not in gone] + made
    assert written == [["create 1 as 1"], [], ["create 2 as 2"], [], ["create 3 as 3", "forget 1"], [], ["forget 2"]]
    assert [m.id.name for m in kept] == [name_of(3)]


@holds("W28")
def test_a_name_that_other_content_has_gives_another_hash() -> None:
    body = build_revision(nodeset("slurmd:2"), 1)
    body["metadata"]["name"] = name_of(1)
    found = revise(nodeset("slurmd:1"), [], [held(body)], [])
    (new,) = found.effects
    assert isinstance(new, Apply)
    assert found.collisions == 1
    assert new.body["metadata"]["name"] == f"gpu-{found.hash}" != name_of(1)
    again = revise(nodeset("slurmd:1"), [held(dict(new.body))], [held(body)], [])
    assert (again.hash, again.effects) == (found.hash, ())


@holds("W29")
def test_a_key_that_a_later_release_adds_rolls_nothing() -> None:
    """The revision that is there says nothing of it: it is the same as one that says the default."""
    body = build_revision(nodeset(), 1)
    del body["data"]["spec"]["oversubscribeNode"]
    body["metadata"]["labels"][HASH] = "another"
    found = revise(nodeset(), [held(body)], [], ["another"])
    assert (found.hash, found.effects) == ("another", ())


@holds("R12")
def test_a_revision_without_a_hash_goes_by_its_name() -> None:
    found = revise(nodeset("slurmd:1"), [revision(1, labels={})], [], [])
    assert (found.hash, found.effects) == (name_of(1), ())


@holds("W36")
@pytest.mark.parametrize(
    ("padding", "pods", "claims", "used"),
    [
        case("W36", "workers", 2, [pod(0), pod(1)], [], 0),
        case("W36", "claims alone", 0, [], ["data-gpu-007"], 3),
        case("", "another set's claims", 2, [], ["data-cpu-7", "other-gpu-7"], 2),
        case("", "nothing is there", 2, [], [], 2),
    ],
)
def test_the_padding_that_is_followed(padding: int, pods: list[Pod], claims: list[str], used: int) -> None:
    templates = [{"metadata": {"name": "data"}}]
    one = nodeset(ordinalPadding=padding, volumeClaimTemplates=templates)
    found, why = with_padding_in_use(one, pods, claims, [])
    assert found.spec.ordinal_padding == used
    assert ("spec.ordinalPadding" in why) is (used != padding)
    assert (revision_data(found) == revision_data(one)) is (used == padding), "what is kept rolls nobody"


@holds("W37")
def test_a_pinned_worker_is_built_for_its_node() -> None:
    found = parse_controller({
        "metadata": {"name": "ctl", "namespace": "slurm"},
        "spec": {"slurmKeyRef": {"name": "k", "key": "k"}, "jwtKeyRef": {"name": "j", "key": "j"}},
    })  # fmt: skip
    assert isinstance(found, Controller)
    shop = Workshop(nodeset(pinToNode=True), found, "h", {}, {"0": "n7"})
    assert shop.pod(CreatePod(0))["spec"]["affinity"]["nodeAffinity"] == required_node("n7")["nodeAffinity"]
    assert "nodeAffinity" not in shop.pod(CreatePod(1))["spec"]["affinity"]
