"""One tree of errors. Client libraries' exceptions stop at `kube` and `slurm` and come out as these.

`title` is one line for a toast, `detail` what the server said, `hint` what to do next. `exit_code` is the
command line's: 0 done, 1 failed or refused, 2 usage, 3 not found, 4 unreachable, 5 stale plan, 6 not allowed.
"""

from __future__ import annotations


class SlinkyError(Exception):
    exit_code = 1

    def __init__(self, title: str, *, detail: str = "", hint: str = "", retryable: bool = False) -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.hint = hint
        self.retryable = retryable

    def line(self) -> str:
        """One line for stderr."""
        text = self.title
        if self.detail and self.detail not in text:
            text += f": {self.detail}"
        return f"{text} ({self.hint})" if self.hint else text


class UsageError(SlinkyError):
    exit_code = 2


class ConfigError(UsageError):
    """Names the file and the key."""


class NotFound(SlinkyError):
    exit_code = 3


class Unreachable(SlinkyError):
    """No answer at all: refused connection, time-out, TLS, a proxy's page instead of the server's words."""

    exit_code = 4

    def __init__(self, title: str, *, detail: str = "", hint: str = "", retryable: bool = True) -> None:
        super().__init__(title, detail=detail, hint=hint, retryable=retryable)


class PlanStale(SlinkyError):
    exit_code = 5


class NotAllowed(SlinkyError):
    """401, 403 and Slurm's access errors."""

    exit_code = 6


class Conflict(SlinkyError):
    """A precondition or a state did not fit: read again, decide again."""


class BadRequest(SlinkyError):
    """The server understood and refused the contents."""


class Unsupported(SlinkyError):
    """This release of the server cannot do it."""


class KubeError(SlinkyError):
    """An answer of the API server that no class below fits. `status` is HTTP's, `reason` the Status object's."""

    def __init__(
        self, title: str, *, status: int, reason: str = "", detail: str = "", hint: str = "", retryable: bool = False
    ) -> None:
        super().__init__(title, detail=detail, hint=hint, retryable=retryable)
        self.status = status
        self.reason = reason


class SlurmError(SlinkyError):
    """An answer of slurmrestd that no class below fits. `code` is Slurm's error number (0: none was given)."""

    def __init__(
        self,
        title: str,
        *,
        code: int = 0,
        status: int = 0,
        detail: str = "",
        hint: str = "",
        retryable: bool = False,
    ) -> None:
        super().__init__(title, detail=detail, hint=hint, retryable=retryable)
        self.code = code
        self.status = status
