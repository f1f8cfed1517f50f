"""The roof over a step, and what lies above it."""

from __future__ import annotations

import pytest

from genaccel.optimize.ceilings import Ceilings, measure_ceilings
from genaccel.optimize.roofline import check_peak, datasheet_peak, roofline
from genaccel.variants import VARIANTS

CEILINGS = Ceilings(matmul=100.0, memory=10.0)


@pytest.mark.parametrize(
    ("flops", "moved", "seconds", "achieved", "ceiling", "roof"),
    [
        # 20 FLOP a byte: under the flat roof of 100 FLOP/s.
        (1000, 50, 20, 50, 0.5, 0.5),
        # 2 FLOP a byte: under the slope, 20 FLOP/s.
        (1000, 500, 100, 10, 0.1, 0.5),
        # Where the two meet, 10 FLOP a byte.
        (1000, 100, 10, 100, 1.0, 1.0),
    ],
)
def test_a_step_is_placed_under_the_lower_of_two_roofs(flops, moved, seconds, achieved, ceiling, roof):
    placed = roofline(flops, moved, seconds, CEILINGS)
    assert (placed.achieved, placed.ceiling_share, placed.roofline_share) == pytest.approx((achieved, ceiling, roof))


@pytest.mark.parametrize(("seconds", "flagged"), [(10, False), (9.1, False), (9.0, True)])
def test_a_rate_above_the_measured_ceiling_is_flagged(seconds, flagged):
    assert bool(roofline(1000, 1, seconds, CEILINGS).flag) is flagged


@pytest.mark.parametrize(
    ("slug", "precision", "peak"),
    [
        ("nvidia-h200", "bf16", 989.4e12),
        ("nvidia-h200", "fp16", 989.4e12),
        ("nvidia-h200", "fp32", 67e12),
        ("tesla-v100-sxm2-16gb", "bf16", None),
        ("cpu", "fp32", None),
        ("a-device-of-tomorrow", "bf16", None),
    ],
)
def test_the_makers_peak_is_found_where_it_is_known(slug, precision, peak):
    assert datasheet_peak(slug, precision) == peak


def test_a_rate_above_the_makers_peak_is_refused():
    check_peak(989e12, "nvidia-h200", "bf16", "fast: denoise step")
    with pytest.raises(ValueError, match=r"fast: denoise step: 990\.0 TFLOP/s in bf16, but the maker of nvidia-h200"):
        check_peak(990e12, "nvidia-h200", "bf16", "fast: denoise step")


def test_ceilings_are_measured_in_the_arithmetic_of_the_convolutions(cpu, monkeypatch):
    monkeypatch.setattr("genaccel.optimize.ceilings.SIDES", {"cpu": 64})
    monkeypatch.setattr("genaccel.optimize.ceilings.COPIES", {"cpu": 4096})
    applied = []
    monkeypatch.setattr(type(cpu), "apply", lambda self, variant: applied.append(variant))
    ceilings = measure_ceilings(cpu, VARIANTS["pytorch_default"])
    assert applied[0].matmul == "tf32"
    assert ceilings.matmul > 0
    assert ceilings.memory > 0
