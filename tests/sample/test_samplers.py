"""Samplers, against a data distribution whose best noise prediction is known in closed form."""

from __future__ import annotations

import inspect
import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.samplers.ddim import ddim
from genaccel.sample.samplers.ddpm import ddpm
from genaccel.sample.samplers.deis import deis
from genaccel.sample.samplers.dpm_solver_pp import dpm_solver_pp
from genaccel.sample.samplers.ipndm import ipndm
from genaccel.sample.timesteps import noisiest_step, timesteps
from genaccel.spec import SpecError

MEAN, DEVIATION = 0.2, 0.15
EVERY = [ddpm, ddim, dpm_solver_pp, deis, ipndm]
FEW_STEPS = [ddim, dpm_solver_pp, deis, ipndm]
MULTISTEP = [deis, ipndm]


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


class SharedBrightness(Gaussian):
    """The best predictor where all voxels of a volume share one brightness, of deviation 0.05 among volumes.

    So many voxels tell it already from x nearly all noise, and what an early step makes of it stays.
    """

    def __call__(self, x, t):
        kept = float(self.schedule.alphas_cumprod_exact[int(t[0])])
        y, ratio2, voxels = x / math.sqrt(kept), (1 - kept) / kept, x[0].numel()
        seen = y.mean(dim=(1, 2, 3, 4), keepdim=True)
        variance = 0.05**2 + DEVIATION**2 / voxels
        brightness = MEAN + variance / (variance + ratio2 / voxels) * (seen - MEAN)
        x0 = brightness + DEVIATION**2 / (DEVIATION**2 + ratio2) * (y - seen)
        return (y - x0) / math.sqrt(ratio2)


def run(sampler, T=250, steps=None, eta=0.0, order=3, shape=(2, 1, 32, 32, 16), start=0):
    schedule = Schedule(T)
    denoise, noise = Gaussian(schedule), Noise(shape)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(start))
    settings = {"steps": steps, "eta": eta, "order": order}
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
        ("ddim", 50, 0.0, 0.1),
        ("dpm_solver_pp", 20, 0.0, 0.05),
        ("dpm_solver_pp", 20, 0.5, 0.1),
        ("dpm_solver_pp", 20, 1.0, 0.1),
        ("dpm_solver_pp", 100, 1.0, 0.03),
        ("deis", 20, 0.0, 0.05),
        ("ipndm", 20, 0.0, 0.05),
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


@pytest.mark.parametrize("sampler", FEW_STEPS)
def test_a_deterministic_sampler_draws_no_noise_and_repeats_itself(sampler):
    first, _, noise = run(sampler, steps=10)
    again, _, _ = run(sampler, steps=10)
    assert noise.calls == 0
    assert torch.equal(first, again)


@pytest.mark.parametrize("sampler", EVERY)
def test_another_start_gives_another_sample(sampler):
    first, _, _ = run(sampler, T=20, shape=(1, 1, 4, 4, 4))
    other, _, _ = run(sampler, T=20, shape=(1, 1, 4, 4, 4), start=5)
    assert not torch.allclose(first, other)


@pytest.mark.parametrize(
    ("sampler", "steps", "eta", "calls"),
    [(ddpm, None, 0.0, 19), (ddim, 5, 1.0, 4), (ddim, 1, 1.0, 0), (dpm_solver_pp, 5, 1.0, 4)],
)
def test_noise_is_drawn_between_steps_but_not_after_the_last(sampler, steps, eta, calls):
    _, _, noise = run(sampler, T=20, steps=steps, eta=eta, shape=(1, 1, 2, 2, 2))
    assert noise.calls == calls


def test_ancestral_sampling_takes_every_step():
    _, denoise, _ = run(ddpm, T=20, shape=(1, 1, 2, 2, 2))
    assert denoise.steps == list(range(19, -1, -1))


@pytest.mark.parametrize("sampler", FEW_STEPS)
@pytest.mark.parametrize(("steps", "taken"), [(1, [19]), (4, [19, 16, 9, 2]), (None, list(range(19, -1, -1)))])
def test_few_steps_ask_the_network_once_a_step(sampler, steps, taken):
    _, denoise, _ = run(sampler, T=20, steps=steps, shape=(1, 1, 2, 2, 2))
    assert denoise.steps == taken


@given(T=st.integers(1, 1000), data=st.data())
def test_steps_fall_strictly_within_the_schedule_and_are_as_many_as_asked_for(T, data):
    steps = data.draw(st.integers(1, T))
    schedule = Schedule(T)
    sequence = timesteps(schedule, steps)
    assert len(sequence) == steps
    assert all(before > after for before, after in pairwise(sequence))
    assert sequence[0] == max(noisiest_step(schedule), steps - 1) <= T - 1
    assert sequence[-1] >= 0


@pytest.mark.parametrize(("T", "start"), [(2, 1), (20, 19), (250, 248), (1000, 995)])
def test_few_steps_start_where_the_networks_error_is_not_yet_all_of_x0(T, start):
    assert timesteps(Schedule(T), 2)[0] == start


def test_ten_steps_are_dense_at_both_ends():
    assert timesteps(Schedule(250), 10) == [248, 242, 224, 197, 162, 123, 85, 50, 23, 5]


def shift(sampler, steps, error, **options):
    """Where volumes' brightness ends, less the data's, if the noise prediction is off by ``error`` everywhere."""
    schedule, shape = Schedule(250), (4, 1, 16, 16, 16)
    best = SharedBrightness(schedule)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    volume = sampler(lambda x, t: best(x, t) + error, x, schedule, Noise(shape), steps=steps, **options)
    return float(volume.mean()) - MEAN


@pytest.mark.parametrize("error", [0.003, 0.01])
@pytest.mark.parametrize("steps", [5, 10, 20])
def test_an_error_of_the_noise_shifts_few_steps_less_than_even_steps_from_the_last(monkeypatch, steps, error):
    here = shift(ddim, steps, error)
    even = [250 * k // steps - 1 for k in range(steps, 0, -1)]
    monkeypatch.setattr("genaccel.sample.samplers.ddim.timesteps", lambda schedule, steps: even)
    assert abs(here) < 0.75 * abs(shift(ddim, steps, error))


@pytest.mark.parametrize("sampler", FEW_STEPS)
@pytest.mark.parametrize("steps", [0, 21])
def test_more_steps_than_the_schedule_has_are_refused(sampler, steps):
    message = rf"sample\.steps = {steps}, but the schedule has T = 20; set sample\.steps to 1\.\.20"
    with pytest.raises(SpecError, match=message):
        run(sampler, T=20, steps=steps)


@pytest.mark.parametrize("sampler", MULTISTEP)
@pytest.mark.parametrize("order", [0, 5])
def test_an_order_that_is_not_there_is_refused(sampler, order):
    with pytest.raises(SpecError, match=rf"sample\.order = {order}; set sample\.order to 1 .* to 4"):
        run(sampler, T=20, steps=5, order=order)


@pytest.mark.parametrize("sampler", [dpm_solver_pp, deis, ipndm])
def test_one_step_is_ddims_one_step(sampler):
    one, _, _ = run(sampler, steps=1)
    assert torch.equal(one, run(ddim, steps=1)[0])


@pytest.mark.parametrize("sampler", MULTISTEP)
@pytest.mark.parametrize("steps", [2, 7, None])
def test_order_one_is_ddim(sampler, steps):
    first, _, _ = run(sampler, T=50, steps=steps, order=1)
    assert torch.equal(first, run(ddim, T=50, steps=steps)[0])


@pytest.mark.parametrize("sampler", MULTISTEP)
@pytest.mark.parametrize("steps", [3, 5, 8])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_higher_order_stays_beside_ddim_where_early_predictions_are_clipped(sampler, steps, order):
    assert shift(sampler, steps, 0.02, order=order) == pytest.approx(shift(ddim, steps, 0.02), abs=0.1)


@pytest.mark.parametrize("sampler", FEW_STEPS)
def test_a_volume_does_not_depend_on_the_batch_it_is_in(sampler):
    schedule = Schedule(50)
    x = torch.randn((3, 1, 4, 4, 4), generator=torch.Generator().manual_seed(0))
    together = sampler(Gaussian(schedule), x, schedule, Noise((1,)), steps=6)
    alone = sampler(Gaussian(schedule), x[1:2], schedule, Noise((1,)), steps=6)
    assert torch.equal(together[1:2], alone)


@pytest.mark.parametrize("sampler", [ddim, dpm_solver_pp])
@pytest.mark.parametrize("eta", [-0.1, 1.1])
def test_an_eta_beyond_ancestral_is_refused(sampler, eta):
    with pytest.raises(SpecError, match=r"sample\.eta = .*; set sample\.eta to 0 \(deterministic\) to 1"):
        run(sampler, T=20, eta=eta)


@pytest.mark.parametrize("sampler", EVERY)
def test_a_predicted_volume_is_clipped(sampler):
    x = sampler(lambda x, t: torch.full_like(x, -9.0), torch.zeros(1, 1, 2, 2, 2), Schedule(20), Noise((1,)))
    assert torch.equal(x, torch.ones_like(x))


@pytest.mark.parametrize("sampler", EVERY)
def test_a_bf16_prediction_keeps_the_sample_in_fp32_and_builds_no_graph(sampler):
    def denoise(x, t):
        return (x * torch.ones(1, requires_grad=True)).bfloat16()

    x = sampler(denoise, torch.zeros(1, 1, 2, 2, 2), Schedule(5), lambda: torch.zeros(1, 1, 2, 2, 2))
    assert x.dtype == torch.float32
    assert not x.requires_grad
