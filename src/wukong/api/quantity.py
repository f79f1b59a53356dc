"""Kubernetes quantities, exact: "100m", "1.5Gi", "2e3" as whole numbers of billionths.

Used wherever requests and capacities are added up: sums stay exact, and are rounded up once, at the end, to the
unit the scheduler counts in (millicores for cpu, whole units for everything else). Never uses floats.

What the scheduler counts in is capped at LARGEST_AMOUNT, so that whatever is computed of it stays within 64 bits.
kube-scheduler does otherwise: an amount beyond 64 bits (`cpu: 9E` in millicores) counts as nothing there, which would
let anybody hide what a node holds.
"""

from __future__ import annotations

import re
from functools import lru_cache

from wukong.errors import InputError

NANO = 10**9
MAX = (2**63 - 1) * NANO  # Kubernetes caps quantities at 2^63-1 units
LARGEST_AMOUNT = 1 << 56  # 64 PiB, or 72 million million cores: times 100, as scores need it, it fits into 64 bits
_LONGEST = 4_000  # characters: Python itself refuses to read longer numbers

_SUFFIXES: dict[str, tuple[int, int]] = {  # suffix → numerator, denominator of its unit
    "n": (1, 10**9),
    "u": (1, 10**6),
    "m": (1, 10**3),
    "": (1, 1),
    **{letter: (10 ** (3 * i), 1) for i, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": (1024**i, 1) for i, letter in enumerate("KMGTPE", start=1)},
}
_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_HUGE_EXPONENT = 60  # beyond this the value is over the cap, or below one billionth, whatever the digits


@lru_cache(maxsize=65536)
def parse_quantity(text: str | int | float) -> int:
    """The quantity in billionths, rounded up (away from zero) where it is finer than that."""
    literal = text.strip() if isinstance(text, str) else repr(text)  # YAML may have read it as a number
    match = _FORM.fullmatch(literal) if len(literal) <= _LONGEST else None
    if match is None or not (match[2] or match[3]):
        raise InputError(_describe_problem(literal))
    sign, whole, fraction, exponent, suffix = match.groups()
    fraction = fraction or ""
    digits = int((whole or "") + fraction)
    power = int(exponent[1:]) if exponent else 0
    if abs(power) > _HUGE_EXPONENT:
        power = _HUGE_EXPONENT if power > 0 else -_HUGE_EXPONENT
    numerator, denominator = _SUFFIXES[suffix or ""]
    numerator *= digits * NANO * 10 ** max(power, 0)
    denominator *= 10 ** (len(fraction) + max(-power, 0))
    amount: int = min(-(-numerator // denominator), MAX)
    return -amount if sign == "-" else amount


def milli(nanos: int) -> int:
    """Whole thousandths, rounded up: how the scheduler counts cpu."""
    return _divide_up(nanos, 10**6)


def units(nanos: int) -> int:
    """Whole units, rounded up: how the scheduler counts everything but cpu."""
    return _divide_up(nanos, NANO)


def scheduler_amount(resource: str, nanos: int) -> int:
    """The integer to count this resource with: the scheduler's own, capped at LARGEST_AMOUNT."""
    amount = milli(nanos) if resource == "cpu" else units(nanos)
    return max(-LARGEST_AMOUNT, min(LARGEST_AMOUNT, amount))


def format_amount(resource: str, amount: int) -> str:
    """A scheduler amount the way people write it: 1500 millicores as "1500m", 1073741824 bytes as "1Gi"."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for power, letter in ((5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if amount and amount % 1024**power == 0:
                return f"{amount // 1024**power}{letter}"
    return str(amount)


def _divide_up(value: int, by: int) -> int:
    away_from_zero = -(-abs(value) // by)
    return away_from_zero if value >= 0 else -away_from_zero


def _describe_problem(literal: str) -> str:
    return (
        f'expected a quantity such as "500m", "2" or "1.5Gi", got {literal!r:.100}. '
        "Use digits and one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent like 1e3."
    )
