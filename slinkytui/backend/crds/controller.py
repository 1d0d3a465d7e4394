"""The Controller resource: a slurmctld, how it is found and with which keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import Field

from slinkytui.backend.crds.claim import ClaimSpec
from slinkytui.backend.crds.daemons import DaemonSpec
from slinkytui.backend.crds.schema import Cel, Int32, Shape, blank, filled, needed
from slinkytui.backend.crds.shared import (
    BadResource,
    Container,
    LocalRef,
    Meta,
    PodTemplate,
    Service,
    read,
)

SLURMCTLD_PORT: Final = 6817
_SPAN: Final = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"


class Ha(Shape):
    """Backup controllers."""

    enabled: bool = filled(False, "Whether there are any.", required=True)
    backups: Int32 = filled(1, "How many.", minimum=1)


class Persistence(ClaimSpec):
    """The volume of StateSaveLocation."""

    enabled: bool = filled(True, "Whether there is one. It cannot be changed.", required=True)
    existing_claim: str = blank("", "A claim to use instead of a new one. It cannot be changed.")


class Endpoint(Shape):
    path: str = needed("The path to scrape.")
    interval: str = blank("", "How often.", pattern=_SPAN)
    scrape_timeout: str = blank("", "How long an answer may take.", pattern=_SPAN)


class Monitor(Shape):
    """A ServiceMonitor of the Prometheus operator."""

    enabled: bool = filled(False, "Whether there is one.")
    labels: dict[str, str] = blank({}, "Its labels.")
    annotations: dict[str, str] = blank({}, "Its annotations.")
    interval: str = blank("", "How often to scrape.", pattern=_SPAN)
    scrape_timeout: str = blank("", "How long an answer may take.", pattern=_SPAN)
    endpoints: list[Endpoint] = blank([], "What to scrape; what slurmctld has if absent.")


class Metrics(Shape):
    enabled: bool = filled(False, "Whether slurmctld serves metrics.")
    service_monitor: Monitor | None = blank(None, "The ServiceMonitor for them.", nullable=True)


class ControllerSpec(DaemonSpec):
    rules: ClassVar[tuple[Cel, ...]] = (
        *DaemonSpec.rules,
        Cel("has(self.ha) && self.ha.enabled ? has(self.persistence) && self.persistence.enabled && "
            "has(self.persistence.existingClaim) && self.persistence.existingClaim.size() > 0 : true",
            "ha needs persistence.existingClaim: a claim that all slurmctld can mount (ReadWriteMany)"),
    )  # fmt: skip

    cluster_name: str = blank("", "ClusterName in slurm.conf; NAMESPACE_NAME if empty. It cannot be changed.")
    accounting_ref: LocalRef | None = blank(None, "The Accounting of this cluster.")
    ha: Ha = blank(Ha.model_construct(enabled=False, backups=1), "Backup controllers.")
    slurmctld: Container = blank({}, "A core/v1 Container laid over the slurmctld container.")
    reconfigure: Container = blank({}, "A core/v1 Container laid over the reconfigure sidecar.")
    logfile: Container = blank({}, "A core/v1 Container laid over the log sidecar.")
    inplace_reconfigure: bool = filled(False, "Reconfigure the running slurmctld instead of restarting it.")
    template: PodTemplate = blank(PodTemplate.model_construct(), "Laid over the pods.")
    extra_conf: str = blank("", "Lines put at the end of slurm.conf.")
    config_file_refs: list[LocalRef] = blank([], "ConfigMaps whose files land in /etc/slurm.")
    prolog_script_refs: list[LocalRef] = blank([], "ConfigMaps with Prolog scripts.")
    epilog_script_refs: list[LocalRef] = blank([], "ConfigMaps with Epilog scripts.")
    prolog_slurmctld_script_refs: list[LocalRef] = blank([], "ConfigMaps with PrologSlurmctld scripts.")
    epilog_slurmctld_script_refs: list[LocalRef] = blank([], "ConfigMaps with EpilogSlurmctld scripts.")
    persistence: Persistence | None = blank(None, "The volume of StateSaveLocation.")
    service: Service = blank(Service.model_construct(), "Laid over the Service that clients use.")
    metrics: Metrics = blank(Metrics.model_construct(), "Metrics of slurmctld.")


class Controller(Shape):
    """A slurmctld: a Slurm cluster."""

    meta: Meta = Field(alias="metadata")
    spec: ControllerSpec = ControllerSpec.model_construct()

    @property
    def cluster(self) -> str:
        """ClusterName in slurm.conf."""
        return self.spec.cluster_name or f"{self.meta.namespace}_{self.meta.name}"

    @property
    def conf_server(self) -> str:
        """host:port that slurmd fetches its configuration from."""
        outside = self.spec.external_config if self.spec.external else None
        if outside:
            return f"{outside.host}:{outside.port}"
        return f"{self.meta.name}-controller.{self.meta.namespace}:{SLURMCTLD_PORT}"

    @property
    def replicas(self) -> int:
        if self.spec.external or not self.spec.ha.enabled:
            return 1
        return 1 + self.spec.ha.backups


def parse_controller(raw: Mapping[str, Any]) -> Controller | BadResource:
    """Never raises: what cannot be read comes back as the field and the reason."""
    return read(Controller, raw)
