"""Weights that multistep samplers give to earlier predictions, at each order."""

from __future__ import annotations

import math

import pytest
from scipy.integrate import quad

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers._levels import CLEAN, Level, levels
from genaccel.sample.samplers.deis import exponential_weights
from genaccel.sample.samplers.ipndm import mean_weights


@pytest.mark.parametrize("weights", [exponential_weights, mean_weights])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_weights_of_a_step_add_up_to_ddims(weights, order):
    *past, then = levels(Schedule(250), [240, 200, 150, 90, 30])[:5]
    past = past[::-1][:order]
    expected = then.noise - then.signal * past[0].noise / past[0].signal
    assert sum(weights(past, then)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("order", "constants"),
    [(1, [1]), (2, [3 / 2, -1 / 2]), (3, [23 / 12, -16 / 12, 5 / 12]), (4, [55 / 24, -59 / 24, 37 / 24, -9 / 24])],
)
def test_even_steps_have_the_constants_of_adams_and_bashforth(order, constants):
    *past, then = (Level(math.cos(angle), math.sin(angle)) for angle in (1.3, 1.1, 0.9, 0.7, 0.5))
    weights = mean_weights(past[::-1][:order], then)
    assert [weight / sum(weights) for weight in weights] == pytest.approx(constants)


@pytest.mark.parametrize("then", [Level(math.cos(0.9), math.sin(0.9)), CLEAN])
def test_exponential_weights_integrate_a_noise_that_is_a_cubic_of_the_angle(then):
    past = [Level(math.cos(angle), math.sin(angle)) for angle in (1.2, 1.35, 1.5, 1.56)]

    def cubic(angle):
        return 1 - 2 * angle + angle**2 - 3 * angle**3

    stepped = sum(w * cubic(level.angle) for w, level in zip(exponential_weights(past, then), past, strict=True))
    integral, _ = quad(lambda angle: cubic(angle) / math.cos(angle) ** 2, 1.2, then.angle, epsabs=1e-12)
    assert stepped == pytest.approx(then.signal * integral, rel=1e-9)
