"""Killed jobs and bad configs, through Snakemake as a user meets them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml
from safetensors.numpy import load_file

TINY = "tests/config/tiny.yaml"
WEIGHTS = "results/tiny/train/tiny/weights.safetensors"


def training_process(folder) -> int | None:
    """The process that trains in this folder, not the shell around it."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            here = os.readlink(f"/proc/{entry}/cwd")
        except OSError:
            continue
        if words[1:3] == [b"-m", b"genaccel.train"] and here == str(folder):
            return int(entry)
    return None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_killed_training_one_call_goes_on_to_the_same_bits(finished, tmp_path, snakemake, patience, number):
    # Its data are made already.
    project = tmp_path / "project"
    shutil.copytree(finished, project, symlinks=True, copy_function=shutil.copy2)
    shutil.rmtree(project / "results/tiny/train")
    (project / "logs/tiny/train/tiny.log").unlink()
    raw = yaml.safe_load((project / TINY).read_text())
    raw["train"]["checkpoint"] = {"steps": 1}
    (project / TINY).write_text(yaml.safe_dump(raw))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", TINY, "--", WEIGHTS]
    run = subprocess.Popen(
        command,
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    checkpoints = project / "results/tiny/train/tiny/checkpoints"
    until = time.monotonic() + patience
    while not list(checkpoints.glob("*/step-*.pt")):
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.02)
    if process := training_process(project):
        os.kill(process, number)
    output = run.communicate(timeout=patience)[0]
    if run.returncode == 0:
        pytest.skip("training ended before the signal arrived")
    assert not (project / WEIGHTS).exists(), output
    snakemake(project, "--configfile", TINY, "--", WEIGHTS)
    log = (project / "logs/tiny/train/tiny.log").read_text()
    assert re.search(r"goes on from step [1-8]", log)
    whole, resumed = load_file(finished / WEIGHTS), load_file(project / WEIGHTS)
    assert all((whole[name] == resumed[name]).all() for name in whole)


def test_a_failed_job_fails_with_its_own_message(project, snakemake):
    """The pipe into `tee` must not hide the job's exit status."""
    raw = yaml.safe_load((project / TINY).read_text())
    raw["train"] = {"steps": 0, "weights": "bad.safetensors"}
    (project / TINY).write_text(yaml.safe_dump(raw))
    (project / "bad.safetensors").write_text("no weights")
    done = snakemake(project, "--configfile", TINY, "--", WEIGHTS, check=False)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Error in rule train_model" in output
    assert "train: bad.safetensors" in output
    assert "MissingOutputException" not in output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trian": {}}, "trian: unknown key; did you mean `train`?"),
        ({"train": {"learning_rate": "1e-4"}}, "train.learning_rate: '1e-4' is text, not a number"),
        ({"device": "cdua"}, "did you mean `cuda`?"),
        ({"models": {"m": {"base_channels": 48}}}, "which GroupNorm's 32 groups do not divide"),
    ],
)
def test_a_fault_in_the_config_stops_before_anything_runs(project, snakemake, change, message):
    (project / "bad.yaml").write_text(yaml.safe_dump(change))
    done = snakemake(project, "--configfile", "bad.yaml", check=False)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "results").exists()


def test_a_named_config_is_complete_and_brings_nothing_of_the_demo(project, snakemake):
    done = snakemake(project, "--configfile", TINY, "-n")
    assert "results/tiny" in done.stdout
    assert "demo" not in done.stdout


def test_the_demo_is_the_default(project, snakemake):
    assert "results/demo/figures/metric_table.png" in snakemake(project, "-n").stdout


@pytest.mark.parametrize("target", ["data", "train", "sample", "metrics", "figures"])
def test_every_stage_is_a_target(needed, target):
    """An unknown target would be an error."""
    assert needed(targets={target}) == set()


@pytest.mark.parametrize("config", ["config/config.yaml", "config/h200.yaml", "config/samplers.yaml"])
def test_every_config_that_needs_no_files_can_be_planned(project, snakemake, config):
    assert "train_model" in snakemake(project, "--configfile", config, "-n", "--quiet", "rules").stdout
