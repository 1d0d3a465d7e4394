"""The LoginSet resource: pods that users log in to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from slinkytui.backend.crds.schema import Int32, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import (
    Container,
    KeyRef,
    LocalRef,
    PlainStatus,
    PodTemplate,
    Service,
)


class Rolling(Shape):
    max_surge: int | str | None = blank(None, "How many pods more there may be: a number or a percentage.")
    max_unavailable: int | str | None = blank(None, "How many pods fewer there may be: a number or a percentage.")


class Strategy(Shape):
    """That of a Deployment."""

    type: str = blank("", "RollingUpdate or Recreate.")
    rolling_update: Rolling | None = blank(None, "How a rolling update goes.")


class LoginSetSpec(Shape):
    controller_ref: LocalRef = needed("The Controller of its cluster. It cannot be changed.")
    replicas: Annotated[Int32, Field(ge=0)] = filled(1, "How many pods.")
    login: Container = blank({}, "A core/v1 Container laid over the login container.")
    initconf: Container = blank({}, "A core/v1 Container laid over the init container.")
    template: PodTemplate = blank(PodTemplate.model_construct(), "Laid over the pods.")
    root_ssh_authorized_keys: str = blank("", "Lines of root's authorized_keys.")
    extra_sshd_config: str = blank("", "Lines put at the end of sshd_config.")
    sssd_conf_ref: KeyRef = needed("Secret key with sssd.conf.")
    strategy: Strategy = blank(Strategy.model_construct(), "How its Deployment replaces pods.")
    service: Service = blank(Service.model_construct(), "Laid over the Service.")


class LoginSetStatus(PlainStatus):
    replicas: Int32 = blank(0, "How many pods there are.")
    selector: str = needed("The selector of its pods.")
