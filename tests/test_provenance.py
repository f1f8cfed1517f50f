"""Where a measurement came from."""

from __future__ import annotations

import json

import pytest

from genaccel.device import open_device
from genaccel.provenance import provenance
from genaccel.variant import STRICT


@pytest.fixture
def record(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    device = open_device("cpu", threads=1)
    return provenance(device, "genaccel.train@1", precision=device.apply(STRICT), processes=1, micro_batch=2)


def test_it_names_code_software_device_precision_and_job(record):
    assert record["code"] == "genaccel.train@1"
    assert record["packages"]["torch"].startswith("2.")
    assert record["device"]["kind"] == "cpu"
    assert record["precision"]["matmul"] == "ieee"
    assert record["parallelism"] == {"processes": 1, "micro_batch": 2}
    assert record["slurm"]["SLURM_JOB_ID"] == "77"
    assert len(record["environment_sha256"]) == 64


def test_it_is_plain_json(record):
    assert json.loads(json.dumps(record)) == record


def test_without_git_nothing_is_claimed_of_the_checkout(monkeypatch):
    monkeypatch.setenv("PATH", "")
    device = open_device("cpu", threads=1)
    record = provenance(device, "", precision={})
    assert record["commit"] is None
    assert record["dirty"] is None
