"""A 95 % interval of a distance between two sets, by jackknife over subjects.

Not by bootstrap: a set drawn with replacement holds volumes twice, which is itself a distance (and grows FID).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

LEVEL = 0.95
SINGLY = 200
"""Subjects up to which each is left out by itself."""
GROUPS = 25
"""Groups that more subjects are left out in."""


class Deletions(NamedTuple):
    """What a jackknife leaves out, a row at a time.

    Attributes:
        keep: (u, n), bool: the members of the first set that stay.
        keep_reference: (u, m), bool: those of the second.
        stratum: (u,), the sample of subjects that the row leaves some out of: one where both sets are of the same
            subjects, else one a set.
    """

    keep: NDArray[np.bool_]
    keep_reference: NDArray[np.bool_]
    stratum: NDArray[np.intp]


def deletions(subjects: Sequence[str], reference: Sequence[str]) -> Deletions:
    """All volumes of a subject go at once, from both sets: they depend on each other.

    Args:
        subjects: of every member of the first set; several members may have one.
        reference: of every member of the second.
    """
    shared = set(subjects) & set(reference)
    samples = [{*subjects, *reference}] if shared else [set(subjects), set(reference)]
    rows: list[NDArray[np.bool_]] = []
    strata: list[int] = []
    both = np.array([*subjects, *reference])
    for stratum, sample in enumerate(samples):
        names = sorted(sample)
        # Neighbours in the order of names often come from one scanner: dealt out, every group has some of each.
        groups = [names[start::GROUPS] for start in range(GROUPS)] if len(names) > SINGLY else [[n] for n in names]
        rows += [~np.isin(both, group) for group in groups]
        strata += [stratum] * len(groups)
    keep = np.stack(rows)
    return Deletions(keep[:, : len(subjects)], keep[:, len(subjects) :], np.array(strata))


def too_few(subjects: Sequence[str], reference: Sequence[str]) -> str:
    """Why there can be no interval; empty where there can."""
    sides = {"synthetic": len(set(subjects)), "real": len(set(reference))}
    if min(sides.values()) >= 3:
        return ""
    of = " and ".join(f"{count} {name}" for name, count in sides.items())
    return f"an interval by jackknife needs three subjects a side at least; there are {of}"


def jackknife_interval(value: float, without: NDArray[np.float64], stratum: NDArray[np.intp]) -> tuple[float, float]:
    """``value`` -+ Student's t times the jackknife's standard error.

    It says how far the value moves with other subjects at the same n. What n itself adds to the value (FID's bias)
    is in all of them: the real-against-real floor shows it.

    Args:
        value: of the whole sets.
        without: (u,), values with a subject or a group left out.
        stratum: (u,), as of ``Deletions``.

    Source: Efron and Stein, The jackknife estimate of variance, Ann. Statist. 9(3), 1981, eq. 1.3; Kott, The
    delete-a-group jackknife, J. Official Statist. 17(4), 2001; degrees of freedom after Welch and Satterthwaite.
    """
    variances, freedoms = [], []
    for which in np.unique(stratum):
        values = without[stratum == which]
        variances.append((len(values) - 1) / len(values) * np.sum((values - values.mean()) ** 2))
        freedoms.append(len(values) - 1)
    variance = float(np.sum(variances))
    if variance == 0.0:
        return value, value
    freedom = variance**2 / float(np.sum(np.square(variances) / np.array(freedoms)))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * variance**0.5
    return value - half, value + half
