"""The RestApi resource: slurmrestd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from slinkytui.backend.crds.schema import Int32, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import BadResource, Container, LocalRef, Meta, PodTemplate, Service, read


class RestApiSpec(Shape):
    controller_ref: LocalRef = needed("The Controller of its cluster.")
    replicas: Annotated[Int32, Field(ge=0)] = filled(1, "How many pods.")
    slurmrestd: Container = blank({}, "A core/v1 Container laid over the slurmrestd container.")
    template: PodTemplate = blank(PodTemplate.model_construct(), "Laid over the pods.")
    service: Service = blank(Service.model_construct(), "Laid over the Service.")


class RestApi(Shape):
    """A set of slurmrestd."""

    meta: Meta = Field(alias="metadata")
    spec: RestApiSpec


def parse_rest_api(raw: Mapping[str, Any]) -> RestApi | BadResource:
    """Never raises: what cannot be read comes back as the field and the reason."""
    return read(RestApi, raw)
