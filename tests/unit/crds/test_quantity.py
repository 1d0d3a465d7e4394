"""Quantities as the API server writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinkytui.backend.crds.quantity import parse_quantity

CANONICAL = [
    ("0", "0"), ("2", "2"), (2, "2"), (0.5, "500m"), ("1000m", "1"), ("1500m", "1500m"), ("0.5", "500m"), (".5", "500m"), ("1.", "1"),
    ("100000", "100k"), ("1048576", "1048576"), ("1024Mi", "1Gi"), ("0.5Gi", "512Mi"), ("1536Mi", "1536Mi"), ("1000Ki", "1000Ki"),
    ("1Ki", "1Ki"), ("0.5Ki", "512"), ("0.1Ki", "102400m"), ("1e3", "1e3"), ("12e4", "120e3"), ("1E", "1E"), ("1E2", "100"),
    ("-5", "-5"), ("+5k", "5k"), ("0.0000000001", "1n"), ("-0.0000000001", "-1n"), ("0Gi", "0"), (" 1 ", "1"), ("16Gi", "16Gi"),
    ("100E", "100E"), ("1e20", "100e18"), ("99999999999999999999", "99999999999999999999"),
    ("100Ei", "9223372036854775807"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_canonical_quantities(text: str | int | float, expected: str) -> None:
    assert str(parse_quantity(text)) == expected


@pytest.mark.parametrize("text", ["", "Gi", "1gi", "1 Gi", "1.2.3", "one", "1e", "1e1000", "0x1", "1KiB", "--1", "١"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@given(
    st.integers(0, 10**9), st.integers(0, 999), st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"])
)  # fmt: skip
def test_the_canonical_text_is_stable_and_means_the_same(whole: int, part: int, suffix: str) -> None:
    first = parse_quantity(f"{whole}.{part:03}{suffix}")
    again = parse_quantity(str(first))
    assert again.value == first.value
    assert str(again) == str(first)
