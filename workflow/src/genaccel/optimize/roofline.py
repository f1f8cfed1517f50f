"""How near a step comes to what its arithmetic and its traffic allow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from genaccel.resources import read_resource
from genaccel.variant import Precision

if TYPE_CHECKING:
    from genaccel.optimize.ceilings import Ceilings

TOLERANCE = 1.1
"""A step that is faster than this many times the measured ceiling is flagged."""


@dataclass(frozen=True)
class Roofline:
    """A step's place under the roof.

    Attributes:
        achieved: FLOP/s.
        ceiling_share: over the matrix product's.
        roofline_share: over what the roof allows at the step's FLOP a byte.
    """

    achieved: float
    ceiling_share: float
    roofline_share: float

    @property
    def flag(self) -> str:
        """What to make of a rate above the ceiling; empty below."""
        if self.ceiling_share <= TOLERANCE:
            return ""
        return (
            f"{self.ceiling_share:.2f} of the ceiling of matrix products that the same process measured: an algorithm "
            "with fewer operations than the counted ones (Winograd, FFT), or a disturbed ceiling"
        )


def roofline(flops: float, bytes_moved: float, seconds: float, ceilings: Ceilings) -> Roofline:
    """Places a step under min(matmul ceiling, memory ceiling x flops / bytes).

    Args:
        flops: of the step, as ``Work`` counts.
        bytes_moved: at least, as ``Work.bytes_moved`` defines.
        seconds: of the step.
        ceilings: measured in the same process.

    Source: Williams et al., Roofline: An Insightful Visual Performance Model, CACM 2009.
    """
    achieved = flops / seconds
    roof = min(ceilings.matmul, ceilings.memory * flops / bytes_moved)
    return Roofline(achieved, achieved / ceilings.matmul, achieved / roof)


def datasheet_peak(slug: str, precision: Precision) -> float | None:
    """FLOP/s that the maker names for a device, from ``devices.csv``; None where unknown. FP16 has BF16's."""
    column = {"fp16": "bf16"}.get(precision, precision)
    for row in read_resource("devices.csv"):
        if re.search(row["slug"], slug):
            return float(text) * 1e12 if (text := row[f"{column}_tflops"]) else None
    return None


def check_peak(achieved: float, slug: str, precision: Precision, what: str) -> None:
    """Refuses a rate that the device cannot have.

    Raises:
        ValueError: ``achieved`` is above the datasheet's peak; ``what`` names the measurement.
    """
    peak = datasheet_peak(slug, precision)
    if peak is not None and achieved > peak:
        raise ValueError(
            f"{what}: {achieved / 1e12:.1f} TFLOP/s in {precision}, but the maker of {slug} names {peak / 1e12:.1f} as "
            "its peak: the work was left out or the clock is wrong. Nothing is written; run again, and if it stays, "
            "compare the output with fp32_strict's"
        )
