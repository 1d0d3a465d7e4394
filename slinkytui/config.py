"""Settings: file < environment < flags. An error names the file, the key and the nearest valid key.

The file is TOML, `config.toml` in the user's configuration folder or where SLINKYTUI_CONFIG points. The libraries that
check it are loaded only when there is something to check.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from slinkytui.backend.errors import ConfigError

if TYPE_CHECKING:
    from slinkytui.settings import Config

FIELDS: Final = ("theme", "plain", "read_only", "screen", "namespace", "context", "keys", "columns")
"""What the file may hold; all but the tables also as SLINKYTUI_NAME in the environment."""
_CLUSTER: Final = ("namespace", "context")


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the settings file is looked for."""
    import platformdirs

    named = environ.get("SLINKYTUI_CONFIG", "")
    return Path(named).expanduser() if named else Path(platformdirs.user_config_dir("slinkytui")) / "config.toml"


def _from_file(path: Path, *, must: bool) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if must:
            raise ConfigError(f"no settings file {path}", hint="SLINKYTUI_CONFIG names it") from error
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", detail=str(error)) from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    found = {f: environ.get(f"SLINKYTUI_{f.upper()}", "") for f in FIELDS if f not in ("keys", "columns")}
    return {f: v for f, v in found.items() if v}


def load_config(environ: Mapping[str, str] = os.environ) -> tuple[Config, dict[str, str]]:
    """The settings of file and environment, and for each one that was set where it was."""
    from slinkytui.settings import check

    path = config_path(environ)
    held = _from_file(path, must=bool(environ.get("SLINKYTUI_CONFIG")))
    told = _from_environment(environ)
    config = check(held, str(path))
    if told:
        check(told, "the environment")
        config = check({**held, **told}, "the environment")
    where = {f: str(path) for f in held} | {f: f"SLINKYTUI_{f.upper()}" for f in told}
    return config, where


def apply(args: argparse.Namespace) -> dict[str, str]:
    """Fill what the command line left open; where each value came from. A simulated cluster takes no real one's name."""
    where = dict.fromkeys(FIELDS, "default")
    if os.environ.get("SLINKYTUI_CONFIG") or _from_environment(os.environ) or config_path().exists():
        config, found = load_config()
        for field, place in found.items():
            if field not in args.given and not (args.sim and field in _CLUSTER):
                setattr(args, field, getattr(config, field))
                where[field] = place
    for field in FIELDS:
        if field in args.given:
            where[field] = "command line"
    if args.all_namespaces:
        args.namespace, where["namespace"] = "", "command line"
    return where


def check_keymap(keys: Mapping[str, str], place: str) -> None:
    """Raises ConfigError for an id that no key of the console has. Loads the console, where there is something to check."""
    if not keys:
        return
    from slinkytui.keys import check_keys

    try:
        check_keys(keys)
    except ConfigError as error:
        raise ConfigError(f"{place}: keys: {error.title}", hint=error.hint) from error


def run_config(args: argparse.Namespace) -> int:
    """Print the settings in effect and where each comes from."""
    where = apply(args)
    check_keymap(args.keys, where["keys"])
    if args.list_keys:
        from slinkytui.keys import known_keys

        for name, usual in sorted(known_keys().items()):
            sys.stdout.write(f"{json.dumps(name)} = {json.dumps(args.keys.get(name, usual))}\n")
        return 0
    found = {f: {"value": getattr(args, f), "from": where[f]} for f in FIELDS}
    if args.output == "json":
        sys.stdout.write(json.dumps({"file": str(config_path()), "settings": found}, indent=2) + "\n")
        return 0
    exists = "" if config_path().exists() else "  (not there)"
    lines = list(_lines(found))
    width = max(len(line[0]) for line in lines)
    sys.stdout.write(f"# {config_path()}{exists}\n")
    sys.stdout.writelines(f"{text.ljust(width)}  # {place}\n" for text, place in lines)
    return 0


def _lines(found: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for field, entry in found.items():
        if isinstance(entry["value"], dict):
            for key, value in entry["value"].items():
                yield f"{field}.{json.dumps(key)} = {json.dumps(value)}", str(entry["from"])
        else:
            yield f"{field} = {json.dumps(entry['value'])}", str(entry["from"])


def near(word: str, known: tuple[str, ...]) -> str:
    """A hint at the nearest valid key."""
    found = difflib.get_close_matches(word.lower(), known, 1, 0.4)
    return f"did you mean {found[0]}?" if found else f"valid: {' '.join(known)}"
