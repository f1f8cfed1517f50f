"""Which variants a device does not run as themselves, and why."""

from __future__ import annotations

import pytest

from genaccel.optimize.support import unsupported
from genaccel.variants import VARIANTS, plainer


class Machine:
    """A device that lacks some capabilities."""

    def __init__(self, *lacking: str) -> None:
        self.lacking = lacking

    def lacks(self, capability: str) -> str | None:
        return f"no {capability} here" if capability in self.lacking else None


CPU = Machine("tf32", "fp16", "cuda_graphs", "cudnn_benchmark", "fused_kernels")
V100 = Machine("tf32", "bf16", "fused_kernels")


def reason(name, machine):
    return unsupported(VARIANTS[name], machine, plainer(name, VARIANTS[name]))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_device_with_everything_runs_every_variant(name):
    assert reason(name, Machine()) is None


@pytest.mark.parametrize(
    ("name", "machine", "expected"),
    [
        ("fp32_strict", CPU, None),
        ("fp32_strict_benchmark", CPU, "no cudnn_benchmark here: it would be the same as fp32_strict"),
        ("pytorch_default", CPU, "no tf32 here: it would be the same as fp32_strict"),
        ("tf32", CPU, "no tf32 here: it would be the same as fp32_strict"),
        ("tf32_benchmark", CPU, "no tf32 here: it would be the same as fp32_strict"),
        ("tf32_channels_last", CPU, "no tf32 here"),
        # What cuDNN would time is not there, but BF16 is.
        ("bf16", CPU, None),
        ("bf16_channels_last", CPU, None),
        ("fp16", CPU, "no fp16 here"),
        ("fast", CPU, "no cuda_graphs here; no fused_kernels here"),
        ("fp32_strict_benchmark", V100, None),
        ("pytorch_default", V100, "no tf32 here: it would be the same as fp32_strict"),
        ("tf32_benchmark", V100, "no tf32 here: it would be the same as fp32_strict_benchmark"),
        ("bf16", V100, "no bf16 here"),
        ("fp16", V100, None),
    ],
)
def test_what_a_device_lacks_is_a_reason_that_names_the_equal_variant(name, machine, expected):
    assert reason(name, machine) == expected


def test_a_study_s_own_variant_is_compared_with_those_that_ship():
    mine = VARIANTS["fp32_strict"].model_copy(update={"cudnn_benchmark": True})
    assert unsupported(mine, CPU, plainer("mine", mine)).endswith("the same as fp32_strict")


def test_a_variant_equal_to_another_is_no_reason_where_nothing_is_lacking():
    mine = VARIANTS["fp32_strict"]
    assert unsupported(mine, CPU, plainer("mine", mine)) is None
