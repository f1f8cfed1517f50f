"""Splits subjects into train, validation and test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from genaccel.data.spec import SplitSpec

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def split_subjects(
    subjects: Iterable[str], spec: SplitSpec, given: Mapping[str, Split] | None = None
) -> dict[str, Split]:
    """Gives every subject exactly one split.

    Args:
        subjects: names; their order does not matter.
        spec: shares and seed.
        given: splits that the sample table fixes; the shares apply to the other subjects.
    """
    given = dict(given or {})
    # Order by a hash of seed and name rather than a shuffle: the same on every machine, in any table order.
    free = sorted(set(subjects) - given.keys(), key=lambda name: (_draw(spec.seed, name), name))
    splits: dict[str, Split] = dict(given)
    start = 0
    for split, count in split_counts(len(free), spec).items():
        splits.update(dict.fromkeys(free[start : start + count], split))
        start += count
    return splits


def split_counts(total: int, spec: SplitSpec) -> dict[Split, int]:
    """Subjects a split, by largest remainder; every share above 0 gets one where there are enough."""
    quotas = {split: total * getattr(spec, split) for split in SPLITS}
    counts = {split: math.floor(quota) for split, quota in quotas.items()}
    # Nine digits: remainders that are equal but for rounding go to the earlier split.
    by_remainder = sorted(SPLITS, key=lambda split: (round(counts[split] - quotas[split], 9), SPLITS.index(split)))
    for split in by_remainder[: total - sum(counts.values())]:
        counts[split] += 1
    wanted = [split for split in SPLITS if quotas[split] > 0]
    if total >= len(wanted):
        for split in wanted:
            if counts[split] == 0:
                richest = max(SPLITS, key=lambda other: (counts[other], -SPLITS.index(other)))
                counts[richest] -= 1
                counts[split] = 1
    return counts


def _draw(seed: int, subject: str) -> str:
    return hashlib.sha256(f"{seed}:{subject}".encode()).hexdigest()
