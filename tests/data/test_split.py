"""Splits of subjects."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.data.spec import SplitSpec
from genaccel.data.split import SPLITS, split_counts, split_subjects

NAMES = st.lists(st.text("abc019-_", min_size=1), unique=True, max_size=40)


@st.composite
def shares(draw) -> SplitSpec:
    parts = [draw(st.integers(0, 20)) for _ in SPLITS]
    if not sum(parts):
        parts[0] = 1
    return SplitSpec(**{s: p / sum(parts) for s, p in zip(SPLITS, parts, strict=True)}, seed=draw(st.integers(0, 9)))


@given(names=NAMES, spec=shares())
def test_every_subject_has_exactly_one_split(names, spec):
    splits = split_subjects(names, spec)
    assert splits.keys() == set(names)
    assert set(splits.values()) <= set(SPLITS)


@given(names=NAMES, spec=shares(), data=st.data())
def test_the_tables_order_does_not_matter(names, spec, data):
    assert split_subjects(data.draw(st.permutations(names)), spec) == split_subjects(names, spec)


@given(total=st.integers(0, 2000), spec=shares())
def test_counts_add_up_and_keep_to_their_shares(total, spec):
    counts = split_counts(total, spec)
    assert sum(counts.values()) == total
    wanted = [split for split in SPLITS if getattr(spec, split) > 0]
    for split in SPLITS:
        # Below 1 by rounding; a share that was given its one subject takes it from another.
        assert abs(counts[split] - total * getattr(spec, split)) < len(wanted)
    if total >= len(wanted):
        assert all(counts[split] for split in wanted)
    assert not any(counts[split] for split in SPLITS if split not in wanted)


@given(names=NAMES, spec=shares(), data=st.data())
def test_the_tables_split_overrules(names, spec, data):
    given_splits = {name: data.draw(st.sampled_from(SPLITS)) for name in names if data.draw(st.booleans())}
    splits = split_subjects(names, spec, given_splits)
    assert splits.items() >= given_splits.items()
    free = Counter(split for name, split in splits.items() if name not in given_splits)
    expected = split_counts(len(names) - len(given_splits), spec)
    assert free == Counter({split: count for split, count in expected.items() if count})


@pytest.mark.parametrize(
    ("total", "train", "validation", "test", "expected"),
    [
        (16, 0.75, 0.0, 0.25, [12, 0, 4]),
        (10, 0.7, 0.1, 0.2, [7, 1, 2]),
        (7, 0.5, 0.25, 0.25, [3, 2, 2]),
        (10, 0.98, 0.01, 0.01, [8, 1, 1]),
        (2, 0.98, 0.01, 0.01, [2, 0, 0]),
        (1, 0.75, 0.0, 0.25, [1, 0, 0]),
        (5, 0.0, 0.0, 1.0, [0, 0, 5]),
    ],
)
def test_counts_round_by_largest_remainder(total, train, validation, test, expected):
    assert list(split_counts(total, SplitSpec(train=train, validation=validation, test=test)).values()) == expected


def test_another_seed_gives_another_split():
    names = [f"s{i}" for i in range(40)]
    assert split_subjects(names, SplitSpec(seed=0)) != split_subjects(names, SplitSpec(seed=1))


def test_the_split_is_the_same_on_every_machine():
    splits = split_subjects([f"sim-{i:04d}" for i in range(8)], SplitSpec())
    # Another outcome here would move subjects of every study between training and test.
    assert {name for name, split in splits.items() if split == "test"} == {"sim-0001", "sim-0003"}
