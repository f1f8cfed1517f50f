"""Maximum mean discrepancy between two sets of features, in float64."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist, squareform

from genaccel.metrics.sets import checked_sets

MOST = 2000
"""Volumes that the bandwidth is taken from, at most."""


def median_bandwidth(features: ArrayLike) -> float | None:
    """The median distance between two members of a set: the width of ``rbf_kernel``. None where it is zero.

    Of more than 2000 members, evenly spaced ones stand for all.

    Args:
        features: (n, d); fewer than two members have no distance.

    Source: Gretton et al., A kernel two-sample test, JMLR 13, 2012, section 8.
    """
    values = np.asarray(features, dtype=np.float64)
    values = values[:: max(1, math.ceil(len(values) / MOST))]
    return (float(np.median(pdist(values))) or None) if len(values) > 1 else None


def rbf_kernel(features: NDArray[np.float64], bandwidth: float) -> NDArray[np.float64]:
    """``exp(-|x - y|^2 / (2 bandwidth^2))`` between all members, (n, d) -> (n, n)."""
    # Of differences, not of products: two equal volumes have exactly 1, wherever they stand.
    return np.exp(squareform(pdist(features, "sqeuclidean")) / (-2 * bandwidth**2))


def rbf_mmd(features: ArrayLike, reference: ArrayLike, bandwidth: float) -> float:
    """Squared MMD with ``rbf_kernel``, a V-statistic: never negative, and 0 for a set with itself.

    Args:
        features: (n, d), n >= 2.
        reference: (m, d), m >= 2.
        bandwidth: fixed once from real volumes, so that the values of several sets compare.

    Raises:
        SpecError: fewer than two members, different dimensions, or values that are not finite.

    Source: Gretton et al., A kernel two-sample test, JMLR 13, 2012, eq. 5.
    """
    x, y = checked_sets("MMD", features, reference)
    rows = np.arange(len(x) + len(y))
    return KernelDistance(rbf_kernel(np.concatenate([x, y]), bandwidth))(rows[: len(x)], rows[len(x) :])


class KernelDistance:
    """Squared MMD between subsets of volumes whose kernel is known.

    Args:
        kernel: (n, n), of all volumes.
        subjects: (n,), a number a subject: unbiased, from pairs of volumes of two subjects alone. A volume's kernel
            with itself says nothing of the distance; neither does that of a synthetic volume with the real one of
            its mask, or with another of its mask. The value may be negative. None: all pairs (V-statistic).
    """

    def __init__(self, kernel: NDArray[np.float64], subjects: NDArray[np.intp] | None = None) -> None:
        self._kernel, self._subjects = kernel, subjects

    def __call__(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> float:
        """Of the volumes with these numbers; those of a set are of two subjects at least."""
        within, within_second, between = (
            kernel.sum() / pairs.sum()
            for kernel, pairs in (self._block(a, b) for a, b in ((first, first), (second, second), (first, second)))
        )
        value = float(within + within_second - 2 * between)
        return max(value, 0.0) if self._subjects is None else value

    def each(
        self, first: NDArray[np.intp], second: NDArray[np.intp], keep: NDArray, keep_second: NDArray
    ) -> NDArray[np.float64]:
        """Of many pairs of subsets of these volumes: bool, (u, n) and (u, m) to (u,)."""
        a, b = keep.astype(np.float64), keep_second.astype(np.float64)

        def mean(rows: NDArray, columns: NDArray, left: NDArray, right: NDArray) -> NDArray[np.float64]:
            total, count = (((left @ block) * right).sum(axis=1) for block in self._block(rows, columns))
            return total / count

        return mean(first, first, a, a) + mean(second, second, b, b) - 2 * mean(first, second, a, b)

    def _block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
        """Kernel of the pairs that count, and which do, as 0 and 1."""
        kernel = self._kernel[np.ix_(rows, columns)]
        if self._subjects is None:
            return kernel, np.ones(kernel.shape)
        pairs = (self._subjects[rows][:, None] != self._subjects[columns]).astype(np.float64)
        return kernel * pairs, pairs
