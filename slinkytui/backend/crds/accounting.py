"""The Accounting resource: a slurmdbd."""

from __future__ import annotations

from slinkytui.backend.crds.daemons import DaemonSpec
from slinkytui.backend.crds.schema import Shape, blank, filled, needed
from slinkytui.backend.crds.shared import Container, KeyRef, PodTemplate, Service


class Storage(Shape):
    """The database."""

    host: str = needed("Its host.")
    port: int = filled(3306, "Its port.")
    database: str = filled("slurm_acct_db", "The database in it.")
    username: str = blank("", "Who logs in.")
    password_key_ref: KeyRef = needed("Secret key with the password.")


class AccountingSpec(DaemonSpec):
    slurmdbd: Container = blank({}, "A core/v1 Container laid over the slurmdbd container.")
    template: PodTemplate = blank(PodTemplate.model_construct(), "Laid over the pod.")
    storage_config: Storage | None = blank(None, "The database.")
    extra_conf: str = blank("", "Lines put at the end of slurmdbd.conf.")
    service: Service = blank(Service.model_construct(), "Laid over the Service.")
