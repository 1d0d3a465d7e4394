"""Which objects without a controller become ours: what this NodeSet has made and nobody owns any more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from slinkytui.backend.controllers.nodeset.decision import Adopt, Effect
from slinkytui.backend.controllers.nodeset.identity import is_numbered, label
from slinkytui.backend.controllers.objects.marks import APP, HASH, INSTANCE, SLURMD, selector
from slinkytui.backend.models import Manifest, Pod


def is_orphan_of(pod: Pod, nodeset: str) -> bool:
    """Whether this NodeSet has made a pod that has no controller: its labels, a revision, and a name that it gives. A pod
    that merely looks alike is left alone."""
    named = is_numbered(pod.id.name, nodeset) or pod.base == f"{nodeset}-"
    marked = label(pod, APP) == SLURMD and label(pod, INSTANCE) == nodeset
    return not pod.meta.owner_uid and named and marked and bool(label(pod, HASH))


def nodeset_name(pod: Pod) -> str:
    """The NodeSet that a pod belongs to, or an orphan says that it did; "" for any other pod."""
    if pod.meta.owner_kind == "NodeSet":
        return pod.meta.owner_name
    return label(pod, INSTANCE) if not pod.meta.owner_uid and label(pod, APP) == SLURMD else ""


def is_orphan_revision(found: Manifest, nodeset: str) -> bool:
    """Whether a revision without owner has our labels; without them one is told by its content only."""
    ours = selector(nodeset).items() <= dict(found.meta.labels).items()
    return ours and not found.meta.owner_uid and found.meta.deleted is None


def adoptions(pods: Iterable[Pod], revisions: Iterable[Manifest]) -> Iterator[Effect]:
    """Take orphans in. One that goes anyway is left to go."""
    for one in revisions:
        yield Adopt("controllerrevisions", one.id.name, one.meta.uid, one.meta.version)
    for pod in pods:
        if pod.meta.deleted is None:
            yield Adopt("pods", pod.id.name, pod.meta.uid, pod.meta.version)
