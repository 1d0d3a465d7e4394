"""Every rule has a test or a decision, no test names a rule that does not exist, and the page says what the tests say."""

from __future__ import annotations

import ast

from tests import rules
from tests.rules_decided import DECIDED


def test_every_rule_is_accounted_for() -> None:
    held = {one.rule for one in rules.found()}
    assert [rule for rule in rules.known() if rule not in held and rule not in DECIDED] == []


def test_no_test_names_an_unknown_rule() -> None:
    known = set(rules.known())
    assert [one for one in rules.found() if one.rule not in known] == []
    assert set(DECIDED) <= known


def test_the_page_is_what_the_tests_say() -> None:
    assert rules.PAGE.read_text() == rules.page(), "run `python -m tests.rules`"


def test_rows_and_functions_are_both_found() -> None:
    source = 'T = [case("P3 W10", "three to one", 1)]\n\n@holds("W1")\ndef test_it_waits(): ...\n'
    assert list(rules._of(ast.parse(source), "tests/t.py")) == [
        rules.Held("W1", "it waits", "tests/t.py::test_it_waits"),
        rules.Held("P3", "three to one", "tests/t.py[P3-W10-three-to-one]"),
        rules.Held("W10", "three to one", "tests/t.py[P3-W10-three-to-one]"),
    ]
