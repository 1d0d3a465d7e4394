"""The RestApi resource: slurmrestd."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from slinkytui.backend.crds.schema import Int32, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import Container, LocalRef, PodTemplate, Service


class RestApiSpec(Shape):
    controller_ref: LocalRef = needed("The Controller of its cluster.")
    replicas: Annotated[Int32, Field(ge=0)] = filled(1, "How many pods.")
    slurmrestd: Container = blank({}, "A core/v1 Container laid over the slurmrestd container.")
    template: PodTemplate = blank(PodTemplate.model_construct(), "Laid over the pods.")
    service: Service = blank(Service.model_construct(), "Laid over the Service.")
