"""Reading what was sent: JSON or YAML, and the patch kinds."""

from __future__ import annotations

import copy
from typing import Any, Final

import msgspec
import yaml

from slinkytui.backend.http import Request
from slinkytui.backend.sim import protobuf
from slinkytui.backend.sim.failures import Failed
from slinkytui.backend.sim.objects import SLINKY, Served
from slinkytui.backend.sim.patches import json_patch, merge
from slinkytui.backend.sim.schema import Node
from slinkytui.backend.sim.strategic import strategic

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


def kind_of(request: Request) -> str:
    """The media type, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip()


def sent(request: Request) -> dict[str, Any]:
    """The object in the body. Raises Failed (400, 415)."""
    kind = kind_of(request)
    if kind == protobuf.MEDIA_TYPE:
        return _protobuf(request.body)
    try:
        found = msgspec.json.decode(request.body)
    except msgspec.DecodeError as error:
        found = _yaml(request.body) if "yaml" in kind else None
        if found is None:
            raise Failed(400, "BadRequest", f"the body cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise Failed(400, "BadRequest", "the body is no object")
    return found


def _protobuf(body: bytes) -> dict[str, Any]:
    try:
        found = protobuf.decoded(body)
    except ValueError as error:
        raise Failed(400, "BadRequest", f"the body cannot be read: {error}") from error
    if found is None:
        text = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
        raise Failed(415, "UnsupportedMediaType", text)
    return found


def _yaml(body: bytes) -> Any:
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise Failed(400, "BadRequest", f"error decoding YAML: {error}") from error


def patched(request: Request, served: Served, found: dict[str, Any], node: Node) -> dict[str, Any]:
    """A changed copy. Raises Failed (400, 415, 422)."""
    match kind_of(request):
        case "application/json-patch+json":
            try:
                return json_patch(found, msgspec.json.decode(request.body))
            except msgspec.DecodeError as error:
                raise Failed(400, "BadRequest", f"error decoding patch: {error}") from error
            except ValueError as error:
                text = "the server rejected our request due to an error in our request"
                raise Failed(422, "Invalid", text) from error
        case "application/merge-patch+json":
            merged: dict[str, Any] = merge(copy.deepcopy(found), sent(request))
            return merged
        case "application/strategic-merge-patch+json" if served.group != SLINKY:
            try:
                return dict(strategic(copy.deepcopy(found), sent(request), node))
            except ValueError as error:
                raise Failed(400, "BadRequest", str(error)) from error
    accepted = [JSON_PATCH, MERGE_PATCH, *([] if served.group == SLINKY else [STRATEGIC]), APPLY]
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    raise Failed(415, "UnsupportedMediaType", text)
