import numpy as np
import pytest

from genaccel.metrics.floor import DRAWS, plan_floor


def mask(reference, outside):
    return np.arange(reference + outside) < reference


def test_where_there_are_enough_it_draws_as_many_from_outside_the_reference():
    floor = plan_floor(mask(4, 9), n=6, seed=0)
    assert len(floor.draws) == DRAWS
    for first, second in floor.draws:
        assert len(set(first)) == 6
        assert set(first) <= set(range(4, 13))
        assert second.tolist() == [0, 1, 2, 3]


def test_where_all_are_needed_there_is_one_draw():
    (draw,) = plan_floor(mask(4, 6), n=6, seed=0).draws
    assert draw.first.tolist() == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("reference", "outside", "n", "reason"),
    [
        # At another n it would be no floor: FID grows as n falls.
        (6, 3, 6, "real against real at n = 6 needs as many outside the reference; there are 3"),
        (8, 0, 6, "real against real at n = 6 needs as many outside the reference; there are 0"),
        (5, 5, 1, "a set of one volume has no distance; 1 synthetic and 5 real"),
        (1, 5, 4, "a set of one volume has no distance; 4 synthetic and 1 real"),
    ],
)
def test_too_few_volumes_have_none_with_the_reason(reference, outside, n, reason):
    floor = plan_floor(mask(reference, outside), n, seed=0)
    assert (floor.draws, floor.reason) == ((), reason)


def test_draws_depend_on_the_seed_alone():
    def drawn(seed):
        return [draw.first.tolist() for draw in plan_floor(mask(4, 9), 6, seed).draws]

    assert drawn(0) == drawn(0) != drawn(1)
    assert len({tuple(first) for first in drawn(0)}) > 1
