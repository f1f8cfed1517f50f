"""The moving average of the weights."""

from __future__ import annotations

import torch
from torch import nn

from genaccel.train.ema import EMA
from genaccel.train.spec import EMASpec


def averaged(spec: EMASpec, values: list[float]) -> float:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    ema = EMA(model, spec)
    for step, value in enumerate(values, 1):
        with torch.no_grad():
            model.weight.fill_(value)
        ema.update(model, step)
    return ema.weights["weight"].item()


def test_before_its_start_the_average_is_a_copy():
    assert averaged(EMASpec(decay=0.9, start=10), [1.0, 5.0]) == 5.0


def test_from_its_start_on_it_decays():
    assert averaged(EMASpec(decay=0.75, start=2), [1.0, 5.0]) == 0.75 * 1.0 + 0.25 * 5.0


def test_between_intervals_it_rests():
    assert averaged(EMASpec(decay=0.5, start=1, interval=2), [8.0, 4.0, 100.0]) == 0.5 * 4.0
