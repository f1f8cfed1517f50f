"""Frechet distance between two sets of features, in float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genaccel.spec import SpecError


class FrechetDistance(NamedTuple):
    """A distance with what its trust depends on.

    Attributes:
        value: squared Frechet distance, as is the custom with FID; no unit.
        n, n_reference: members of the two sets.
        dimension: of a feature vector.
    """

    value: float
    n: int
    n_reference: int
    dimension: int

    @property
    def reliable(self) -> bool:
        """False where a set is smaller than the dimension: its covariance is singular and the bias swamps the value."""
        return min(self.n, self.n_reference) >= self.dimension


def frechet_distance(features: ArrayLike, reference: ArrayLike) -> FrechetDistance:
    """``|m1 - m2|^2 + tr(S1) + tr(S2) - 2 tr((S1^1/2 S2 S1^1/2)^1/2)``, with unbiased covariances S.

    The last trace is the sum of the singular values of ``A B^T``, where ``S1 = A^T A`` and ``S2 = B^T B`` are
    the centred sets over sqrt(n - 1). That needs no matrix square root: below n = d the eigenvalues of the usual
    form that should be zero come out as rounding, and their roots add up to 1e-6 of the traces.

    Args:
        features: (n, d), n >= 2.
        reference: (m, d), m >= 2.

    Raises:
        SpecError: fewer than two members, different dimensions, or values that are not finite.

    Source: Heusel et al., GANs trained by a two time-scale update rule, NeurIPS 2017, eq. 6.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise SpecError(f"FID compares sets of feature vectors of one dimension, not arrays of {x.shape} and {y.shape}")
    for name, values in (("synthetic", x), ("real", y)):
        if len(values) < 2:
            raise SpecError(f"FID needs at least two volumes a side, but the {name} set has {len(values)}")
        if not np.isfinite(values).all():
            raise SpecError(f"FID: the features of the {name} set are not all finite; look at its volumes")
    a, b = _root(x), _root(y)
    overlap = np.linalg.svd(a @ b.T, compute_uv=False).sum()
    distance = np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2) + np.sum(a**2) + np.sum(b**2) - 2 * overlap
    # Equal sets leave rounding of either sign.
    return FrechetDistance(max(float(distance), 0.0), len(x), len(y), x.shape[1])


def _root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A with ``A^T A`` the covariance, at most (d, d)."""
    centred = (values - values.mean(axis=0)) / np.sqrt(len(values) - 1)
    return centred if len(values) <= values.shape[1] else np.linalg.qr(centred, mode="r")
