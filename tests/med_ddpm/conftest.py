"""Published tensors, and the small network that made them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """On tensors this small a second thread waits longer than it works."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., MedDDPMSpec]:
    """A spec from changes to the small golden network's."""

    def make(**changes: Any) -> MedDDPMSpec:
        small = {
            "base_channels": 32,
            "channel_multipliers": [1, 1, 2],
            "num_res_blocks": 1,
            "attention_downsampling": 2,
            "shape": [8, 16, 16],
            "image": ["t1"],
            "condition": ["brain", "tumour"],
        }
        return MedDDPMSpec.build({**small, **changes})

    return make


@pytest.fixture(scope="session")
def published(make_spec: Callable[..., MedDDPMSpec]) -> dict[str, MedDDPMSpec]:
    """The full-size models, by their names in the key lists."""
    shared = {"base_channels": 64, "channel_multipliers": [1, 1, 2, 3, 4], "attention_downsampling": None}
    return {
        "whole_head_128": make_spec(**shared, shape=[128, 128, 128]),
        "brats_192x192x144": make_spec(
            **shared,
            num_res_blocks=2,
            shape=[192, 192, 144],
            image=["t1", "t1ce", "t2", "flair"],
            condition=["tumour_1", "tumour_2", "tumour_3", "brain"],
            axes=["S", "P", "L"],
        ),
    }


@pytest.fixture(scope="session")
def published_shapes() -> dict[str, dict[str, list[int]]]:
    """Shapes of the published checkpoints' EMA dictionaries, by name, by checkpoint."""
    return json.loads((GOLDEN / "med_ddpm_checkpoint_keys.json").read_text())


@pytest.fixture(scope="session")
def golden_unet() -> dict[str, Tensor]:
    return load_file(GOLDEN / "med_ddpm_unet_small.safetensors")


@pytest.fixture(scope="session")
def golden_diffusion() -> dict[str, Tensor]:
    return load_file(GOLDEN / "med_ddpm_diffusion_T250.safetensors")


@pytest.fixture(scope="session")
def small_state(golden_unet: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights of the small golden network."""
    return {name.removeprefix("state/"): tensor for name, tensor in golden_unet.items() if name.startswith("state/")}


@pytest.fixture
def small_unet(make_spec: Callable[..., MedDDPMSpec], small_state: dict[str, Tensor]) -> UNet:
    model = UNet(make_spec())
    model.load_state_dict(small_state)
    return model.eval()


@pytest.fixture(scope="session")
def relative_error() -> Callable[[Tensor, Tensor], float]:
    """Largest difference over the largest expected value."""

    def error(actual: Tensor, expected: Tensor) -> float:
        return float((actual - expected).abs().max() / expected.abs().max().clamp_min(torch.finfo(torch.float32).tiny))

    return error
