import numpy as np
import pytest

from genaccel.metrics.floor import DRAWS, plan_floor


def mask(reference, outside):
    return np.arange(reference + outside) < reference


def test_where_there_are_enough_it_draws_as_many_from_outside_the_reference():
    floor = plan_floor(mask(4, 9), n=6, seed=0)
    assert floor.source == "outside"
    assert len(floor.draws) == DRAWS
    for first, second in floor.draws:
        assert len(set(first)) == 6
        assert set(first) <= set(range(4, 13))
        assert second.tolist() == [0, 1, 2, 3]


def test_where_all_are_needed_there_is_one_draw():
    (draw,) = plan_floor(mask(4, 6), n=6, seed=0).draws
    assert draw.first.tolist() == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("reference", "outside", "n", "sizes"),
    [(6, 3, 6, (4, 5)), (8, 0, 6, (4, 4)), (10, 2, 3, (3, 9)), (20, 1, 4, (4, 17))],
)
def test_else_it_draws_disjoint_sets_as_large_as_all_volumes_allow(reference, outside, n, sizes):
    floor = plan_floor(mask(reference, outside), n, seed=0)
    assert floor.source == "halves"
    for first, second in floor.draws:
        assert (len(first), len(second)) == sizes
        assert not set(first) & set(second)


@pytest.mark.parametrize(
    ("reference", "outside", "n", "reason"),
    [
        (3, 0, 3, "real against real needs four real volumes at least; there are 3"),
        (5, 5, 1, "a set of one volume has no distance; 1 synthetic and 5 real"),
        (1, 5, 4, "a set of one volume has no distance; 4 synthetic and 1 real"),
    ],
)
def test_too_few_volumes_have_none_with_the_reason(reference, outside, n, reason):
    floor = plan_floor(mask(reference, outside), n, seed=0)
    assert (floor.source, floor.draws, floor.reason) == ("none", (), reason)


def test_draws_depend_on_the_seed_alone():
    def drawn(seed):
        return [draw.first.tolist() for draw in plan_floor(mask(4, 9), 6, seed).draws]

    assert drawn(0) == drawn(0) != drawn(1)
    assert len({tuple(first) for first in drawn(0)}) > 1
