"""Plain-text tables and quantities."""

from __future__ import annotations

from collections.abc import Sequence

from genaccel.plan.devices import GIB
from genaccel.plan.rates import Estimate


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns as wide as their widest cell.

    Args:
        right: columns that end flush.
    """
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def gib(size: float) -> str:
    """``18.7 GiB``; ``-`` for nothing, ``< 0.1 GiB`` for little."""
    if not size:
        return "-"
    return f"{size / GIB:,.1f} GiB" if size >= 0.05 * GIB else "< 0.1 GiB"


def hours(estimate: Estimate) -> str:
    """``3.4 h``, ``2.9-4.1 h`` or, below an hour, ``12-18 min``: two digits are more than it deserves."""
    if estimate.high < 6:
        return "< 0.1 min"
    unit, seconds = ("h", 3600) if estimate.high >= 3600 else ("min", 60)
    low, high = (_two_digits(bound / seconds) for bound in (estimate.low, estimate.high))
    return f"{low} {unit}" if low == high else f"{low}-{high} {unit}"


def minutes(number: int) -> str:
    """``24 h``, ``30 min``; ``-`` where no limit is set."""
    if not number:
        return "-"
    return f"{number // 60} h" if number % 60 == 0 else f"{number} min"


def _two_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"
