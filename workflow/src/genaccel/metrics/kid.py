"""Kernel distance (KID) between two sets of features, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genaccel.metrics.mmd import KernelDistance
from genaccel.metrics.sets import checked_sets

DEGREE = 3


def polynomial_kernel(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(x . y / d + 1)^3`` between all members, (n, d) -> (n, n)."""
    return (features @ features.T / features.shape[1] + 1) ** DEGREE


def kernel_distance(features: ArrayLike, reference: ArrayLike) -> float:
    """Squared MMD with ``polynomial_kernel``, unbiased: zero on average between sets of one kind, so also below zero.

    All volumes are taken for those of different subjects.

    Args:
        features: (n, d), n >= 2.
        reference: (m, d), m >= 2.

    Raises:
        SpecError: fewer than two members, different dimensions, or values that are not finite.

    Source: Binkowski et al., Demystifying MMD GANs, ICLR 2018, section 4; Gretton et al., JMLR 13, 2012, eq. 3.
    """
    x, y = checked_sets("KID", features, reference)
    rows = np.arange(len(x) + len(y))
    distance = KernelDistance(polynomial_kernel(np.concatenate([x, y])), subjects=rows)
    return distance(rows[: len(x)], rows[len(x) :])
