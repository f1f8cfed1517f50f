"""Real against real: what a distance reads where nothing differs but the draw of the subjects."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 8


class Draw(NamedTuple):
    """Rows of the real volumes: a set in place of the synthetic one, and a disjoint reference."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]


class Floor(NamedTuple):
    """How real volumes can be compared with real ones.

    Attributes:
        source: ``outside``: as many as there are synthetic volumes from outside the reference, against all of it;
            ``halves``: two disjoint sets of all real volumes, each as large as they allow; ``none``.
        draws: seeded; they share volumes, so that their spread is less than that of new subjects.
        reason: of ``none``.
    """

    source: Literal["outside", "halves", "none"]
    draws: tuple[Draw, ...]
    reason: str = ""


def plan_floor(in_reference: NDArray[np.bool_], n: int, seed: int) -> Floor:
    """Draws without replacement.

    Args:
        in_reference: (N,), which of the real volumes are the reference.
        n: synthetic volumes.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    total, reference, outside = len(in_reference), np.flatnonzero(in_reference), np.flatnonzero(~in_reference)
    if n < 2 or len(reference) < 2:
        return Floor("none", (), f"a set of one volume has no distance; {n} synthetic and {len(reference)} real")
    if len(outside) >= n:
        # All of them can be drawn in one way only.
        count = DRAWS if len(outside) > n else 1
        draws = (Draw(np.sort(rng.choice(outside, n, replace=False)), reference) for _ in range(count))
        return Floor("outside", tuple(draws))
    size = min(n, total // 2)
    if size < 2:
        return Floor("none", (), f"real against real needs four real volumes at least; there are {total}")
    rest = min(len(reference), total - size)
    orders = (rng.permutation(total) for _ in range(DRAWS))
    return Floor("halves", tuple(Draw(np.sort(o[:size]), np.sort(o[size : size + rest])) for o in orders))
