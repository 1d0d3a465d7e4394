"""GET and PATCH of the settings, without credentials, for callers on this machine only."""

from __future__ import annotations

import ipaddress
import json
from typing import Final
from urllib.parse import urlsplit

from slinkytui.backend.errors import UsageError
from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim.faults import Settings

PATH: Final = "/sim/v1/settings"


class SettingsRest:
    """Answers with all settings; a refusal is `{"error": TEXT}`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def handle(self, request: Request, remote: str) -> Response:
        """`remote` is the caller's address. Pages in a browser are refused too: they send an Origin, or a foreign Host."""
        host = urlsplit(f"//{request.headers.get('host', 'localhost')}").hostname or ""
        if not (_loopback(remote) and _loopback(host)) or "origin" in request.headers:
            return _json(403, {"error": "the settings are for callers on this machine"})
        if request.method == "GET":
            return _json(200, self._settings.shown())
        if request.method != "PATCH":
            return _json(405, {"error": "GET or PATCH"})
        try:
            changes = json.loads(request.body)
            if not isinstance(changes, dict):
                return _json(400, {"error": "the body is not an object"})
            self._settings.change(changes)
        except ValueError:
            return _json(400, {"error": "the body is not JSON"})
        except UsageError as error:
            return _json(422, {"error": error.line()})
        return _json(200, self._settings.shown())


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _json(status: int, found: object) -> Response:
    return Response(status, json.dumps(found).encode())
