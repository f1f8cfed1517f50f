"""Parity with the published network and diffusion, in FP32."""

from __future__ import annotations

import pytest
import torch

from genaccel.med_ddpm.schedule import BUFFERS, Schedule
from genaccel.sample.samplers.ddpm import ancestral_step

TOLERANCE = 1e-5


@torch.no_grad()
def test_the_network_predicts_what_the_published_one_predicts(small_unet, golden_unet, relative_error):
    predicted = small_unet(golden_unet["in/x"], golden_unet["in/t"])
    assert relative_error(predicted, golden_unet["out/y"]) < TOLERANCE


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_of_the_schedule_is_the_published_one(name, golden_diffusion, relative_error):
    assert relative_error(Schedule(250).buffers()[name], golden_diffusion[f"buffer/{name}"]) < TOLERANCE


def test_no_published_buffer_is_left_out(golden_diffusion):
    published = {name.removeprefix("buffer/") for name in golden_diffusion if name.startswith("buffer/")}
    assert published == set(BUFFERS)


def test_diffused_volumes_are_the_published_ones(golden_diffusion, relative_error):
    x0, t, noise = (golden_diffusion[f"q/{name}"] for name in ("x0", "t", "noise"))
    assert relative_error(Schedule(250).q_sample(x0, t, noise), golden_diffusion["q/xt"]) < TOLERANCE


@torch.no_grad()
def test_the_loss_is_the_published_one(small_unet, golden_diffusion, relative_error):
    x0, cond, t, noise = (golden_diffusion[f"q/{name}"] for name in ("x0", "cond", "t", "noise"))
    loss = Schedule(250).training_loss(small_unet, x0, cond, t, noise)
    assert relative_error(loss, golden_diffusion["q/loss_l1"]) < TOLERANCE


@torch.no_grad()
def test_six_ancestral_steps_end_at_the_published_volume(small_unet, golden_diffusion, relative_error):
    schedule, x, cond = Schedule(250), golden_diffusion["p/x_start"], golden_diffusion["q/cond"]
    for step, noise in zip(range(5, -1, -1), golden_diffusion["p/noise"], strict=True):
        t = torch.full((len(x),), step)
        predicted = small_unet(torch.cat([x, cond], dim=1), t)
        x = ancestral_step(predicted, x, t, schedule, noise if step else None)
    assert relative_error(x, golden_diffusion["p/x_final"]) < TOLERANCE
