"""A user's containers and pod template over the operator's: strategic merges by the keys and in the order of Kubernetes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from slinkytui.backend.crds.core import Field, shapes

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("preStop", "postStart")


def pruned(value: Any) -> Any:
    """A patch without what says nothing: null, "" and emptied maps, through maps but not through lists. An explicit false
    or 0 is something that a user says, and stays."""
    if not isinstance(value, Mapping):
        return value
    found = {k: pruned(v) for k, v in value.items()}
    return {k: v for k, v in found.items() if v is not None and v not in ("", {})}


def merged(base: Mapping[str, Any], patch: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """`patch` over `base`, both of a `kind` such as PodSpec; a changed copy. What `base` lacks is taken as it stands."""
    fields = shapes().get(kind, {})
    out = copy.deepcopy(dict(base))
    for name, value in patch.items():
        field = fields.get(name)
        found = out.get(name)
        if isinstance(value, Mapping) and isinstance(found, Mapping):
            out[name] = merged(found, value, _inner(field))
        elif isinstance(value, list) and found and field is not None and field.merges:
            out[name] = _joined(found, value, field)
        else:
            out[name] = copy.deepcopy(value)
    return out


def _inner(field: Field | None) -> str:
    return field.kind.lstrip("*[]{}") if field and not field.kind.startswith("{}") else ""


def _joined(base: list[Any], patch: list[Any], field: Field) -> list[Any]:
    """The patch's elements in its order; each other one before the first of those that stood behind it in `base`."""
    key = field.key

    def name(element: Any) -> Any:
        return element.get(key) if key else element

    before = [name(b) for b in base]
    under = dict(zip(before, base, strict=True))
    found: dict[Any, Any] = {}
    for element in patch:
        here = name(element)
        old = found.get(here, under.get(here))
        found[here] = merged(old, element, _inner(field)) if key and old is not None else copy.deepcopy(element)
    rest = [copy.deepcopy(b) for b in base if name(b) not in found]
    out: list[Any] = []
    for here, element in found.items():
        while rest and here in before and before.index(name(rest[0])) < before.index(here):
            out.append(rest.pop(0))
        out.append(element)
    return out + rest


def container(base: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A user's container over the operator's: arguments are appended, a handler of a probe or a hook replaces the other."""
    patch = pruned(user)
    under = copy.deepcopy(dict(base))
    for probe in _PROBES:
        _replace_handler(under.get(probe), patch.get(probe))
    for hook in _HOOKS:
        _replace_handler((under.get("lifecycle") or {}).get(hook), (patch.get("lifecycle") or {}).get(hook))
    args = [*(base.get("args") or ()), *(patch.get("args") or ())]
    found = merged(under, {k: v for k, v in patch.items() if k != "args"}, "Container")
    return {**found, "args": args} if args else found


def _replace_handler(under: dict[str, Any] | None, patch: Mapping[str, Any] | None) -> None:
    if under and patch and any(h in patch for h in _HANDLERS):
        for handler in _HANDLERS:
            under.pop(handler, None)


def pod_spec(base: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A user's pod spec over the operator's. Containers are not merged by name: the user's stand behind ours."""
    lists = ("initContainers", "containers")
    patch = pruned({k: v for k, v in user.items() if k not in lists})
    found = merged({k: v for k, v in base.items() if k not in lists}, patch, "PodSpec")
    for name in lists:
        both = [*(base.get(name) or ()), *(user.get(name) or ())]
        if both:
            found[name] = copy.deepcopy(both)
    return found
