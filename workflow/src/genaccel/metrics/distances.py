"""FID-3D, KID and MMD of one modality, each with its interval and its floor, as results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from genaccel.measurement import Result
from genaccel.metrics.fid import frechet_distance, frechet_distances
from genaccel.metrics.floor import Floor, plan_floor
from genaccel.metrics.interval import deletions, jackknife_interval, too_few
from genaccel.metrics.kid import polynomial_kernel
from genaccel.metrics.mmd import KernelDistance, rbf_kernel
from genaccel.metrics.reference import RealVolumes
from genaccel.metrics.samples import Case
from genaccel.metrics.sets import checked_sets
from genaccel.seeds import derive_seed

Rows = NDArray[np.intp]

NEVER_NEGATIVE = ("fid", "mmd")


class Distance(Protocol):
    """A distance between subsets of volumes whose features it knows."""

    def __call__(self, first: Rows, second: Rows) -> float:
        """Of the volumes with these numbers."""

    def each(self, first: Rows, second: Rows, keep: NDArray, keep_second: NDArray) -> NDArray[np.float64]:
        """Of many pairs of subsets of these: bool, (u, n) and (u, m) to (u,)."""


class Frechet:
    """FID as a ``Distance``; features (N, d)."""

    def __init__(self, features: NDArray[np.float64]) -> None:
        self._features = features

    def __call__(self, first: Rows, second: Rows) -> float:
        return frechet_distance(self._features[first], self._features[second]).value

    def each(self, first: Rows, second: Rows, keep: NDArray, keep_second: NDArray) -> NDArray[np.float64]:
        return frechet_distances(self._features[first], self._features[second], keep, keep_second)


def distance_results(
    synthetic: NDArray[np.float64],
    subjects: Sequence[str],
    real: RealVolumes,
    modality: str,
    reference: str,
    case: Case,
    seed: int,
) -> list[Result]:
    """Four results a distance: value, both ends of the 95 % interval, and the real-against-real floor.

    A distance that there are too few volumes for is ``unsupported`` with the reason. All of one modality have the
    same case, but that FID's says ``reliable=no`` where a set is of fewer subjects than the features have
    dimensions, when it is mostly bias, and MMD's its bandwidth.

    Where the reference is the split whose masks were sampled, both sets are of the same subjects, and resemble each
    other more than sets of different ones, as those of the floor: FID and MMD may then read below it. KID leaves
    pairs of one subject out. The interval counts a subject once.

    Args:
        synthetic: features, (n, d).
        subjects: whose mask each was made for.
        real: all real volumes.
        modality: of ``synthetic``.
        reference: split of the real volumes to compare with.
        case: of the run.
        seed: of the samples, and of the draws of the floor.
    """
    chosen = real.in_split(reference)
    floor = plan_floor(chosen, len(synthetic), derive_seed(seed, "floor"))
    network, n = real.record.network, len(synthetic)
    cell = case | {
        "modality": modality,
        "features": network.name,
        "network": network.sha256[:12],
        "dimension": network.dimension,
        "reference": reference,
        "n_reference": int(chosen.sum()),
    }
    if min(n, chosen.sum()) < 2:
        reason = f"a distance needs two volumes a side at least; there are {n} synthetic and {chosen.sum()} real"
        return list(_unsupported(("fid", "kid", "mmd"), reason, cell, n, seed))
    # Samples of one mask resemble each other: independent are the masks.
    reliable = "yes" if min(len(set(subjects)), chosen.sum()) >= network.dimension else "no"
    features = np.concatenate(checked_sets("FID", synthetic, real.features[modality]))
    _, numbers = np.unique([*subjects, *real.record.subjects], return_inverse=True)
    bandwidth = real.record.bandwidth[modality]
    measure = Measure(np.arange(n), n + np.flatnonzero(chosen), subjects, real, floor, seed)
    results = list(measure("fid", Frechet(features), cell | {"reliable": reliable}))
    if len(set(subjects)) < 2:
        reason = f"KID needs samples of two masks at least; the {n} synthetic volumes are of one"
        results += _unsupported(("kid",), reason, cell, n, seed)
    else:
        results += measure("kid", KernelDistance(polynomial_kernel(features), numbers), cell)
    if bandwidth is None:
        return [
            *results,
            *_unsupported(("mmd",), "all real volumes have the same features: no bandwidth", cell, n, seed),
        ]
    distance = KernelDistance(rbf_kernel(features, bandwidth))
    return [*results, *measure("mmd", distance, cell | {"bandwidth": bandwidth})]


class Measure:
    """Takes distances between the same two sets.

    Args:
        first, second: numbers of the synthetic and of the reference volumes among all, synthetic ones first.
        subjects: of the synthetic volumes.
        real: all real volumes.
        floor: of ``plan_floor``.
        seed: for the record.
    """

    def __init__(
        self, first: Rows, second: Rows, subjects: Sequence[str], real: RealVolumes, floor: Floor, seed: int
    ) -> None:
        self._first, self._second, self._floor, self._seed = first, second, floor, seed
        reference = real.subjects(second - len(first))
        self._deleted, self._too_few = deletions(subjects, reference), too_few(subjects, reference)

    def __call__(self, metric: str, distance: Distance, case: Case) -> Iterator[Result]:
        common = {"unit": "1", "case": case, "seed": self._seed}
        n, value = len(self._first), distance(self._first, self._second)
        yield Result(metric=metric, values=(value,), n=n, **common)
        if self._too_few:
            for end in ("low", "high"):
                yield _failed(f"{metric}_{end}", self._too_few, n=n, **common)
        else:
            keep, keep_second, stratum = self._deleted
            without = distance.each(self._first, self._second, keep, keep_second)
            low, high = jackknife_interval(value, without, stratum)
            low = max(low, 0.0) if metric in NEVER_NEGATIVE else low
            yield Result(metric=f"{metric}_low", values=(low,), n=n, **common)
            yield Result(metric=f"{metric}_high", values=(high,), n=n, **common)
        if not self._floor.draws:
            yield _failed(f"{metric}_floor", self._floor.reason, n=n, **common)
        else:
            values = tuple(distance(n + draw.first, n + draw.second) for draw in self._floor.draws)
            yield Result(metric=f"{metric}_floor", values=values, n=n, **common)


def _unsupported(metrics: Sequence[str], reason: str, case: Case, n: int, seed: int) -> Iterator[Result]:
    for metric in metrics:
        for part in ("", "_low", "_high", "_floor"):
            yield _failed(f"{metric}{part}", reason, unit="1", case=case, n=n, seed=seed)


def _failed(metric: str, reason: str, **common: Any) -> Result:
    return Result(metric=metric, status="unsupported", reason=reason, **common)
