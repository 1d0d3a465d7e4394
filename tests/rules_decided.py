"""What is said of a rule beside its tests: decisions where there is no test, and regressions of the past in one sentence each."""

from __future__ import annotations

DECIDED: dict[str, str] = {}
"""Rule → what was decided, for rules that no test of ours can hold or that belong to a part that is not there yet."""

REGRESSIONS: tuple[str, ...] = ()
"""X1, X2 … in this order."""
