"""What all rows share: frozen msgspec structs that the collector need not walk, array-shaped on the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A row of a table: never changed, only replaced. Unknown is None, never 0 or "".

    `Row.id` (a field or a property) is the identity; equality tells whether anything shown has changed.
    """


class Table(StrEnum):
    """The tables of the store. What the feed can be asked for."""

    CLUSTERS = "clusters"
    SOURCES = "sources"
    NODES = "nodes"
    GPUS = "gpus"
    JOBS = "jobs"
    PARTITIONS = "partitions"
    RESERVATIONS = "reservations"
    NODESETS = "nodesets"
    PODS = "pods"
    KUBENODES = "kubenodes"
    EVENTS = "events"
    CONTROLLERS = "controllers"
    LOGINSETS = "loginsets"
    RESTAPIS = "restapis"
    PROBLEMS = "problems"
    NAMESPACES = "namespaces"
    ACCOUNTINGS = "accountings"
    TOKENS = "tokens"
    OPERATORS = "operators"
    JOURNAL = "journal"
    DECISIONS = "decisions"
    NODESET_OBJECTS = "nodeset-objects"
    CONTROLLER_OBJECTS = "controller-objects"
    REVISIONS = "revisions"
    CLAIMS = "claims"
    SERVICES = "services"
    BUDGETS = "budgets"
    CONFIGMAPS = "configmaps"
    SECRETS = "secrets"


INFINITE: Final = float("inf")
"""Slurm's "infinite" in a number that may be unset (None) or unlimited."""
