"""Samplers, against a data distribution whose best noise prediction is known in closed form."""

from __future__ import annotations

import inspect
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.samplers.ddim import ddim, timesteps
from genaccel.sample.samplers.ddpm import ddpm

MEAN, DEVIATION = 0.2, 0.15


class Noise:
    """Fresh standard normal tensors, counted."""

    def __init__(self, shape, seed=1):
        self.shape, self.calls = shape, 0
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self):
        self.calls += 1
        return torch.randn(self.shape, generator=self.generator)


class Gaussian:
    """The best predictor of the noise in voxels drawn from N(MEAN, DEVIATION^2); keeps the steps it was asked for."""

    def __init__(self, schedule):
        self.schedule, self.steps = schedule, []

    def __call__(self, x, t):
        assert t.shape == (len(x),)
        assert t.dtype == torch.long
        self.steps.append(int(t[0]))
        kept = float(self.schedule.alphas_cumprod_exact[int(t[0])])
        gain = math.sqrt(kept) * DEVIATION**2 / (kept * DEVIATION**2 + 1 - kept)
        x0 = MEAN + gain * (x - math.sqrt(kept) * MEAN)
        return (x - math.sqrt(kept) * x0) / math.sqrt(1 - kept)


def run(sampler, T=250, steps=None, eta=0.0, shape=(2, 1, 32, 32, 16), start=0):
    schedule = Schedule(T)
    denoise, noise = Gaussian(schedule), Noise(shape)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(start))
    settings = {"steps": steps, "eta": eta}
    taken = {name: settings[name] for name in settings if name in inspect.signature(sampler).parameters}
    return sampler(denoise, x, schedule, noise, **taken), denoise, noise


@pytest.mark.parametrize(
    ("sampler", "steps", "eta", "tolerance"),
    [
        ("ddpm", None, 0.0, 0.05),
        ("ddim", 250, 0.0, 0.05),
        ("ddim", 250, 0.5, 0.05),
        ("ddim", 250, 1.0, 0.05),
        # Longer steps along a curve fall short of it.
        ("ddim", 50, 0.0, 0.15),
    ],
)
def test_samples_have_the_datas_mean_and_deviation(sampler, steps, eta, tolerance):
    x, _, _ = run(SAMPLERS[sampler], steps=steps, eta=eta)
    assert float(x.mean()) == pytest.approx(MEAN, abs=0.005)
    assert float(x.std()) == pytest.approx(DEVIATION, rel=tolerance)


def test_ddim_with_all_steps_and_noise_is_ancestral_sampling():
    ancestral, _, _ = run(ddpm)
    implicit, _, _ = run(ddim, steps=250, eta=1.0)
    assert torch.allclose(ancestral, implicit, atol=1e-4)


def test_deterministic_ddim_draws_no_noise_and_repeats_itself():
    first, _, noise = run(ddim, steps=10)
    again, _, _ = run(ddim, steps=10)
    assert noise.calls == 0
    assert torch.equal(first, again)


@pytest.mark.parametrize("sampler", [ddpm, ddim])
def test_another_start_gives_another_sample(sampler):
    first, _, _ = run(sampler, T=20, shape=(1, 1, 4, 4, 4))
    other, _, _ = run(sampler, T=20, shape=(1, 1, 4, 4, 4), start=5)
    assert not torch.allclose(first, other)


@pytest.mark.parametrize(
    ("sampler", "steps", "eta", "calls"), [(ddpm, None, 0.0, 19), (ddim, 5, 1.0, 4), (ddim, 1, 1.0, 0)]
)
def test_noise_is_drawn_between_steps_but_not_after_the_last(sampler, steps, eta, calls):
    _, _, noise = run(sampler, T=20, steps=steps, eta=eta, shape=(1, 1, 2, 2, 2))
    assert noise.calls == calls


def test_ancestral_sampling_takes_every_step():
    _, denoise, _ = run(ddpm, T=20, shape=(1, 1, 2, 2, 2))
    assert denoise.steps == list(range(19, -1, -1))


@pytest.mark.parametrize(("steps", "taken"), [(1, [19]), (4, [19, 14, 9, 4]), (None, list(range(19, -1, -1)))])
def test_ddim_asks_the_network_once_a_step(steps, taken):
    _, denoise, _ = run(ddim, T=20, steps=steps, shape=(1, 1, 2, 2, 2))
    assert denoise.steps == taken


@given(T=st.integers(1, 1000), data=st.data())
def test_ddims_steps_fall_evenly_from_the_last_to_x0(T, data):
    steps = data.draw(st.integers(1, T))
    sequence = timesteps(T, steps)
    leaps = [before - after for before, after in zip(sequence, [*sequence[1:], -1], strict=True)]
    assert len(sequence) == steps
    assert sequence[0] == T - 1
    assert set(leaps) <= {T // steps, -(-T // steps)}


@pytest.mark.parametrize("steps", [0, 21])
def test_more_steps_than_the_schedule_has_are_refused(steps):
    with pytest.raises(ValueError, match=rf"steps = {steps}, but the schedule has T = 20; set sample\.steps"):
        run(ddim, T=20, steps=steps)


@pytest.mark.parametrize("eta", [-0.1, 1.1])
def test_an_eta_beyond_ancestral_is_refused(eta):
    with pytest.raises(ValueError, match="eta"):
        run(ddim, T=20, eta=eta)


@pytest.mark.parametrize("sampler", [ddpm, ddim])
def test_a_predicted_volume_is_clipped(sampler):
    x = sampler(lambda x, t: torch.full_like(x, -9.0), torch.zeros(1, 1, 2, 2, 2), Schedule(20), Noise((1,)))
    assert torch.equal(x, torch.ones_like(x))


@pytest.mark.parametrize("sampler", [ddpm, ddim])
def test_a_bf16_prediction_keeps_the_sample_in_fp32_and_builds_no_graph(sampler):
    def denoise(x, t):
        return (x * torch.ones(1, requires_grad=True)).bfloat16()

    x = sampler(denoise, torch.zeros(1, 1, 2, 2, 2), Schedule(5), lambda: torch.zeros(1, 1, 2, 2, 2))
    assert x.dtype == torch.float32
    assert not x.requires_grad
