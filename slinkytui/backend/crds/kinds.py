"""Spec and status of the six kinds of `slinky.slurm.net/v1beta1`, as the Slinky operator defines them."""

from __future__ import annotations

from slinkytui.backend.crds.shapes import (
    Schema,
    choice,
    claim,
    conditions,
    container,
    either,
    flag,
    int32,
    jwt_keys,
    key_of,
    local,
    locals_,
    many,
    mapping,
    moment,
    monitor,
    number,
    outside,
    record,
    service,
    template,
    text,
)

_KEYS = (
    ("!self.external ? has(self.slurmKeyRef) : true", "slurmKeyRef must be set when external is false"),
    (
        "!self.external ? has(self.jwtKeyRef) || has(self.jwtHs256KeyRef) : true",
        "jwtKeyRef or jwtHs256KeyRef must be set when external is false",
    ),
    ("self.external ? has(self.externalConfig) : true", "externalConfig must be set when external is true"),
)


def controller() -> tuple[Schema, Schema]:
    shared = (
        "has(self.ha) && self.ha.enabled ? has(self.persistence) && self.persistence.enabled && "
        "self.persistence.existingClaim.size() > 0 : true",
        "slurm high availability (HA) mode requires existing PVC with an access mode of ReadWriteMany",
    )
    spec = record(
        "What slurmctld shall be.", rules=(*_KEYS, shared),
        clusterName=text("ClusterName in slurm.conf; NAMESPACE_NAME if empty. It cannot be changed."),
        slurmKeyRef=key_of("Secret key with the auth/slurm key."), also=jwt_keys(),
        jwksKeyRef=key_of("ConfigMap key with the JWKS file for tokens from outside."),
        accountingRef=local("The Accounting of this cluster."),
        external=flag("Whether slurmctld runs outside of Kubernetes.", False), externalConfig=outside("slurmctld"),
        ha=record("Backup controllers.", required=("enabled",), enabled=flag(default=False), backups=int32("How many.", default=1, minimum=1)),
        slurmctld=container("the slurmctld container"), reconfigure=container("the reconfigure sidecar"), logfile=container("the log sidecar"),
        inplaceReconfigure=flag("Reconfigure the running slurmctld instead of restarting it.", False), template=template(),
        extraConf=text("Lines put at the end of slurm.conf."),
        configFileRefs=locals_("ConfigMaps whose files land in /etc/slurm."), prologScriptRefs=locals_("ConfigMaps with Prolog scripts."),
        epilogScriptRefs=locals_("ConfigMaps with Epilog scripts."),
        prologSlurmctldScriptRefs=locals_("ConfigMaps with PrologSlurmctld scripts."),
        epilogSlurmctldScriptRefs=locals_("ConfigMaps with EpilogSlurmctld scripts."),
        persistence=record(
            "The volume of StateSaveLocation.", required=("enabled",), enabled=flag(default=True),
            existingClaim=text("A claim to use instead of a new one."), also=claim(),
        ),
        service=service(),
        metrics=record("Metrics of slurmctld.", enabled=flag(default=False), serviceMonitor=monitor()),
    )  # fmt: skip
    return spec, record("What was seen of it.", conditions=conditions())


def accounting() -> tuple[Schema, Schema]:
    spec = record(
        "What slurmdbd shall be.", rules=_KEYS,
        slurmKeyRef=key_of("Secret key with the auth/slurm key."), also=jwt_keys(),
        jwksKeyRef=key_of("ConfigMap key with the JWKS file for tokens from outside."),
        external=flag("Whether slurmdbd runs outside of Kubernetes.", False), externalConfig=outside("slurmdbd"),
        slurmdbd=container("the slurmdbd container"), template=template(), extraConf=text("Lines put at the end of slurmdbd.conf."),
        storageConfig=record(
            "The database.", required=("host", "passwordKeyRef"), host=text(), port=number(default=3306),
            database=text(default="slurm_acct_db"), username=text(), passwordKeyRef=key_of("Secret key with the password."),
        ),
        service=service(),
    )  # fmt: skip
    return spec, record("What was seen of it.", conditions=conditions())


def rest_api() -> tuple[Schema, Schema]:
    spec = record(
        "What slurmrestd shall be.", required=("controllerRef",), controllerRef=local("The Controller of its cluster."),
        replicas=int32("How many pods.", default=1), slurmrestd=container("the slurmrestd container"), template=template(), service=service(),
    )  # fmt: skip
    return spec, record("What was seen of it.", conditions=conditions())


def login_set() -> tuple[Schema, Schema]:
    rolling = record(maxSurge=either(), maxUnavailable=either())
    spec = record(
        "What the login pods shall be.", required=("controllerRef", "sssdConfRef"), controllerRef=local("The Controller of its cluster."),
        replicas=int32("How many pods.", default=1), login=container("the login container"), initconf=container("the init container"),
        template=template(), rootSshAuthorizedKeys=text("root's authorized_keys."),
        extraSshdConfig=text("Lines put at the end of sshd_config."), sssdConfRef=key_of("Secret key with sssd.conf."),
        strategy=record("How its Deployment replaces pods.", type=text(), rollingUpdate=rolling), service=service(),
    )  # fmt: skip
    status = record(
        "What was seen of it.", required=("selector",), replicas=int32("How many pods there are."),
        selector=text("The selector of its pods."), conditions=conditions(),
    )  # fmt: skip
    return spec, status


def node_set() -> tuple[Schema, Schema]:
    update = record(
        "How pods are brought to a new template.",
        rules=((
            "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate.startTime) && has(self.scheduledUpdate.duration))",
            "scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate",
        ),),
        type=choice("", "RollingUpdate", "OnDelete", "ScheduledUpdate"),
        rollingUpdate=record(maxUnavailable=either("How many may be away at once.", default="25%")),
        scheduledUpdate=record(
            "The reservation in which it is done.", startTime=moment(), duration=text(default="30m"), flags=many("", text())
        ),
    )  # fmt: skip
    keep = {"whenDeleted": choice("", "Retain", "Delete"), "whenScaled": choice("", "Retain", "Delete")}
    spec = record(
        "What the workers shall be.", required=("controllerRef",), controllerRef=local("The Controller of its cluster."),
        replicas=int32("How many pods; without meaning in DaemonSet mode.", default=1),
        scalingMode={**choice("A number of pods, or one on each matching node.", "StatefulSet", "DaemonSet"), "enum": ["DaemonSet", "StatefulSet"]},
        slurmd=container("the slurmd container"), logfile=container("the log sidecar"), template=template(),
        ssh=record(
            "SSH into the workers.", required=("enabled", "sssdConfRef"), enabled=flag(default=False),
            extraSshdConfig=text("Lines put at the end of sshd_config."), sssdConfRef=key_of("Secret key with sssd.conf."),
        ),
        extraConf=text("Key=Value words of slurmd's --conf."),
        partition=record(
            "A partition of its own.", required=("enabled",), enabled=flag(default=False),
            config=text("Options on the partition's line.", pattern=r"^[^\n]+$"),
        ),
        volumeClaimTemplates={"description": "Claims made for each pod.", "nullable": True, "x-kubernetes-preserve-unknown-fields": True},
        updateStrategy=update, revisionHistoryLimit=int32("How many old revisions are kept.", default=0),
        persistentVolumeClaimRetentionPolicy=record("What becomes of the pods' claims.", also=keep),
        minReadySeconds=int32("How long a pod is ready before it counts."),
        ordinalPadding=number("Digits of the pods' numbers.", default=0), pinToNode=flag("Whether a pod stays on its node.", False),
        workloadDisruptionProtection=flag("Whether pods with jobs are kept from eviction.", True),
        pruneSlurmNodeRecords=choice("When records of nodes that are gone are deleted.", "Never", "NodeNotFound"),
        oversubscribeNode=flag("Whether a node may run several workers.", False),
    )  # fmt: skip
    counts = {
        "replicas": "there are", "updatedReplicas": "are of the newest revision", "readyReplicas": "are ready",
        "availableReplicas": "are available", "unavailableReplicas": "are not available", "desired": "there shall be",
    }  # fmt: skip
    slurm = {"slurmIdle": "idle", "slurmAllocated": "allocated or mixed", "slurmDown": "down", "slurmDrain": "drained"}
    status = record(
        "What was seen of them.", required=("nodeSetHash", "selector"),
        also={
            **{k: int32(f"How many pods {v}.") for k, v in counts.items()},
            **{k: int32(f"How many Slurm nodes are {v}.") for k, v in slurm.items()},
        },
        observedGeneration=number(format="int64"), nodeSetHash=text("The newest revision's hash."), collisionCount=int32(),
        conditions=conditions(), ordinalToNode=mapping("Which node each number is pinned to.", text(), nullable=True),
        selector=text("The selector of its pods."),
    )  # fmt: skip
    return spec, status


def token() -> tuple[Schema, Schema]:
    spec = record(
        "The token that shall be.", required=("username",),
        rules=(("has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)", "jwtKeyRef or jwtHs256KeyRef must be set"),), also=jwt_keys(),
        username=text("Whose token it is."), lifetime=text("How long it is valid."), refresh=flag("Whether it is made anew in time.", True),
        secretRef=key_of("The Secret and key to write it to."),
    )  # fmt: skip
    return spec, record("What was seen of it.", issuedAt=moment("When it was issued."), conditions=conditions())
