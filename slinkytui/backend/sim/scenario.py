"""A scenario: what the simulated cluster is made of. Typed by people, so unknown keys and bad values are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from slinkytui.backend.errors import ConfigError

FOLDER: Final = Path(__file__).parent / "scenarios"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Set(Part):
    """A NodeSet: `nodes` workers with `gpus` devices of `gpu_type` each."""

    name: str
    nodes: int = Field(ge=0)
    gpus: int = Field(default=0, ge=0, le=64)
    gpu_type: str = "h100"
    cpus: int = Field(default=128, ge=1)
    memory_mib: int = Field(default=1_000_000, ge=1)


class Trouble(Part):
    """Something wrong from the start, on the node with this number of a NodeSet."""

    set: str
    node: int = Field(ge=0)
    what: Literal["down", "drain", "cordon", "crash", "nopod"]
    reason: str = ""


class Scenario(Part):
    name: str
    cluster: str = "sim"
    namespace: str = "slurm"
    sets: tuple[Set, ...] = ()
    running: int = Field(default=0, ge=0)
    pending: int = Field(default=0, ge=0)
    arrays: int = Field(default=0, ge=0)
    """How many of the `pending` jobs are the rest of a job array, of which two of the `running` are tasks."""
    dependent: int = Field(default=0, ge=0)
    """How many of the `pending` jobs wait for another job."""
    users: tuple[str, ...] = ("alice", "bob", "carol", "dave", "erin")
    arrivals_per_min: float = Field(default=0.0, ge=0.0)
    failures_per_hour: float = Field(default=0.0, ge=0.0)
    troubles: tuple[Trouble, ...] = ()
    login: bool = True


def names() -> tuple[str, ...]:
    """The scenarios that come with the program."""
    return tuple(sorted(p.stem for p in FOLDER.glob("*.yaml")))


def load(name: str) -> Scenario:
    """A scenario by name or file. Raises ConfigError that names the file and the key."""
    path = FOLDER / f"{name}.yaml" if name in names() else Path(name)
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Scenario.model_validate({"name": path.stem, **(found or {})})
    except OSError as error:
        raise ConfigError(f"no scenario {name!r}", hint=f"scenarios: {', '.join(names())}, or a file") from error
    except (yaml.YAMLError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read", detail=str(error).replace("\n", " ")) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
