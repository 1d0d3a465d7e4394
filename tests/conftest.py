"""What holds for all tests: where nothing may be skipped (SLINKYTUI_NO_SKIP=1), a skip fails the run."""

from __future__ import annotations

import os
import signal
import time

import pytest

# Local times stand in pictures: they are read in one zone everywhere.
os.environ["TZ"] = "UTC"
time.tzset()
# Who is started in the background ignores interrupts, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if os.environ.get("SLINKYTUI_NO_SKIP") and skipped:
        terminalreporter.write_line(f"{len(skipped)} tests were skipped, and nothing may be skipped here", red=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        os.environ.get("SLINKYTUI_NO_SKIP")
        and reporter is not None
        and reporter.stats.get("skipped")
        and exitstatus == 0
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
