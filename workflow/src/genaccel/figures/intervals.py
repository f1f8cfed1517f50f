"""95 % intervals of a mean, where some of its values belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

LEVEL = 0.95


class Interval(NamedTuple):
    """Ends of an interval; NaN where the values do not give one."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)


def of_mean(values: Sequence[float], repeats: int = 1) -> Interval:
    """Of the mean over subjects, by Student's t.

    Args:
        values: one a volume, the repeats of a subject beside each other.
        repeats: volumes a subject. They share their mask, so that their mean counts as one value.

    Returns:
        ``NONE`` with fewer than two subjects, or where the values are no whole number of subjects.
    """
    subjects, rest = divmod(len(values), repeats)
    if rest or subjects < 2:
        return NONE
    means = np.asarray(values, dtype=float).reshape(subjects, repeats).mean(axis=1)
    return _student(float(means.mean()), float(means.std(ddof=1)) / math.sqrt(subjects), subjects - 1)


def of_pairs(values: Sequence[float]) -> Interval:
    """Of the mean over all pairs of volumes, by leaving out one volume at a time (jackknife).

    Pairs that share a volume are not independent: the spread over pairs would promise too much.

    Args:
        values: one a pair, in the order of ``itertools.combinations``.

    Returns:
        ``NONE`` with fewer than four volumes, or where the values are not those of all pairs.

    Source: Arvesen, Jackknifing U-statistics, Annals of Mathematical Statistics 40(6), 1969.
    """
    volumes = (1 + math.isqrt(1 + 8 * len(values))) // 2
    if volumes < 4 or volumes * (volumes - 1) // 2 != len(values):
        return NONE
    of_volume = np.zeros(volumes)
    for values_of, place in zip((values, values), np.triu_indices(volumes, 1), strict=True):
        np.add.at(of_volume, place, np.asarray(values_of, dtype=float))
    total = float(np.sum(values))
    without = (total - of_volume) / (len(values) - volumes + 1)
    variance = (volumes - 1) / volumes * float(np.square(without - without.mean()).sum())
    return _student(total / len(values), math.sqrt(variance), volumes - 1)


def _student(mean: float, error: float, freedom: int) -> Interval:
    reach = float(stdtrit(freedom, 0.5 + LEVEL / 2)) * error
    return Interval(mean - reach, mean + reach)
