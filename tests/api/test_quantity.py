"""Quantities are exact: every suffix, exponents, rounding up, and a clear word about nonsense."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wukong.api.quantity import MAX, NANO, format_amount, milli, parse_quantity, scheduler_amount, units
from wukong.errors import InputError

UNITS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("1", NANO),
        ("+1", NANO),
        ("-1", -NANO),
        ("100m", NANO // 10),
        ("0.1", NANO // 10),
        (".5", NANO // 2),
        ("5.", 5 * NANO),
        ("1e3", 1000 * NANO),
        ("1E3", 1000 * NANO),
        ("1E", 10**18 * NANO),
        ("2e-3", 2 * NANO // 1000),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("1n", 1),
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1e-99", 1),
        ("0e99", 0),
        ("9E", 9 * 10**18 * NANO),
        ("10E", MAX),
        ("1e99", MAX),
        (2, 2 * NANO),
        (0.5, NANO // 2),
        (1e-7, 100),
    ],
)
def test_a_quantity_means_what_kubernetes_says(text: str | float, nanos: int) -> None:
    assert parse_quantity(text) == nanos


@pytest.mark.parametrize(
    "text", ["", " ", ".", "m", "1mm", "1 Gi", "1gi", "0x10", "1e", "1e1.5", "1,5", "NaN", "inf", "--1", "1Kii", "٣"]
)
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="expected a quantity such as"):
        parse_quantity(text)


@given(st.integers(0, 10**6), st.integers(0, 999), st.sampled_from(sorted(UNITS)))
def test_parsing_is_exact_and_rounds_up_to_a_billionth(whole: int, thousandths: int, suffix: str) -> None:
    exact = (whole + Fraction(thousandths, 1000)) * UNITS[suffix] * NANO
    assert parse_quantity(f"{whole}.{thousandths:03d}{suffix}") == min(-(-exact.numerator // exact.denominator), MAX)


def test_cpu_counts_in_thousandths_and_everything_else_in_units_both_rounded_up() -> None:
    assert scheduler_amount("cpu", parse_quantity("1.0001")) == 1001
    assert scheduler_amount("memory", parse_quantity("1000m")) == 1
    assert scheduler_amount("memory", parse_quantity("1001m")) == 2
    assert milli(parse_quantity("-1.0001")) == -1001
    assert units(parse_quantity("-1.1")) == -2


def test_amounts_are_written_the_way_people_write_them() -> None:
    assert format_amount("cpu", 2000) == "2"
    assert format_amount("cpu", 1500) == "1500m"
    assert format_amount("memory", 3 * 2**30) == "3Gi"
    assert format_amount("memory", 1000) == "1000"
    assert format_amount("example.com/gpu", 4) == "4"


@pytest.mark.parametrize("resource", ["memory", "ephemeral-storage", "hugepages-2Mi"])
@pytest.mark.parametrize(("power", "suffix"), [*enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)])
def test_bytes_are_written_in_the_largest_unit_that_is_exact(resource: str, power: int, suffix: str) -> None:
    assert format_amount(resource, 3 * 1024**power) == f"3{suffix}"
    assert format_amount(resource, 1023 * 1024**power) == f"1023{suffix}"
    assert format_amount(resource, 1024**power + 1) == str(1024**power + 1)
    assert format_amount("example.com/gpu", 1024**power) == str(1024**power)
    assert format_amount(resource, 0) == "0"
