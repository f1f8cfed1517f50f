"""How numbers are written: as many decimals as their uncertainty deserves, powers of ten only where needed."""

from __future__ import annotations

import math

from genaccel.figures.style import MINUS, TIMES

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
SMALLEST = 6  # decimals that one still reads without counting zeros
LARGEST = 1e6
RAISED = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")


def decimals(*sizes: float) -> int:
    """Decimals that show three significant digits of the largest of some sizes; NaN counts for nothing."""
    size = max((abs(size) for size in sizes if math.isfinite(size)), default=0.0)
    return max(2 - math.floor(math.log10(size)), 0) if size else 3


def number(value: float, digits: int) -> str:
    """``0.0123`` with so many decimals; ``1.23 x 10^-8`` where that would be a row of zeros."""
    if value and (digits > SMALLEST or abs(value) >= LARGEST):
        mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa} {TIMES} 10{str(int(exponent)).translate(RAISED)}"
    else:
        text = f"{value:.{min(digits, SMALLEST)}f}"
        # A number that rounds to zero has no sign.
        text = text.lstrip("-") if not float(text) else text
    return text.replace("-", MINUS)


def with_spread(mean: float, sd: float, digits: int) -> str:
    """``mean +- sd``; the mean alone where there is no spread (NaN)."""
    return number(mean, digits) + ("" if math.isnan(sd) else f" {PLUS_MINUS} {number(sd, digits)}")


def interval(low: float, high: float, digits: int) -> str:
    """``[low, high]``; empty where there is none (NaN)."""
    return "" if math.isnan(low) or math.isnan(high) else f"[{number(low, digits)}, {number(high, digits)}]"
