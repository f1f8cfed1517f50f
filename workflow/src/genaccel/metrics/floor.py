"""Real against real: what a distance reads where nothing differs but the draw of the subjects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 8


class Draw(NamedTuple):
    """Rows of the real volumes: a set in place of the synthetic one, and a disjoint reference."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]


class Floor(NamedTuple):
    """How real volumes can be compared with real ones at the same numbers.

    Attributes:
        draws: seeded; they share volumes, so that their spread is less than that of new subjects.
        reason: why there are none.
    """

    draws: tuple[Draw, ...]
    reason: str = ""


def plan_floor(in_reference: NDArray[np.bool_], n: int, seed: int) -> Floor:
    """As many real volumes as there are synthetic ones, from outside the reference, against all of it.

    Of fewer there is none: FID grows as n falls, and a floor at another n would be above the distance it bounds.

    Args:
        in_reference: (N,), which of the real volumes are the reference.
        n: synthetic volumes.
        seed: of the draws, which are without replacement.
    """
    rng = np.random.default_rng(seed)
    reference, outside = np.flatnonzero(in_reference), np.flatnonzero(~in_reference)
    if n < 2 or len(reference) < 2:
        return Floor((), f"a set of one volume has no distance; {n} synthetic and {len(reference)} real")
    if len(outside) < n:
        return Floor((), f"real against real at n = {n} needs as many outside the reference; there are {len(outside)}")
    # All of them can be drawn in one way only.
    count = DRAWS if len(outside) > n else 1
    return Floor(tuple(Draw(np.sort(rng.choice(outside, n, replace=False)), reference) for _ in range(count)))
