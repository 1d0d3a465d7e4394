"""From the server's objects to rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from slinkytui.backend.errors import BadRequest, Conflict, SlinkyError
from slinkytui.backend.kube import wire
from slinkytui.backend.kube.errors import classify
from tests.rules import case


@pytest.mark.parametrize(
    ("spec", "port"),
    [
        case("Q15", "it asks for one", {"service": {"port": 8443}}, 8443),
        case("Q15", "it says nothing", {}, 6820),
        case("Q15", "a service without port", {"service": {"metadata": {"labels": {"a": "b"}}}}, 6820),
    ],
)
def test_the_port_of_a_restapi(spec: dict[str, Any], port: int) -> None:
    found = {"metadata": {"name": "slurm", "namespace": "slurm"}, "spec": {"controllerRef": {"name": "slurm"}, **spec}}
    row = wire.restapi_row(msgspec.convert(found, wire.WireMember))
    assert (row.service, row.port) == ("slurm-restapi", port)


@pytest.mark.parametrize(
    ("causes", "kind"),
    [
        case("W26", "another one of its name", [{"field": "metadata.uid", "reason": "FieldValueInvalid"}], Conflict),
        case("", "a field that is wrong", [{"field": "spec.image", "reason": "FieldValueRequired"}], BadRequest),
        case("", "no cause", [], BadRequest),
    ],
)
def test_a_refusal_by_what_was_refused(causes: list[dict[str, str]], kind: type[SlinkyError]) -> None:
    body = {"kind": "Status", "message": "is invalid", "reason": "Invalid", "code": 422, "details": {"causes": causes}}
    found = classify("Pod gpu-0", 422, msgspec.json.encode(body))
    assert type(found) is kind
    assert found.retryable is (kind is Conflict)
