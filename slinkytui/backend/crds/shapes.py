"""The pieces that the custom resources' schemas are made of. Each takes its one-line description first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]
_NOTHING: Final[Mapping[str, Schema]] = {}
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_DURATION: Final = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
_REASON: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


def _made(about: str, found: Schema) -> Schema:
    return {"description": about, **found} if about else found


def text(about: str = "", **more: Any) -> Schema:
    return _made(about, {"type": "string", **more})


def flag(about: str = "", default: bool | None = None) -> Schema:
    return _made(about, {"type": "boolean", **({} if default is None else {"default": default})})


def number(about: str = "", **more: Any) -> Schema:
    return _made(about, {"type": "integer", **more})


def int32(about: str = "", **more: Any) -> Schema:
    return number(about, format="int32", **more)


def choice(about: str, *values: str) -> Schema:
    """One of the values; the first is the default."""
    return text(about, enum=list(values), default=values[0])


def moment(about: str = "") -> Schema:
    return text(about, format="date-time")


def either(about: str = "", **more: Any) -> Schema:
    """An integer or a string."""
    return _made(
        about, {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, **more}
    )


def record(about: str = "", /, *, required: tuple[str, ...] = (), rules: tuple[tuple[str, str], ...] = (),
           atomic: bool = False, nullable: bool = False, also: Mapping[str, Schema] = _NOTHING, **fields: Schema) -> Schema:  # fmt: skip
    """An object with these fields and those of `also`. A rule is a CEL expression and what is said when it does not hold."""
    found: Schema = {"type": "object", "properties": dict(sorted({**also, **fields}.items()))}
    if required:
        found["required"] = list(required)
    if rules:
        found["x-kubernetes-validations"] = [{"rule": r, "message": m} for r, m in rules]
    if atomic:
        found["x-kubernetes-map-type"] = "atomic"
    if nullable:
        found["nullable"] = True
    return _made(about, found)


def open_record(about: str = "") -> Schema:
    """An object of which every field is kept and none is checked."""
    return _made(about, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def mapping(about: str, of: Schema, *, nullable: bool = False) -> Schema:
    found: Schema = {"type": "object", "additionalProperties": of}
    return _made(about, {**found, "nullable": True} if nullable else found)


def many(about: str, of: Schema, *, nullable: bool = True, atomic: bool = False) -> Schema:
    found: Schema = {"type": "array", "items": of}
    if nullable:
        found["nullable"] = True
    if atomic:
        found["x-kubernetes-list-type"] = "atomic"
    return _made(about, found)


# What the kinds have in common.


def local(about: str) -> Schema:
    """A reference to an object in the same namespace."""
    return record(about, atomic=True, name=text(default=""))


def locals_(about: str) -> Schema:
    return many(about, local(""))


def key_of(about: str) -> Schema:
    """A reference to one key of a Secret or ConfigMap in the same namespace."""
    return record(about, required=("key",), atomic=True, name=text(default=""), key=text(), optional=flag())


def labelled(about: str = "") -> Schema:
    return record(about, labels=mapping("", text(), nullable=True), annotations=mapping("", text(), nullable=True))


def template() -> Schema:
    return record(
        "Metadata and spec laid over the generated pods.", metadata=labelled(), spec=open_record("A core/v1 PodSpec.")
    )


def container(what: str) -> Schema:
    return open_record(f"A core/v1 Container laid over {what}.")


def service() -> Schema:
    return record(
        "The Service in front of it.", metadata=labelled(), spec=open_record("A core/v1 ServiceSpec."), port=number("Its port."),
        nodePort=number("Its port on every node."),
    )  # fmt: skip


def outside(what: str) -> Schema:
    return record(f"Where the external {what} is.", required=("host", "port"), host=text(), port=number())


def jwt_keys() -> dict[str, Schema]:
    return {
        "jwtKeyRef": key_of("Secret key with the JWT signing key."),
        "jwtHs256KeyRef": key_of("Deprecated: use jwtKeyRef."),
    }


def claim() -> dict[str, Schema]:
    """The fields of a PersistentVolumeClaim's spec."""
    quantity = either(pattern=_QUANTITY)
    terms = record(
        required=("key", "operator"), key=text(), operator=text(), values=many("", text(), nullable=False, atomic=True)
    )
    return {
        "accessModes": many("", text(), nullable=False, atomic=True),
        "dataSource": record(required=("kind", "name"), atomic=True, apiGroup=text(), kind=text(), name=text()),
        "dataSourceRef": record(required=("kind", "name"), apiGroup=text(), kind=text(), name=text(), namespace=text()),
        "resources": record(limits=mapping("", quantity), requests=mapping("", quantity)),
        "selector": record(
            atomic=True, matchExpressions=many("", terms, nullable=False, atomic=True), matchLabels=mapping("", text())
        ),
        "storageClassName": text(), "volumeAttributesClassName": text(), "volumeMode": text(), "volumeName": text(),
    }  # fmt: skip


def monitor() -> Schema:
    times = {"interval": text(pattern=_DURATION), "scrapeTimeout": text(pattern=_DURATION)}
    return record(
        "The Prometheus ServiceMonitor.", nullable=True, enabled=flag(default=False), labels=mapping("", text(), nullable=True),
        annotations=mapping("", text(), nullable=True), endpoints=many("", record(required=("path",), path=text(), also=times)), also=times,
    )  # fmt: skip


def conditions() -> Schema:
    one = record(
        required=("lastTransitionTime", "message", "reason", "status", "type"), lastTransitionTime=moment(), message=text(maxLength=32768),
        observedGeneration=number(format="int64", minimum=0), reason=text(minLength=1, maxLength=1024, pattern=_REASON),
        status=text(enum=["True", "False", "Unknown"]), type=text(maxLength=316, pattern=_TYPE),
    )  # fmt: skip
    return {"type": "array", "items": one, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
