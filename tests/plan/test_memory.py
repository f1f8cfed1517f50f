"""Predicted peaks of training against every measured one that is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from genaccel.measurement import Run, read_run
from genaccel.med_ddpm.memory import peak_memory, training_memory
from genaccel.optimize.spec import OptimizeJob
from genaccel.plan.devices import GIB, known_devices
from genaccel.plan.rates import training_job
from genaccel.resources import read_resource

REFERENCE = Path(__file__).parent.parent.parent / "results" / "reference"
TABLE = read_resource("measured_memory.csv")
RUNS = sorted(path for path in REFERENCE.glob("*/runs/*.json") if "peak_memory" in path.read_text())


def name(row: dict[str, str]) -> str:
    checkpointed = "-checkpointed" if row["gradient_checkpointing"] == "true" else ""
    return f"{row['network']}-{row['shape']}-{row['precision']}{checkpointed}"


@pytest.mark.parametrize("row", TABLE, ids=name)
def test_the_prediction_is_within_15_percent_of_a_measured_peak(row, at_size):
    predicted = training_memory(
        at_size(row["network"], row["shape"]),
        int(row["batch"]),
        row["precision"],
        row["gradient_checkpointing"] == "true",
    )
    assert predicted.total / GIB == pytest.approx(float(row["peak_gib"]), rel=0.15)


def test_there_is_the_published_codes_peak_at_strict_fp32():
    assert any(float(row["peak_gib"]) == 19.1 and row["precision"] == "fp32" for row in TABLE)


def test_measured_devices_are_known():
    assert {row["device"] for row in TABLE} <= known_devices().keys()


def peaks(run: Run, metric: str) -> list[float]:
    return [value for result in run.results if result.metric == metric for value in result.values]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_a_runs_own_prediction_was_within_15_percent_of_its_peak(path):
    run = read_run(path)
    if predicted := peaks(run, "predicted_peak_memory"):
        assert predicted == pytest.approx(peaks(run, "peak_memory"), rel=0.15)


@pytest.mark.parametrize(
    "path",
    [path for path in RUNS if path.name.startswith("train-")],
    ids=lambda path: f"{path.parent.parent.name}-{path.stem}",
)
def test_todays_prediction_is_within_15_percent_of_a_training_runs_peak(path):
    run = read_run(path)
    job = training_job(run)
    if job is None:
        pytest.skip("written with settings that this version no longer has")
    train = job.train
    switches = job.switches
    predicted = peak_memory(
        job.model, "train", train.batch, switches.precision, switches.kernels, train.gradient_checkpointing
    ).total
    assert [predicted] == pytest.approx(peaks(run, "peak_memory"), rel=0.15)


@pytest.mark.parametrize("step", ["train", "denoise"])
@pytest.mark.parametrize("variant", ["fp32_strict", "tf32", "bf16", "fast"])
def test_the_prediction_is_within_8_percent_of_a_measured_variants_peak(variant, step):
    run = read_run(REFERENCE / f"nvidia-h200/runs/optimize-whole_head-{variant}.json")
    job = OptimizeJob.build(run.spec)
    measured = [
        value for r in run.results if r.metric == "peak_memory" and r.case["step"] == step for value in r.values
    ]
    predicted = peak_memory(job.model, step, 1, job.switches.precision, job.switches.kernels).total
    assert [predicted] == pytest.approx(measured, rel=0.08)
