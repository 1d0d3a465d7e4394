"""Asking a container how it is."""

from __future__ import annotations

import http.client
import socket
import subprocess
from typing import Any

from tests.lab.kubelet.container import Process
from tests.lab.kubelet.sandbox import Sandbox
from tests.lab.kubelet.spec import Object


def answers(wanted: Object, container: Object, sandbox: Sandbox, process: Process) -> bool:
    """One try of a probe: exec, httpGet or tcpSocket. No answer in time is no."""
    timeout = float(wanted.get("timeoutSeconds", 1))
    try:
        if "exec" in wanted:
            return sandbox.exec(process, wanted["exec"]["command"], timeout).returncode == 0
        target = wanted.get("httpGet") or wanted.get("tcpSocket") or {}
        port = _port(container, target.get("port"))
        if "httpGet" not in wanted:
            socket.create_connection((sandbox.address, port), timeout).close()
            return True
        connection = http.client.HTTPConnection(sandbox.address, port, timeout=timeout)
        try:
            connection.request("GET", target.get("path", "/"))
            return 200 <= connection.getresponse().status < 400
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, subprocess.TimeoutExpired):
        return False


def _port(container: Object, port: Any) -> int:
    named = {p.get("name"): p["containerPort"] for p in container.get("ports") or []}
    return int(named.get(port, port))
