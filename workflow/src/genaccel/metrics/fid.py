"""Frechet distance between two sets of features, in float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genaccel.metrics.sets import checked_sets


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
    x, y = checked_sets("FID", features, reference)
    if np.array_equal(x, y):
        # The singular values of a covariance add up to its trace but for rounding.
        return FrechetDistance(0.0, len(x), len(y), x.shape[1])
    a, b = _root(x), _root(y)
    overlap = np.linalg.svd(a @ b.T, compute_uv=False).sum()
    distance = np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2) + np.sum(a**2) + np.sum(b**2) - 2 * overlap
    # Nearly equal sets leave rounding of either sign.
    return FrechetDistance(max(float(distance), 0.0), len(x), len(y), x.shape[1])


def frechet_distances(features: ArrayLike, reference: ArrayLike, keep: NDArray, keep_reference: NDArray) -> NDArray:
    """Squared Frechet distances of many pairs of subsets, for a jackknife: to 1e-7 of the traces, in half the time.

    Args:
        features: (n, d).
        reference: (m, d).
        keep: (u, n), bool; at least two members a row.
        keep_reference: (u, m), bool; likewise.

    Returns:
        (u,), float64.
    """
    x, y = checked_sets("FID", features, reference)
    # Where no set exceeds the dimension, all that is needed of A B^T is in the products of the members.
    products = x @ y.T if max(len(x), len(y)) <= x.shape[1] else None
    whole = {} if products is not None else {0: _root(x), 1: _root(y)}

    def root(side: int, values: NDArray, kept: NDArray) -> NDArray:
        return whole[side] if kept.all() else _root(values[kept])

    distances = np.empty(len(keep))
    for unit, (i, j) in enumerate(zip(keep, keep_reference, strict=True)):
        if products is None:
            overlap = root(0, x, i) @ root(1, y, j).T
        else:
            block = products[np.ix_(i, j)]
            block = block - block.mean(axis=0) - block.mean(axis=1, keepdims=True) + block.mean()
            overlap = block / np.sqrt((i.sum() - 1.0) * (j.sum() - 1.0))
        traces = x[i].var(axis=0, ddof=1).sum() + y[j].var(axis=0, ddof=1).sum()
        shift = np.sum((x[i].mean(axis=0) - y[j].mean(axis=0)) ** 2)
        distances[unit] = shift + traces - 2 * _nuclear_norm(overlap)
    return np.maximum(distances, 0.0)


def _root(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A with ``A^T A`` the covariance, at most (d, d)."""
    centred = (values - values.mean(axis=0)) / np.sqrt(len(values) - 1)
    return centred if len(values) <= values.shape[1] else np.linalg.qr(centred, mode="r")


def _nuclear_norm(matrix: NDArray[np.float64]) -> float:
    """Sum of the singular values, by the eigenvalues of the smaller square."""
    square = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    return float(np.sqrt(np.clip(np.linalg.eigvalsh(square), 0.0, None)).sum())
