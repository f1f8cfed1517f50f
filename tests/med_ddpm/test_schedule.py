"""The diffusion's algebra; its numbers are compared in test_golden."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genaccel.med_ddpm.schedule import BUFFERS, Schedule


@given(timesteps=st.integers(2, 1000))
def test_noise_grows_to_nearly_all_of_the_volume(timesteps):
    schedule = Schedule(timesteps)
    kept = schedule.alphas_cumprod
    assert ((schedule.betas > 0) & (schedule.betas <= 0.999)).all()
    assert (kept.diff() < 0).all()
    assert 0 < kept[-1] < 0.01


@given(timesteps=st.integers(2, 300), data=st.data())
def test_predicting_x0_from_the_true_noise_inverts_diffusion(timesteps, data):
    # At the last steps so little of x0 is left that FP32 cannot hold it.
    t = torch.tensor(data.draw(st.lists(st.integers(0, int(0.8 * timesteps)), min_size=1, max_size=3)))
    schedule = Schedule(timesteps)
    x0, noise = torch.rand(len(t), 2, 3, 4, 5) * 2 - 1, torch.randn(len(t), 2, 3, 4, 5)
    recovered = schedule.predict_x0(schedule.q_sample(x0, t, noise), t, noise)
    assert torch.allclose(recovered, x0, atol=1e-4)


def test_each_volume_of_a_batch_has_its_own_step():
    schedule, x0, noise = Schedule(50), torch.randn(3, 1, 2, 2, 2), torch.randn(3, 1, 2, 2, 2)
    t = torch.tensor([0, 20, 49])
    together = schedule.q_sample(x0, t, noise)
    for i in range(3):
        assert torch.equal(together[i : i + 1], schedule.q_sample(x0[i : i + 1], t[i : i + 1], noise[i : i + 1]))


@pytest.mark.parametrize("step", [1, 10, 49])
def test_the_posterior_is_bayes_rule_on_two_gaussians(step):
    schedule, t = Schedule(50), torch.tensor([step])
    x0, x_t = torch.full((1, 1, 1, 1, 1), 0.3), torch.full((1, 1, 1, 1, 1), -0.7)
    mean, log_variance = schedule.posterior(x0, x_t, t)
    beta, before = float(schedule.betas[step]), float(schedule.alphas_cumprod_exact[step - 1])
    # Prior x_{t-1} | x0 and likelihood x_t | x_{t-1}, precisions added.
    precision = 1 / (1 - before) + (1 - beta) / beta
    weighted = math.sqrt(before) * 0.3 / (1 - before) + math.sqrt(1 - beta) * -0.7 / beta
    assert float(mean) == pytest.approx(weighted / precision, rel=1e-4)
    assert float(log_variance) == pytest.approx(-math.log(precision), rel=1e-4)


def test_the_last_posterior_is_x0_itself_with_the_floored_variance():
    x0, x_t = torch.randn(1, 1, 2, 2, 2), torch.randn(1, 1, 2, 2, 2)
    mean, log_variance = Schedule(50).posterior(x0, x_t, torch.tensor([0]))
    assert torch.allclose(mean, x0)
    assert float(log_variance) == pytest.approx(math.log(1e-20))


def test_the_third_coefficient_completes_the_second():
    schedule = Schedule(100)
    assert torch.allclose(schedule.posterior_mean_coef3, 1 - schedule.posterior_mean_coef2)


def test_the_model_sees_the_diffused_volume_then_the_condition():
    schedule, t = Schedule(50), torch.tensor([5, 40])
    x0, cond, noise = torch.randn(2, 1, 2, 2, 2), torch.ones(2, 2, 2, 2, 2), torch.randn(2, 1, 2, 2, 2)
    seen = []

    def model(x, steps):
        seen.append((x, steps))
        return torch.zeros_like(noise)

    loss = schedule.training_loss(model, x0, cond, t, noise)
    (x, steps) = seen[0]
    assert torch.equal(x, torch.cat([schedule.q_sample(x0, t, noise), cond], dim=1))
    assert torch.equal(steps, t)
    assert torch.equal(loss, noise.abs().mean())


def test_the_loss_of_a_bf16_prediction_is_fp32():
    x0 = torch.randn(1, 1, 2, 2, 2)
    loss = Schedule(50).training_loss(lambda x, t: x[:, :1].bfloat16(), x0, x0, torch.tensor([3]), x0)
    assert loss.dtype == torch.float32


def test_moving_a_schedule_moves_every_buffer():
    moved = Schedule(10).to("meta").buffers()
    assert list(moved) == list(BUFFERS)
    assert {tensor.device.type for tensor in moved.values()} == {"meta"}


def test_a_schedule_without_steps_is_refused():
    with pytest.raises(ValueError, match="0 steps; at least 1"):
        Schedule(0)
