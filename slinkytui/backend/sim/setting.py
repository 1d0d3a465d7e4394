"""The caller's side of a running simulator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from slinkytui.backend.errors import BadRequest, Unreachable, UsageError
from slinkytui.backend.sim.settingsrest import PATH


def change(
    url: str, changes: Mapping[str, float], *, transport: httpx.BaseTransport | None = None
) -> dict[str, float | str]:
    """Change settings and return all of them. Raises UsageError, BadRequest, Unreachable."""
    try:
        with httpx.Client(timeout=10.0, trust_env=False, transport=transport) as client:
            where = url.rstrip("/") + PATH
            answer = client.patch(where, json=dict(changes)) if changes else client.get(where)
        found: Any = answer.json()
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise UsageError(f"--url {url!r} is not an address", detail=str(error)) from error
    except httpx.HTTPError as error:
        raise Unreachable(f"no simulator at {url}", detail=str(error)) from error
    except ValueError as error:
        raise BadRequest(f"{url} is not a simulator", hint="the address is slurm_url of sim serve") from error
    if answer.status_code != 200 or not isinstance(found, dict):
        raise BadRequest(str(found.get("error") if isinstance(found, dict) else answer.status_code))
    return found
