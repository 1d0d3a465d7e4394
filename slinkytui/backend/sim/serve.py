"""The simulator's process: HTTPS with a CA of its own for Kubernetes (clients send no credentials over plain http), plain
HTTP for slurmrestd, both on loopback. Files are private and go with the process.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import ipaddress
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import jwt
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from slinkytui.backend.errors import UsageError
from slinkytui.backend.http import Handler, Request
from slinkytui.backend.sim.scenario import load
from slinkytui.backend.sim.settingsrest import PATH, SettingsRest
from slinkytui.backend.sim.simclock import SimClock
from slinkytui.backend.sim.world import World


def adapter(handle: Handler, settings: SettingsRest | None = None) -> web.Application:
    """A core as an aiohttp application; the settings, where there are some, at a path of their own."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {k.lower(): v for k, v in request.headers.items()}
        asked = Request(request.method, request.rel_url.raw_path, tuple(request.query.items()), headers, body)
        if settings is not None and asked.path == PATH:
            response = settings.handle(asked, request.remote or "")
        else:
            response = await handle(asked)
        if isinstance(response.body, bytes):
            return web.Response(
                status=response.status,
                body=response.body,
                content_type=response.content_type,
                headers=dict(response.headers),
            )
        stream = web.StreamResponse(status=response.status, headers={"Content-Type": response.content_type})
        await stream.prepare(request)
        try:
            async for chunk in response.body:
                await stream.write(chunk)
            await stream.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            # The reader of a watch has left.
            return stream
        return stream

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{tail:.*}", answer)
    return app


def certificates(folder: Path) -> tuple[str, str, str]:
    """CA file, certificate and key for loopback, good for as long as anybody runs a simulator."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "slinkytui simulator")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
    )  # fmt: skip
    certificate = builder.sign(key, hashes.SHA256())
    crt, pem = folder / "tls.crt", folder / "tls.key"
    crt.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(crt), str(crt), str(pem)


async def serve(
    scenario: str, *, speed: float, seed: int, kube: str, slurm: str, kubeconfig: str, token_file: str, with_parent: bool,
    ready: Callable[[dict[str, str]], None], faults: Mapping[str, float] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Serve until cancelled, or until stdin ends. `faults` are settings by name."""
    found = load(scenario)
    if not speed > 0:
        raise UsageError("--speed must be greater than 0")
    os.umask(0o077)
    clock = SimClock(speed)
    # A large world is built of millions of things that all stay: looking for garbage among them takes a third of the time.
    gc.disable()
    world = World(found, clock.now, seed=seed)
    gc.freeze()
    gc.enable()
    world.settings.listen("speed", clock.set_speed)
    world.settings.change({"speed": speed, **faults})
    with tempfile.TemporaryDirectory(prefix="slinkytui-sim-") as folder:
        ca, crt, key = certificates(Path(folder))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(crt, key)
        runners = [
            web.AppRunner(adapter(world.handle_kube)),
            web.AppRunner(adapter(world.handle_slurm, SettingsRest(world.settings))),
        ]
        addresses = []
        for runner, address, tls in zip(runners, (kube, slurm), (context, None), strict=True):
            host, _, port = address.rpartition(":")
            await runner.setup()
            site = web.TCPSite(runner, host or "127.0.0.1", int(port), ssl_context=tls, shutdown_timeout=0.2)
            await site.start()
            addresses.append(f"{host or '127.0.0.1'}:{runner.addresses[0][1]}")
        config, token = kubeconfig or str(Path(folder) / "kubeconfig"), token_file or str(Path(folder) / "token")
        Path(config).write_text(
            yaml.safe_dump(_kubeconfig(world, addresses[0], Path(ca).read_text(encoding="utf-8"))), encoding="utf-8"
        )
        claims = {"exp": int(time.time()) + 10 * 365 * 86_400, "iat": int(time.time()), "sun": "root"}
        Path(token).write_text(jwt.encode(claims, world.key, algorithm="HS256"), encoding="utf-8")
        ready(
            {
                "kubeconfig": config,
                "kube_url": f"https://{addresses[0]}",
                "slurm_url": f"http://{addresses[1]}",
                "token_file": token,
                "scenario": found.name,
            }
        )
        try:
            await _live(world, with_parent)
        finally:
            for runner in runners:
                await runner.cleanup()


async def _live(world: World, with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), lambda: ended.set() if not os.read(sys.stdin.fileno(), 1024) else None)
    while not ended.is_set():
        world.step()
        try:
            await asyncio.wait_for(ended.wait(), 1.0)
        except TimeoutError:
            continue


def _kubeconfig(world: World, address: str, ca: str) -> dict[str, object]:
    cluster = {"server": f"https://{address}", "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "sim",
        "clusters": [{"name": "sim", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": world.token}}, {"name": "reader", "user": {"token": f"{world.token}-reader"}}],
        "contexts": [
            {"name": "sim", "context": {"cluster": "sim", "user": "admin", "namespace": world.scenario.namespace}},
            {"name": "sim-reader", "context": {"cluster": "sim", "user": "reader", "namespace": world.scenario.namespace}},
        ],
    }  # fmt: skip
