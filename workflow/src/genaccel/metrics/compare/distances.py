"""How much farther from the real volumes one run is than another: FID and KID differences, paired by subject."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genaccel.measurement import Result
from genaccel.metrics.compare.verdict import Difference
from genaccel.metrics.distances import Distance, Frechet, Rows
from genaccel.metrics.fid import frechet_distance
from genaccel.metrics.floor import plan_floor
from genaccel.metrics.interval import deletions, jackknife_interval, too_few
from genaccel.metrics.kid import polynomial_kernel
from genaccel.metrics.mmd import KernelDistance
from genaccel.metrics.reference import RealVolumes
from genaccel.metrics.samples import Case
from genaccel.metrics.sets import checked_sets
from genaccel.seeds import derive_seed


class Sets(NamedTuple):
    """Two runs of the same masks, and what both are compared with.

    Attributes:
        run, baseline: features, (n, d) each, in one order.
        subjects: whose mask each row was made for.
        real: all real volumes.
        modality: of the features.
        reference: split of the real volumes to compare with.
        seed: of the samples, and of the draws of the floor.
    """

    run: NDArray[np.float64]
    baseline: NDArray[np.float64]
    subjects: Sequence[str]
    real: RealVolumes
    modality: str
    reference: str
    seed: int

    @property
    def chosen(self) -> NDArray[np.bool_]:
        return self.real.in_split(self.reference)


def fid_difference(sets: Sets) -> Difference:
    """Of FID-3D, with the real-against-real floor; says why where there are too few volumes."""
    real, chosen = sets.real.features[sets.modality], sets.chosen
    n, n_reference, dimension = len(set(sets.subjects)), int(chosen.sum()), sets.real.record.network.dimension
    if min(len(sets.run), n_reference) < 2:
        reason = f"a distance needs two volumes a side at least; there are {len(sets.run)} and {n_reference} real"
        return Difference(math.nan, math.nan, math.nan, None, reason)
    checked_sets("FID", sets.run, sets.baseline)
    value, low, high, reason = _paired(sets, Frechet(np.concatenate([sets.run, sets.baseline, real])))
    if min(n, n_reference) < dimension:
        reason = (
            f"too few volumes for FID to be reliable: {n} masks and {n_reference} real volumes for {dimension} "
            "features; sample as many as there are features at least"
        )
    floor = plan_floor(chosen, len(sets.run), derive_seed(sets.seed, "floor"))
    floors = [frechet_distance(real[draw.first], real[draw.second]).value for draw in floor.draws]
    return Difference(value, low, high, float(np.mean(floors)) if floors else None, reason)


def kid_difference(sets: Sets) -> Difference:
    """Of KID; it has no bias, so that few volumes widen its interval alone."""
    features = np.concatenate([sets.run, sets.baseline, sets.real.features[sets.modality]])
    _, numbers = np.unique([*sets.subjects, *sets.subjects, *sets.real.record.subjects], return_inverse=True)
    if len(set(sets.subjects)) < 2 or sets.chosen.sum() < 2:
        return Difference(math.nan, math.nan, math.nan, None, "KID needs samples of two masks, and two real volumes")
    return Difference(*_paired(sets, KernelDistance(polynomial_kernel(features), numbers))[:3], None)


def _paired(sets: Sets, distance: Distance) -> tuple[float, float, float, str]:
    """The difference, its interval by jackknife, and why there is none: a subject goes from all three sets at once."""
    n = len(sets.run)
    run, baseline = np.arange(n), np.arange(n, 2 * n)
    second: Rows = 2 * n + np.flatnonzero(sets.chosen)
    value = distance(run, second) - distance(baseline, second)
    reference = sets.real.subjects(np.flatnonzero(sets.chosen))
    if reason := too_few(sets.subjects, reference):
        return value, math.nan, math.nan, reason
    keep, keep_second, stratum = deletions(sets.subjects, reference)
    without, before = (distance.each(first, second, keep, keep_second) for first in (run, baseline))
    return value, *jackknife_interval(value, without - before, stratum), ""


def difference_results(metric: str, found: Difference, case: Case, n: int, seed: int) -> Iterator[Result]:
    """Three results: the difference and both ends of its interval; ``unsupported`` with the reason where there is none.

    Args:
        metric: ``fid_difference`` or ``kid_difference``.
        n: volumes a run.
    """
    for ending, value in (("", found.value), ("_low", found.low), ("_high", found.high)):
        name, common = f"{metric}{ending}", {"unit": "1", "case": case, "n": n, "seed": seed}
        if math.isnan(value):
            reason = found.reason or "no interval"
            yield Result(metric=name, status="unsupported", reason=reason, **common)
        else:
            yield Result(metric=name, values=(value,), **common)
