"""How to reach an API server: kubeconfig files, the pod's own service account, exec plugins.

A context with a token, a token file or a client certificate is read here, since the client library takes a second to
import; contexts that need a plugin or OIDC are handed to `kubernetes.aio.config`.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

from slinkytui.backend.errors import ConfigError, NotAllowed

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Credentials(Protocol):
    async def header(self) -> str:
        """The Authorization header's value now, or ""."""
        ...

    async def refused(self) -> None:
        """The server said 401: get new ones."""
        ...


@dataclass
class Access:
    """A server and the way in. `contexts` are the names that the kubeconfig offers."""

    server: str
    tls: ssl.SSLContext | bool
    credentials: Credentials
    context: str = ""
    namespace: str = ""
    proxy: str = ""
    contexts: tuple[str, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)


class FixedToken:
    def __init__(self, token: str) -> None:
        self._token = token

    async def header(self) -> str:
        return f"Bearer {self._token}" if self._token else ""

    async def refused(self) -> None:
        return None


class TokenFile:
    """Read again when the file changes: the kubelet rewrites it every hour."""

    def __init__(self, path: str) -> None:
        self._path, self._seen, self._token = path, (0, 0), ""

    async def header(self) -> str:
        try:
            stat = os.stat(self._path)
            if (stat.st_ino, stat.st_mtime_ns) != self._seen:
                self._token = Path(self._path).read_text(encoding="utf-8").strip()
                self._seen = (stat.st_ino, stat.st_mtime_ns)
        except OSError as error:
            raise ConfigError(f"the token file {self._path} cannot be read", detail=str(error)) from error
        return f"Bearer {self._token}"

    async def refused(self) -> None:
        self._seen = (0, 0)


class LibraryCredentials:
    """Whatever `kubernetes.aio.config` makes of a context: exec plugins, OIDC and cloud helpers."""

    def __init__(self, files: str, context: str) -> None:
        self._files, self._context, self._header = files, context, ""

    async def header(self) -> str:
        if not self._header:
            from kubernetes.aio import client, config

            made = client.Configuration()
            try:
                await config.load_kube_config(  # type: ignore[no-untyped-call]  # the library has no types here
                    self._files, self._context or None, client_configuration=made
                )
            except (config.ConfigException, OSError, ValueError) as error:
                raise ConfigError(f"context {self._context}: no credentials", detail=str(error)) from error
            self._header = str(made.api_key.get("BearerToken") or made.api_key.get("authorization") or "")
            if not self._header:
                # The library only logs a plugin that fails.
                raise NotAllowed(
                    f"the credential plugin of context {self._context} gave no token",
                    hint="run kubectl once to see why",
                )
        return self._header

    async def refused(self) -> None:
        self._header = ""


def load(path: str = "", context: str = "") -> Access:
    """The access of a kubeconfig context (KUBECONFIG, ~/.kube/config), or of the pod that we run in.

    Raises ConfigError that names the file and what is missing in it.
    """
    named = path or os.environ.get("KUBECONFIG", "")
    files = [f for f in named.split(os.pathsep) if f] or [str(Path.home() / ".kube" / "config")]
    present = [f for f in files if Path(f).is_file()]
    if not present:
        if not named and (SERVICE_ACCOUNT / "token").is_file():
            return _in_cluster()
        raise ConfigError(
            f"no kubeconfig at {os.pathsep.join(files)}", hint="--kubeconfig FILE, or --sim to try it out"
        )
    merged = _merge(present)
    name = context or merged["current-context"]
    found = merged["contexts"].get(name)
    if found is None:
        known = ", ".join(sorted(merged["contexts"])) or "none"
        raise ConfigError(f"kubeconfig has no context {name!r}" if name else "kubeconfig has no current-context",
                          detail=f"contexts: {known}", hint="--context NAME")  # fmt: skip
    cluster = merged["clusters"].get(found.get("cluster"), {})
    user = merged["users"].get(found.get("user"), {})
    if not cluster.get("server"):
        raise ConfigError(f"context {name}: cluster {found.get('cluster')!r} has no server")
    if user.get("as"):
        raise ConfigError(
            f"context {name} impersonates {user['as']}: that is not supported, and its own rights are wider"
        )
    return Access(
        server=str(cluster["server"]).rstrip("/"), tls=_tls(cluster, user, name),
        credentials=_credentials(user, os.pathsep.join(present), name), context=name,
        namespace=str(found.get("namespace") or ""), proxy=str(cluster.get("proxy-url") or ""),
        contexts=tuple(sorted(merged["contexts"])),
    )  # fmt: skip


def _in_cluster() -> Access:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set", hint="--kubeconfig FILE")
    namespace = (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    context = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    host = f"[{host}]" if ":" in host else host
    return Access(f"https://{host}:{port}", context, TokenFile(str(SERVICE_ACCOUNT / "token")), "in-cluster", namespace)


def _merge(files: list[str]) -> dict[str, Any]:
    """kubectl's rule: the first file that names a thing wins."""
    out: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for file in files:
        try:
            loaded = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=_LOADER)
        except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} cannot be read", detail=str(error).replace("\n", " ")) from error
        if not isinstance(loaded, dict):
            raise ConfigError(f"{file} is no kubeconfig")
        out["current-context"] = out["current-context"] or loaded.get("current-context") or ""
        for kind, key in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for entry in loaded.get(kind) or []:
                value = dict(entry.get(key) or {})
                for path_key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                    if value.get(path_key) and not os.path.isabs(value[path_key]):
                        value[path_key] = str(Path(file).parent / value[path_key])
                out[kind].setdefault(entry.get("name"), value)
    return out


def _credentials(user: dict[str, Any], files: str, context: str) -> Credentials:
    if user.get("exec") or user.get("auth-provider"):
        return LibraryCredentials(files, context)
    if user.get("tokenFile"):
        return TokenFile(user["tokenFile"])
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return _Basic(base64.b64encode(pair).decode())
    return FixedToken(str(user.get("token") or ""))


class _Basic(FixedToken):
    async def header(self) -> str:
        return f"Basic {self._token}"


def _tls(cluster: dict[str, Any], user: dict[str, Any], name: str) -> ssl.SSLContext | bool:
    if not str(cluster["server"]).startswith("https"):
        return False
    try:
        context = ssl.create_default_context(
            cafile=cluster.get("certificate-authority") or None, cadata=_pem(cluster.get("certificate-authority-data"))
        )
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _client_certificate(context, user)
    except (OSError, ssl.SSLError, binascii.Error) as error:
        raise ConfigError(f"context {name}: its certificates cannot be read", detail=str(error)) from error
    return context


def _pem(data: str | None) -> str | None:
    return base64.b64decode(data).decode() if data else None


def _client_certificate(context: ssl.SSLContext, user: dict[str, Any]) -> None:
    certificate, key = user.get("client-certificate"), user.get("client-key")
    inline = [(user.get("client-certificate-data"), certificate), (user.get("client-key-data"), key)]
    if not any(data or path for data, path in inline):
        return
    # The ssl module takes certificates from files only: they live as long as the call.
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for at, (data, path) in enumerate(inline):
            if data:
                path = str(Path(folder) / str(at))
                Path(path).write_bytes(base64.b64decode(data))
            paths.append(path)
        context.load_cert_chain(str(paths[0]), paths[1])
