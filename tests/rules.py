"""Which test holds which rule of the operator: `case` and `holds` say it in the tests, `python -m tests.rules` lists it.

Rules are named by letter and number: W a weak spot of other operators that ours must not have, Q a quirk of theirs that we
keep or mend, the other letters the checklist of cases (E end to end, F finalizers, R revisions, C claiming, I identity,
S sync, P scaling, K condemned pods, O order, D one pod a node, N cordons, Z texts, U updates, G steps from Slurm, T status,
L Slurm requests, V claims of volumes, H handlers and helpers, X regressions).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

from tests.rules_decided import DECIDED, REGRESSIONS

ROOT = Path(__file__).parent
PAGE = ROOT.parent / "docs/operator-rules.md"
COUNTS = {
    "W": 64, "E": 4, "F": 4, "R": 12, "C": 10, "I": 11, "S": 10, "P": 13, "K": 7, "O": 11, "D": 10, "N": 22, "Z": 11, "U": 16,
    "G": 4, "T": 10, "L": 21, "V": 16, "H": 18, "Q": 30, "X": len(REGRESSIONS),
}  # fmt: skip
TITLES = {
    "W": "Weak spots that ours must not have", "E": "End to end", "F": "Finalizers", "R": "Revisions", "C": "Which pods are ours",
    "I": "Identity", "S": "One pass", "P": "Scaling", "K": "Pods that have to leave", "O": "Order of scale-in", "D": "One pod a node",
    "N": "Cordons", "Z": "Texts for Slurm", "U": "Updates", "G": "Steps that follow Slurm", "T": "Status", "L": "Requests to Slurm",
    "V": "Volume claims", "H": "Handlers and helpers", "Q": "Quirks of the upstream operator", "X": "Regressions of the past",
}  # fmt: skip


class Held(NamedTuple):
    rule: str
    what: str
    test: str
    """File, and the function or the row's id in brackets."""


def case(rules: str, name: str, *values: Any) -> ParameterSet:
    """A row of a table: `rules` names what it holds, as in "P3 W10"; both are in the row's id."""
    return pytest.param(*values, id=row_id(rules, name))


def holds(*rules: str) -> Callable[[Any], Any]:
    """A test function holds these rules."""
    assert rules
    return lambda function: function


def row_id(rules: str, name: str) -> str:
    return f"{rules} {name}".strip().replace(" ", "-")


def known() -> list[str]:
    return [f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]


def found(root: Path = ROOT) -> list[Held]:
    """All that tests say they hold, read from their source."""
    out: list[Held] = []
    for path in sorted(root.rglob("test_*.py")):
        out += _of(ast.parse(path.read_text()), f"tests/{path.relative_to(root)}")
    return out


def _of(tree: ast.Module, path: str) -> Iterator[Held]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "case":
            words = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
            if len(words) == 2:
                for rule in str(words[0]).split():
                    yield Held(rule, str(words[1]), f"{path}[{row_id(*map(str, words))}]")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "holds":
                    for rule in (str(a.value) for a in mark.args if isinstance(a, ast.Constant)):
                        yield Held(rule, node.name.removeprefix("test_").replace("_", " "), f"{path}::{node.name}")


def page() -> str:
    """The list as a document."""
    by_rule: dict[str, list[Held]] = {}
    for one in found():
        by_rule.setdefault(one.rule, []).append(one)
    lines = [
        "# Rules of the operator, and the tests that hold them", "",
        "Made by `python -m tests.rules` from the tests themselves. `pytest FILE -k WORDS` runs a row of a table.",
    ]  # fmt: skip
    for letter, count in COUNTS.items():
        lines += ["", f"## {letter}: {TITLES[letter]}", "", "| rule | what | held by |", "|---|---|---|"]
        for rule in (f"{letter}{n}" for n in range(1, count + 1)):
            said = REGRESSIONS[int(rule[1:]) - 1] if letter == "X" else DECIDED.get(rule, "")
            rows = by_rule.get(rule, [])
            shown = {_name(o): o.what for o in rows}
            what = "; ".join(filter(None, (said, *dict.fromkeys(shown.values()))))
            lines.append(f"| {rule} | {what.replace('|', '/')} | {' '.join(f'`{n}`' for n in shown) or '–'} |")
    return "\n".join(lines) + "\n"


def _name(one: Held) -> str:
    return re.sub(r"^tests/", "", one.test)


if __name__ == "__main__":
    PAGE.write_text(page())
