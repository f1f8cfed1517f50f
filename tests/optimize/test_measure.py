"""A cell's rows: complete whatever happens."""

from __future__ import annotations

import pytest
import torch

from genaccel.measurement import case_text
from genaccel.optimize import measure as measuring
from genaccel.optimize.ceilings import Ceilings
from genaccel.optimize.measure import measure_cell
from genaccel.optimize.outcome import Failed
from genaccel.optimize.results import Rows
from genaccel.optimize.spec import Cell
from genaccel.optimize.workload import Workload

CELL = Cell(shape=(4, 4, 4), batch=1)


@pytest.fixture(autouse=True)
def quick_ceilings(monkeypatch):
    monkeypatch.setattr(measuring, "measure_ceilings", lambda device, variant: Ceilings(1e15, 1e12))


@pytest.fixture
def measure(cpu):
    return lambda job, cell=CELL: measure_cell(job, cell, cpu)


def rows(measured):
    return {(result.metric, case_text(result.case)): result for result in measured.results}


def planned(job, cell=CELL):
    return set(rows(Measured(Rows(job, cell).all_failed(Failed("oom", "x")))))


class Measured:
    def __init__(self, results):
        self.results = results


def test_a_cell_has_every_row(measure, job):
    found = rows(measure(job()))
    assert set(found) == planned(job())
    assert ("denoise_step_time", "batch=1;size=4") in found
    assert ("volume_time", "batch=1;sampler=ddim;size=4;steps=2") in found
    assert ("peak_memory", "batch=1;size=4;step=train") in found
    assert ("output_rel_error", "batch=1;size=4;t=5") in found
    for (metric, case), result in found.items():
        unavailable = metric in ("energy_per_volume", "device_peak_memory")
        assert result.status == ("unsupported" if unavailable else "ok"), (metric, case, result.reason)
    time = found["train_step_time", "batch=1;size=4"]
    assert (len(time.values), len(time.warmup)) == (3, 1)
    assert time.first_call > 0
    # Strict FP32 gives the same twice on one thread.
    assert found["output_rel_error", "batch=1;size=4;t=5"].values == (0.0,)


def test_rates_are_those_of_the_median_time(measure, job):
    found = rows(measure(job()))
    flops, time = (found[metric, case].values for metric, case in (
        ("flops", "batch=1;size=4;step=denoise"), ("denoise_step_time", "batch=1;size=4")))  # fmt: skip
    rate = flops[0] / sorted(time)[1]
    assert found["achieved_flops", "batch=1;size=4;step=denoise"].values[0] == pytest.approx(rate)
    assert found["ceiling_share", "batch=1;size=4;step=denoise"].values[0] == pytest.approx(rate / 1e15)


def test_a_rate_above_the_ceiling_stands_with_a_reason(measure, job, monkeypatch):
    monkeypatch.setattr(measuring, "measure_ceilings", lambda device, variant: Ceilings(1.0, 1.0))
    result = rows(measure(job()))["achieved_flops", "batch=1;size=4;step=train"]
    assert result.status == "ok"
    assert "of the ceiling of matrix products" in result.reason


def test_another_variant_leaves_its_predictions_to_be_compared(measure, job):
    measured = measure(job("bf16", volumes=()))
    assert measured.predictions[5].shape == (1, 1, 4, 4, 4)
    assert planned(job("bf16", volumes=())) - set(rows(measured)) == {("output_rel_error", "batch=1;size=4;t=5")}
    assert measured.record["precision"]["autocast"] == "bf16"


def test_an_unsupported_variant_has_every_row_with_the_reason_and_builds_no_network(measure, job, monkeypatch):
    monkeypatch.setattr(measuring, "Workload", None)
    measured = measure(job("tf32"))
    assert set(rows(measured)) == planned(job("tf32"))
    assert {(r.status, r.reason) for r in measured.results} == {("unsupported", measured.unsupported)}
    assert "it would be the same as fp32_strict" in measured.unsupported


def test_training_out_of_memory_is_a_row_and_sampling_stands(measure, job, monkeypatch):
    def train(self):
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a capacity of 1 GiB. X"
        )

    monkeypatch.setattr(Workload, "train", train)
    monkeypatch.setattr(
        "genaccel.device.cpu.CPU.is_out_of_memory", lambda self, e: isinstance(e, torch.OutOfMemoryError)
    )
    found = rows(measure(job()))
    assert set(found) == planned(job())
    assert found["denoise_step_time", "batch=1;size=4"].status == "ok"
    failed = {key: r for key, r in found.items() if r.status == "oom"}
    assert {case for _, case in failed} == {"batch=1;size=4", "batch=1;size=4;step=train"}
    assert failed["train_step_time", "batch=1;size=4"].reason.endswith("20.00 GiB. GPU 0 has a capacity of 1 GiB")


def test_out_of_memory_at_once_leaves_no_row_out(measure, job, monkeypatch):
    def nothing(*given):
        raise MemoryError("no room")

    monkeypatch.setattr(measuring, "Workload", nothing)
    measured = measure(job())
    assert set(rows(measured)) == planned(job())
    assert {r.status for r in measured.results} == {"oom"}


def test_a_size_with_2_to_the_31_elements_in_a_tensor_is_refused(measure, job, monkeypatch):
    monkeypatch.setattr(measuring, "Workload", None)
    measured = measure(job(), Cell(shape=(512, 512, 256), batch=1))
    assert {r.status for r in measured.results} == {"unsupported"}
    assert "2^31" in measured.results[0].reason
    assert measured.results[0].case["size"] == "512x512x256"
    # Another size may well fit: the variant itself is supported.
    assert measured.unsupported is None
