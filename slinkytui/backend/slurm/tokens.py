"""Where a Slurm token comes from: a text, a file that is read again when it changes, a command, or a JWT key."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import Any, Protocol

import jwt

from slinkytui.backend.clock import Clock
from slinkytui.backend.errors import ConfigError

_AHEAD_S = 60.0


class Tokens(Protocol):
    async def token(self) -> str:
        """The token to send now. Raises ConfigError that says what to do."""
        ...

    def forget(self) -> None:
        """The server refused it: the next `token` makes or reads a new one."""
        ...


class StaticToken:
    def __init__(self, text: str) -> None:
        self._text = clean(text)

    async def token(self) -> str:
        if not self._text:
            raise ConfigError("the Slurm token is empty", hint="SLURM_JWT=$(scontrol token) or --token-file")
        return self._text

    def forget(self) -> None:
        return None


class FileToken:
    """Read again whenever the file was replaced or written."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._text = ""

    async def token(self) -> str:
        try:
            stat = os.stat(self._path)
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen != self._seen:
                with open(self._path, encoding="utf-8") as file:
                    self._text = clean(file.read())
                self._seen = seen
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the token file {self._path} cannot be read", detail=str(error)) from error
        if not self._text:
            raise ConfigError(f"the token file {self._path} is empty")
        return self._text

    def forget(self) -> None:
        self._seen = None


class CommandToken:
    """The output of a command, run again before the token ends."""

    def __init__(self, command: str, clock: Clock) -> None:
        self._command, self._clock, self._text = command, clock, ""

    async def token(self) -> str:
        if not self._text or ends_soon(self._text, self._clock.now()):
            try:
                process = await asyncio.create_subprocess_exec(
                    *shlex.split(self._command), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )  # fmt: skip
                out, err = await asyncio.wait_for(process.communicate(), 30)
            except (OSError, ValueError, TimeoutError) as error:
                raise ConfigError(f"the token command {self._command!r} failed", detail=str(error)) from error
            if process.returncode:
                raise ConfigError(
                    f"the token command {self._command!r} failed", detail=err.decode("utf-8", "replace")[:200]
                )
            self._text = clean(out.decode("utf-8", "replace"))
        return self._text

    def forget(self) -> None:
        self._text = ""


class MintedToken:
    """Signed with the cluster's HS256 key for `user`; renewed a minute before it ends."""

    def __init__(self, key: bytes, user: str, clock: Clock, *, lifetime_s: int = 900) -> None:
        self._key, self._user, self._clock, self._lifetime_s = key, user, clock, lifetime_s
        self._text = ""

    async def token(self) -> str:
        now = self._clock.now()
        if not self._text or ends_soon(self._text, now):
            claims = {"exp": int(now) + self._lifetime_s, "iat": int(now), "sun": self._user}
            self._text = jwt.encode(claims, self._key, algorithm="HS256")
        return self._text

    def forget(self) -> None:
        self._text = ""


def clean(text: str) -> str:
    """A token as `scontrol token` prints it, without its prefix."""
    return text.strip().removeprefix("SLURM_JWT=").strip()


def claims(token: str) -> dict[str, Any]:
    """What a token says of itself, unverified; {} for one that is none."""
    try:
        return dict(jwt.decode(token, options={"verify_signature": False, "verify_exp": False}))
    except jwt.PyJWTError:
        return {}


def ends_soon(token: str, now: float) -> bool:
    end = claims(token).get("exp")
    return isinstance(end, int | float) and end - now < _AHEAD_S


def user_of(token: str) -> str:
    """The user that a token is for (`sun`, or `username`)."""
    found = claims(token)
    return str(found.get("sun") or found.get("username") or "")
