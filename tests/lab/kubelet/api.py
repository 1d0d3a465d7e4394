"""The few calls that a kubelet makes, on connections that stay open."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import httpx

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
WATCH_S = 60
RETRY_S = 0.2


class Server(Protocol):
    """What the lab's control plane tells of itself."""

    @property
    def url(self) -> str: ...
    @property
    def ca(self) -> Path: ...
    @property
    def token(self) -> str: ...


class Refused(RuntimeError):
    """The API server's no: `status` and its own message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class Api:
    """Calls as the admin. Raises Refused for an answer of 300 and above, httpx.HTTPError where none came."""

    def __init__(self, server: Server) -> None:
        self._http = httpx.Client(
            base_url=server.url,
            headers={"Authorization": f"Bearer {server.token}", "User-Agent": "process-kubelet"},
            verify=ssl.create_default_context(cafile=str(server.ca)),
            timeout=httpx.Timeout(20.0),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
            trust_env=False,
        )
        self._stream: socket.socket | None = None

    def call(self, method: str, url: str, body: Object | None = None, kind: str = "application/json") -> Object:
        content = None if body is None else json.dumps(body)
        answer = self._http.request(method, url, content=content, headers={"Content-Type": kind})
        if answer.status_code >= 300:
            raise Refused(answer.status_code, answer.text[:500])
        return dict(answer.json())

    def watch(self, url: str, stop: threading.Event, synced: Callable[[list[Object]], None]) -> Iterator[Object]:
        """Events of a collection for ever: a list (given to `synced`), then its watch; again where that broke."""
        while not stop.is_set():
            try:
                listed = self.call("GET", url)
                synced(listed["items"])
                query = {
                    "watch": "1",
                    "timeoutSeconds": str(WATCH_S),
                    "resourceVersion": listed["metadata"]["resourceVersion"],
                }
                with self._http.stream(
                    "GET", url, params=query, timeout=httpx.Timeout(20.0, read=WATCH_S + 5)
                ) as answer:
                    self._stream = answer.extensions["network_stream"].get_extra_info("socket")
                    if stop.is_set():
                        return
                    for line in answer.iter_lines():
                        event = json.loads(line)
                        if stop.is_set() or event["type"] == "ERROR":
                            break
                        yield event
            except (httpx.HTTPError, httpx.StreamError, Refused, json.JSONDecodeError):
                stop.wait(RETRY_S)

    def hang_up(self) -> None:
        """End the watch's reading; set its `stop` before."""
        try:
            if self._stream is not None:
                self._stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        self._http.close()
