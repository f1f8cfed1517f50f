"""Every operation of the fused path on both of its ways: PyTorch's own operators, and the Triton kernels.

Without a GPU the kernels run under Triton's interpreter, so their arithmetic is checked anywhere.
"""

import importlib
import os

import pytest
import torch

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet

KERNELS = ("group_norm", "residual", "upsample", "adam", "patches", "head")


def _load_for_interpreter() -> bool:
    """Imports Triton and the kernels so that they can be interpreted: that is decided once, when they are imported."""
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        for name in KERNELS:
            importlib.import_module(f"genaccel.med_ddpm.fast._{name}")
    except ImportError:
        return False
    finally:
        del os.environ["TRITON_INTERPRET"]
    return True


INTERPRETED = not torch.cuda.is_available() and _load_for_interpreter()


@pytest.fixture(params=["plain", "kernels"])
def device(request, monkeypatch):
    """Where an operation's tensors lie, with the way it takes chosen."""
    if request.param == "plain":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    if not INTERPRETED:
        pytest.skip("Triton is not installed, so the kernels cannot run")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    return torch.device("cpu")


@pytest.fixture
def error():
    """Relative L2 error against a reference in FP64."""

    def relative(value, reference):
        reference = reference.detach().cpu().double()
        return float((value.detach().cpu().double() - reference).norm() / reference.norm().clamp_min(1e-30))

    return relative


@pytest.fixture
def make_network():
    """Networks whose every parameter counts: a fresh one ends its branches with zeros."""

    def make(multipliers=(1, 2), res_blocks=1, attention=2, image=1, base=32, dropout=0.0):
        spec = MedDDPMSpec(
            base_channels=base,
            channel_multipliers=multipliers,
            num_res_blocks=res_blocks,
            attention_downsampling=attention,
            dropout=dropout,
            shape=(8, 8, 8),
            image=tuple("abcd"[:image]),
            condition=("brain", "tumour"),
        )
        torch.manual_seed(0)
        model = UNet(spec)
        for name, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, std=0.05 if parameter.ndim > 1 else 0.3)
            if "norm.weight" in name or name.endswith("_layers.0.weight") or name == "out.0.weight":
                parameter.data += 1
        return model

    return make
