"""What a resource kind tells the faces: columns, filter fields, links, verbs and the detail page. No Textual here.

From a `Kind` the console derives the list, the filter, the sort keys and the detail page, and `slinkytui get` its
table, JSON and CSV. Style tokens are words ("warning"), the glyphs come from `kinds.states`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from slinkytui.backend.models import Row, RowId, Table

Value = str | int | float | bool | None | tuple[str, ...]
"""A typed cell: what is filtered, sorted and exported. None is unknown."""

Token = Literal["text", "muted", "warning", "error", "info", "success", "accent"]


class Lookup(Protocol):
    """The tables around a row, for links and details. `rows` is live and read-only."""

    def rows(self, table: Table) -> Mapping[RowId, Row]: ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a cell may need besides its row: `now` as Unix seconds and the other tables."""

    now: float
    lookup: Lookup


@dataclass(frozen=True, slots=True)
class Column:
    """`field` is the filter name and the JSON key, `value` the typed cell, `text` how a person reads it.

    `wide` columns are shown by `-o wide` and in wide terminals; of the others those with the highest `drop` leave
    first when room is short. `grow` takes the rest of the line. `token` colours the cell. A `live` column changes with
    time alone. `needs` are tables that only this value of a joined row comes from: a question that does not ask for it
    need not read them.
    """

    title: str
    field: str
    value: Callable[[Any, Context], Value]
    text: Callable[[Any, Context], str] | None = None
    align: Literal["left", "right"] = "left"
    wide: bool = False
    drop: int = 0
    grow: bool = False
    width: int = 0
    token: Callable[[Any, Context], Token] | None = None
    json: bool = True
    live: bool = False
    needs: tuple[Table, ...] = ()

    def cell(self, row: Any, ctx: Context) -> str:
        """The text of this column for a row; unknown is `–`."""
        if self.text is not None:
            return self.text(row, ctx)
        return show(self.value(row, ctx))


def show(value: Value) -> str:
    """A value as a person reads it: unknown `–`, infinite `∞`."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "∞" if value == float("inf") else f"{value:.2f}".rstrip("0").rstrip(".")
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class RowGroup(NamedTuple):
    """Several rows shown as one line, like the tasks of a job array; `name` is how the line begins."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Link:
    """Relatives of a row in another kind: `title` for menus, `ids` gives the ids there."""

    title: str
    kind: str
    ids: Callable[[Any, Context], Sequence[RowId]]


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    text: str
    token: Token = "text"


@dataclass(frozen=True, slots=True)
class Section:
    """A block of the detail page."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource kind. `extra` are JSON keys beyond the columns; `summary` is the chain line of a row."""

    id: str
    title: str
    singular: str
    table: Table
    columns: tuple[Column, ...]
    aliases: tuple[str, ...] = ()
    sort: str = "name"
    links: tuple[Link, ...] = ()
    verbs: tuple[str, ...] = ()
    detail: Callable[[Any, Context], tuple[Section, ...]] = lambda row, ctx: ()
    summary: Callable[[Any, Context], str] = lambda row, ctx: str(row.id)
    says: Callable[[Any, Context], str] = lambda row, ctx: ""
    """The text of a row that its cells cut short: a reason, why it waits."""
    severity: Callable[[Any, Context], Token] = lambda row, ctx: "text"
    marked: Callable[[Any, Context], bool] = lambda row, ctx: False
    extra: tuple[Column, ...] = ()
    raw: bool = True
    namespaced: bool = False
    tables: tuple[Table, ...] = field(default=())
    """Further tables that the cells look into."""
    fold: Callable[[Any], RowGroup | None] | None = None
    """The group that a list folds a row into, or None."""
    folded: Callable[[RowGroup, Sequence[Any], Context], Mapping[str, str]] = lambda group, rows, ctx: {}
    """The cells of a group's line, by field."""
    about: Callable[[Any], Sequence[tuple[str, str, str]]] = lambda row: ()
    """The Kubernetes objects (kind, namespace, name) whose events belong to a row."""
    owner: str = ""
    """The kind that `J` goes to, by the links."""
    other: str = ""
    """The kind of the same thing in the other world, by the links."""

    def column(self, name: str) -> Column | None:
        """The column or extra field with this filter name."""
        return next((c for c in (*self.columns, *self.extra) if c.field == name), None)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(c.field for c in (*self.columns, *self.extra))
