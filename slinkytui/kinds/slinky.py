"""Slinky's own resources: Controllers, LoginSets, RestApis, Accountings and Tokens."""

from __future__ import annotations

from collections.abc import Sequence

from slinkytui.backend import Accounting, Condition, Controller, FleetNodeSet, RowId, Table, Token
from slinkytui.kinds.base import Column, Context, Kind, Line, Link, Section
from slinkytui.kinds.text import age, moment


def _sets(row: Controller, ctx: Context) -> tuple[RowId, ...]:
    sets = ctx.lookup.rows(Table.NODESETS).values()
    return tuple(s.id for s in sets if isinstance(s, FleetNodeSet) and s.nodeset.controller == row.id)


def _conditions(found: Sequence[Condition], ctx: Context) -> Section:
    return Section(
        "Conditions",
        tuple(Line(x.type, f"{x.status} {x.reason} {x.message} ({age(x.since, ctx.now)})") for x in found),
    )


_META = (
    Column("NAMESPACE", "namespace", lambda r, c: r.id.namespace, drop=5, width=9),
    Column("NAME", "name", lambda r, c: r.id.name, width=14),
)
_AGE = Column(
    "AGE",
    "age_s",
    lambda r, c: None if r.meta.created is None else c.now - r.meta.created,
    lambda r, c: age(r.meta.created, c.now),
    align="right",
    live=True,
)

CONTROLLERS = Kind(
    id="controllers",
    title="Controllers",
    singular="controller",
    table=Table.CONTROLLERS,
    aliases=("slurmctld", "ctl"),
    columns=(
        *_META,
        Column("CLUSTER", "cluster", lambda r, c: r.cluster_name or None),
        Column("EXTERNAL", "external", lambda r, c: r.external, drop=4),
        Column("IMAGE", "image", lambda r, c: r.image or None, grow=True, wide=True, drop=6),
        _AGE,
    ),
    links=(Link("NodeSets", "nodesets", _sets),),
    detail=lambda r, c: (
        Section(
            "Controller",
            (
                Line("Slurm cluster", r.cluster_name or "–"),
                Line("external", r.external_host or "no"),
                Line("image", r.image or "–"),
                Line("JWT secret", r.jwt_secret or "–"),
            ),
        ),
        _conditions(r.conditions, c),
    ),
    namespaced=True,
    about=lambda r: (("Controller", r.id.namespace, r.id.name),),
    tables=(Table.NODESETS,),
)

LOGINSETS = Kind(
    id="loginsets",
    title="LoginSets",
    singular="loginset",
    table=Table.LOGINSETS,
    aliases=("ls", "sackd"),
    columns=(
        *_META,
        Column("REPLICAS", "replicas", lambda r, c: r.replicas, align="right"),
        Column("HAVE", "have", lambda r, c: r.status_replicas, align="right"),
        Column("CONTROLLER", "controller", lambda r, c: str(r.controller), grow=True, drop=3),
        _AGE,
    ),
    links=(Link("controller", "controllers", lambda r, c: (r.controller,)),),
    detail=lambda r, c: (Section("LoginSet", (Line("controller", str(r.controller)),)), _conditions(r.conditions, c)),
    namespaced=True,
    about=lambda r: (("LoginSet", r.id.namespace, r.id.name),),
    owner="controllers",
)

RESTAPIS = Kind(
    id="restapis",
    title="RestApis",
    singular="restapi",
    table=Table.RESTAPIS,
    aliases=("slurmrestd", "rest"),
    columns=(
        *_META,
        Column("REPLICAS", "replicas", lambda r, c: r.replicas, align="right"),
        Column("SERVICE", "service", lambda r, c: r.service or None, drop=3),
        Column("PORT", "port", lambda r, c: r.port, align="right", drop=4),
        Column("CONTROLLER", "controller", lambda r, c: str(r.controller), grow=True, drop=5),
        _AGE,
    ),
    links=(Link("controller", "controllers", lambda r, c: (r.controller,)),),
    detail=lambda r, c: (
        Section("RestApi", (Line("controller", str(r.controller)), Line("service", r.service or "–"))),
        _conditions(r.conditions, c),
    ),
    namespaced=True,
    about=lambda r: (("RestApi", r.id.namespace, r.id.name),),
    owner="controllers",
)


def _accounting(row: Accounting, ctx: Context) -> tuple[Section, ...]:
    lines = (
        Line("slurmdbd runs at", row.external_host or "here"),
        Line("storage", row.storage or "–"),
        Line("image", row.image or "–"),
    )
    return Section("Accounting", lines), _conditions(row.conditions, ctx)


ACCOUNTINGS = Kind(
    id="accountings",
    title="Accountings",
    singular="accounting",
    table=Table.ACCOUNTINGS,
    aliases=("slurmdbd", "acct"),
    columns=(
        *_META,
        Column("EXTERNAL", "external", lambda r, c: r.external_host or None, drop=4),
        Column("STORAGE", "storage", lambda r, c: r.storage or None, drop=3),
        Column("IMAGE", "image", lambda r, c: r.image or None, grow=True, wide=True, drop=6),
        _AGE,
    ),
    detail=_accounting,
    namespaced=True,
    about=lambda r: (("Accounting", r.id.namespace, r.id.name),),
)


def _token(row: Token, ctx: Context) -> tuple[Section, ...]:
    lines = (
        Line("user", row.user or "–"),
        Line("lifetime", row.lifetime or "–"),
        Line("refreshed", "–" if row.refresh is None else "yes" if row.refresh else "no"),
        Line("secret", row.secret or "–"),
        Line("issued", moment(row.issued)),
    )
    return Section("Token", lines), _conditions(row.conditions, ctx)


TOKENS = Kind(
    id="tokens",
    title="Tokens",
    singular="token",
    table=Table.TOKENS,
    aliases=("jwt",),
    columns=(
        *_META,
        Column("USER", "user", lambda r, c: r.user or None, width=10),
        Column("LIFETIME", "lifetime", lambda r, c: r.lifetime or None, drop=3),
        Column("REFRESH", "refresh", lambda r, c: r.refresh, drop=4),
        Column("SECRET", "secret", lambda r, c: r.secret or None, grow=True, drop=2),
        Column(
            "ISSUED",
            "issued_s",
            lambda r, c: None if r.issued is None else c.now - r.issued,
            lambda r, c: age(r.issued, c.now),
            align="right",
            live=True,
        ),
        _AGE,
    ),
    detail=_token,
    namespaced=True,
    about=lambda r: (("Token", r.id.namespace, r.id.name),),
)
