"""Times: measured ones as they are, derived ones as ranges that say so."""

from __future__ import annotations

import csv
from statistics import median

import pytest

from genaccel.measurement import read_run
from genaccel.plan.devices import find_device
from genaccel.plan.rates import BASE, LAUNCH_S, MEASURED, OTHER_SIZES, SCALED, measured_steps, step_seconds
from genaccel.plan.work import step_work


def estimate(device, spec, step="denoise", precision="tf32", batch=1, kernels="stock"):
    work = step_work(spec, step)
    return step_seconds(device, step, precision, batch * work.flops, work.operations, kernels)


@pytest.mark.parametrize(
    ("step", "precision", "seconds"),
    [
        ("denoise", "fp32", (0.197, 0.197)),
        ("denoise", "tf32", (0.089, 0.089)),
        ("denoise", "bf16", (0.078, 0.078)),
        ("train", "fp32", (1.226, 1.253)),
        ("train", "tf32", (0.230, 0.230)),
        ("train", "bf16", (0.150, 0.150)),
    ],
)
def test_a_measured_step_has_its_measured_time(paper, step, precision, seconds):
    found = estimate(find_device(BASE), paper["whole_head"], step, precision)
    assert (found.low, found.high, found.basis) == (*seconds, MEASURED)


def test_another_size_has_a_range_around_the_measured_rate_and_says_so(at_size):
    found = estimate(find_device(BASE), at_size("whole_head", "96x96x96"))
    at_rate = 0.089 * (96 / 128) ** 3
    assert found.low < at_rate < found.high
    assert found.basis == OTHER_SIZES


def test_between_two_measured_sizes_the_time_is_between_theirs(at_size):
    device = find_device(BASE)
    small, between, large = (
        estimate(device, at_size("whole_head", f"{side}x{side}x{side}"), "train", batch=batch)
        for side, batch in ((64, 4), (64, 6), (128, 1))
    )
    assert small.low < between.high
    assert between.low < large.high


def test_a_step_is_never_faster_than_the_host_starts_its_operations(at_size):
    spec = at_size("whole_head", "16x16x16")
    operations = step_work(spec, "denoise").operations
    found = estimate(find_device(BASE), spec)
    assert (found.low, found.high) == pytest.approx((LAUNCH_S[0] * operations, LAUNCH_S[1] * operations))


@pytest.mark.parametrize("name", ["A100-40", "A100-80", "H100-80"])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_a_device_without_measurements_is_scaled_and_never_called_measured(paper, name, precision):
    base, found = (estimate(find_device(n), paper["whole_head"], precision=precision) for n in (BASE, name))
    assert found.basis == SCALED
    assert "not measured" in found.basis
    assert base.low <= found.low < found.high


def test_scaling_ranges_from_the_ratio_of_peaks_to_that_of_bandwidths(paper):
    found = estimate(find_device("A100-40"), paper["whole_head"])
    ratios = 494.7 / 156, 4800 / 1555
    assert (found.low, found.high) == pytest.approx((0.089 * min(ratios), 0.089 * max(ratios)))


def test_a_peak_that_is_not_known_gives_no_time(paper, device):
    assert estimate(find_device("Gaudi2-96"), paper["whole_head"], precision="fp32") is None
    assert estimate(device(), paper["whole_head"]) is None


def test_a_precision_that_the_device_lacks_has_no_time(paper):
    assert estimate(find_device("V100-32"), paper["whole_head"], precision="bf16") is None


def test_committed_training_runs_count_as_measured(root):
    runs = measured_steps(find_device(BASE), root / "results/reference")
    with open(root / "results/reference/nvidia-h200/train.csv") as file:
        seconds = next(float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "training_time")
    with open(root / "results/reference/nvidia-h200/loss.csv") as file:
        steps = sum(1 for _ in file) - 1
    assert [step.step for step in runs if step.seconds == pytest.approx(seconds / steps, rel=1e-3)] == ["train"]


def test_another_devices_runs_do_not_count(root):
    assert measured_steps(find_device("A100-40"), root / "results/reference") == ()


@pytest.mark.parametrize(("step", "metric"), [("denoise", "denoise_step_time"), ("train", "train_step_time")])
def test_a_fused_step_has_the_time_of_the_committed_variant(root, paper, step, metric):
    run = read_run(root / "results/reference/nvidia-h200/runs/optimize-whole_head-fast.json")
    values = next(result.values for result in run.results if result.metric == metric)
    found = estimate(find_device(BASE), paper["whole_head"], step, "bf16", kernels="fused")
    assert (found.low, found.high, found.basis) == (median(values), median(values), MEASURED)
    assert found.high < estimate(find_device(BASE), paper["whole_head"], step, "bf16").low / 2


def test_a_device_that_lacks_the_fused_kernels_has_no_time_for_them(paper):
    assert estimate(find_device("Gaudi3-128"), paper["whole_head"], precision="bf16", kernels="fused") is None
