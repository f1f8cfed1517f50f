"""Whether a faster run may stand for its baseline: the rule that speed is quoted under."""

from __future__ import annotations

import math
from typing import NamedTuple

SSIM_FALL = 0.01
"""By how much the foreground SSIM to the real volumes may fall."""


class Difference(NamedTuple):
    """Of a distance to the real volumes, run less baseline, with the ends of its 95 % interval.

    Attributes:
        floor: the same distance between real volumes at the same n; None where there are too few.
        reason: why it can say nothing; empty where it can.
    """

    value: float
    low: float
    high: float
    floor: float | None
    reason: str = ""


class Verdict(NamedTuple):
    """``accepted`` is None where nothing can be said; ``reason`` says why in any case."""

    accepted: bool | None
    reason: str


def verdict(fid: Difference, ssim_change: float) -> Verdict:
    """Accepted where the run is not farther from the real volumes, or by less than real ones are from each other.

    Args:
        fid: its interval must reach down to 0, or lie under the floor.
        ssim_change: of the mean foreground SSIM to the real volumes, run less baseline; at least ``-SSIM_FALL``.
    """
    if fid.reason:
        return Verdict(None, fid.reason)
    if math.isnan(ssim_change):
        return Verdict(None, "no mask has a foreground voxel to take SSIM in")
    interval = f"FID difference {fid.value:+.4f} [{fid.low:+.4f}, {fid.high:+.4f}]"
    near = fid.low <= 0 or (fid.floor is not None and fid.high <= fid.floor)
    if fid.low <= 0:
        where = "contains 0" if fid.high >= 0 else "lies below 0"
    elif fid.floor is None:
        where = "lies above 0, and there is no floor of real against real to compare with"
    else:
        where = f"lies {'under' if near else 'above 0 and not under'} the floor of real against real {fid.floor:.4f}"
    alike = ssim_change >= -SSIM_FALL
    ssim = f"foreground SSIM {ssim_change:+.4f}, {'within' if alike else 'beyond'} -{SSIM_FALL}"
    return Verdict(near and alike, f"{interval} {where}, {ssim}")
