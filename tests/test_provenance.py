"""Where a measurement came from."""

from __future__ import annotations

import json
import subprocess

import pytest

from genaccel.device import open_device
from genaccel.provenance import CODE, provenance
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


@pytest.mark.parametrize(
    ("edited", "counts"),
    [("workflow/code.py", True), ("Snakefile", True), ("profiles/site.yaml", False), ("config/mine.yaml", False)],
)
def test_a_checkout_is_changed_by_its_code_not_by_settings(tmp_path, edited, counts):
    def git(*command: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return subprocess.run(
            ["git", *who, *command], cwd=tmp_path / "workflow", check=True, capture_output=True, text=True
        ).stdout

    for name in ("workflow/code.py", "Snakefile", "profiles/site.yaml", "config/mine.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a")
    git("init", "-q", "..")
    git("add", "..")
    git("commit", "-qm", "all")
    (tmp_path / edited).write_text("b")
    assert bool(git("status", "--porcelain", "--untracked-files=no", *CODE)) is counts
