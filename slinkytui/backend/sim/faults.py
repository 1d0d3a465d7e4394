"""The settings of a running simulator: its speed and its faults, by name, with their texts and their limits."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from slinkytui.backend.errors import UsageError

Kind = Literal["number", "share", "switch", "seconds", "count"]
_SPAN: Final = re.compile(r"(-?\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_WANTS: Final[dict[Kind, str]] = {
    "number": "a number greater than 0",
    "share": "a share from 0 to 1",
    "switch": "on or off",
    "seconds": "a time such as 2s, 500ms or 1m",
    "count": "a whole number",
}


@dataclass(frozen=True)
class Setting:
    """`help` is a phrase; `initial` the value at rest."""

    name: str
    kind: Kind
    help: str
    initial: float = 0.0


SETTINGS: Final = {
    s.name: s
    for s in (
        Setting("speed", "number", "how fast the cluster's time runs", 1.0),
        Setting("slurm.latency", "seconds", "every answer of slurmrestd comes that much later"),
        Setting("slurm.errors", "share", "share of calls that slurmrestd answers with 502"),
        Setting("slurm.refusals", "share", "share of calls that are answered 200 with an errors array and no data"),
        Setting("slurm.silence", "switch", "slurmrestd accepts and does not answer"),
        Setting("slurm.skew", "seconds", "slurmctld's clock is ahead by that much; below 0: behind"),
        Setting("kube.latency", "seconds", "every answer of the Kubernetes API comes that much later"),
        Setting("kube.errors", "share", "share of calls that the Kubernetes API answers with 503"),
        Setting("kube.silence", "switch", "the Kubernetes API accepts and does not answer; watches say nothing"),
        Setting("kube.gone", "switch", "every watch ends with 410 Gone"),
        Setting("kube.conflicts", "share", "share of PUT and PATCH that are refused with 409"),
        Setting("pods.delay", "seconds", "pods take that much longer to get ready"),
        Setting("nodes.dead", "count", "that many slurmds do not answer"),
    )
}


def read(name: str, value: Any) -> float:
    """The value of a setting, from text or JSON; switches are 0 and 1, times seconds. Raises UsageError."""
    setting = SETTINGS.get(name)
    if setting is None:
        near = difflib.get_close_matches(name, SETTINGS, 1, 0.4)
        raise UsageError(
            f"unknown setting {name!r}", hint=f"did you mean {near[0]}?" if near else f"settings: {', '.join(SETTINGS)}"
        )
    found = _value(setting.kind, value)
    if found is None:
        raise UsageError(f"{name} wants {_WANTS[setting.kind]}, not {value!r}")
    return found


def _value(kind: Kind, value: Any) -> float | None:
    if kind == "switch":
        text = str(value).lower()
        return 1.0 if text in ("on", "true", "1", "1.0") else 0.0 if text in ("off", "false", "0", "0.0") else None
    match = _SPAN.fullmatch(str(value))
    if match is None or isinstance(value, bool) or (match[2] and kind != "seconds"):
        return None
    number = float(match[1]) * _UNITS[match[2]]
    fits = {
        "number": number > 0, "share": 0 <= number <= 1, "seconds": True, "count": number >= 0 and number == int(number),
    }[kind]  # fmt: skip
    return number if fits else None


def read_all(words: Iterable[str]) -> dict[str, float]:
    """NAME=VALUE words. Raises UsageError."""
    out: dict[str, float] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} is not NAME=VALUE")
        out[name] = read(name, value)
    return out


class Settings:
    """The values that hold now. Listeners hear the new value of their setting."""

    def __init__(self) -> None:
        self._values = {name: s.initial for name, s in SETTINGS.items()}
        self._listeners: list[tuple[str, Callable[[float], None]]] = []

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def listen(self, name: str, listener: Callable[[float], None]) -> None:
        self._listeners.append((name, listener))

    def change(self, changes: Mapping[str, Any]) -> None:
        """All or nothing. Raises UsageError; latencies below 0 count as 0."""
        checked = {name: read(name, value) for name, value in changes.items()}
        self._values.update(checked)
        for name, listener in self._listeners:
            if name in checked:
                listener(checked[name])

    def shown(self) -> dict[str, float | str]:
        """As JSON has it: switches as on and off."""
        return {n: ("on" if v else "off") if SETTINGS[n].kind == "switch" else v for n, v in self._values.items()}
