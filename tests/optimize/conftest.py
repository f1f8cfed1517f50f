"""A network of a few milliseconds, and the job that measures it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from genaccel.device import Device, open_device
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.optimize.spec import OptimizeJob, TimingSpec, VolumeWork
from genaccel.variants import VARIANTS, plainer


@pytest.fixture(scope="session")
def model() -> MedDDPMSpec:
    return MedDDPMSpec(
        shape=(8, 8, 8), image=("t1",), condition=("brain", "tumour"), channel_multipliers=(1,), timesteps=10
    )


@pytest.fixture(scope="session")
def cpu() -> Device:
    return open_device("cpu", threads=1)


@pytest.fixture(scope="session")
def job(model) -> Callable[..., OptimizeJob]:
    """``job("bf16", volumes=..., **differences)``."""

    def make(variant: str = "fp32_strict", **differences) -> OptimizeJob:
        switches = differences.pop("switches", None) or VARIANTS[variant]
        settings = {
            "device": "cpu",
            "name": "tiny",
            "model": model,
            "variant": variant,
            "switches": switches,
            "plainer": plainer(variant, switches),
            "shapes": ((4, 4, 4),),
            "batches": (1,),
            "volumes": (VolumeWork(sampler="ddim", steps=2),),
            "seed": 0,
            "timing": TimingSpec(repeats=3, warmup=1, budget_s=1),
        }
        return OptimizeJob(**settings | differences)

    return make
