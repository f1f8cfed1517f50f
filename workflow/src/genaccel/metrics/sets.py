"""Two sets of feature vectors, checked before a distance between them is taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genaccel.spec import SpecError


def checked_sets(
    metric: str, features: ArrayLike, reference: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both sets as float64, (n, d) and (m, d).

    Args:
        metric: whose sets these are, for messages.

    Raises:
        SpecError: fewer than two members, different dimensions, or values that are not finite.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise SpecError(
            f"{metric} compares sets of feature vectors of one dimension, not arrays of {x.shape} and {y.shape}; "
            "take both through one network"
        )
    for name, values in (("synthetic", x), ("real", y)):
        if len(values) < 2:
            raise SpecError(
                f"{metric} needs at least two volumes a side, but the {name} set has {len(values)}; "
                + ("sample more (sample.per_mask)" if name == "synthetic" else "choose a larger metrics.reference")
            )
        bad = int((~np.isfinite(values).all(axis=1)).sum())
        if bad:
            raise SpecError(
                f"{metric}: the features of the {name} set are not all finite, in {bad} of {len(values)} volumes; "
                "look at its volumes"
            )
    return x, y
