"""The tiny study on a real SLURM, its training killed once on the way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml

TINY = "tests/config/tiny.yaml"
# The study runs on the CPU, since the nodes are fake. Its rules ask for devices all the same.
ON_DEVICE = ("train_model", "sample_volumes", "metrics_real", "metrics_segmenter", "metrics_score", "metrics_compare")
DRAWINGS = (
    "figures_subjects", "figures_qc_montage", "figures_loss_curve", "figures_sample_montage", "metrics_table",
    "figures_metric_table", "figures_sampler_steps", "figures_provenance",
)  # fmt: skip
# Fewer and larger groups than the shipped profile's: each submission starts Snakemake twice.
GROUPS = {"data_simulate": "preparing", "data_prepare": "preparing"} | dict.fromkeys(DRAWINGS, "drawing")


@pytest.fixture(scope="module")
def study(cluster, site_project, submit, patience, wait_until, training_process, tmp_path_factory) -> SimpleNamespace:
    """The study, run whole by one command."""
    folder = site_project(
        tmp_path_factory.mktemp("study") / "project",
        "slurm",
        **{"set-resources": {rule: {"gpu": 1} for rule in ON_DEVICE}},
        # As many cores as the jobs share here, not as the fake nodes have.
        **{"set-threads": dict.fromkeys((*ON_DEVICE, "data_prepare"), 1)},
        groups=GROUPS,
        **{"group-components": {"drawing": 20}},
    )
    raw = yaml.safe_load((folder / TINY).read_text())
    raw["train"] |= {"steps": 40, "checkpoint": {"steps": 1}}
    (folder / TINY).write_text(yaml.safe_dump(raw))
    run = submit(folder, "--configfile", TINY, "--workflow-profile", "profiles/slurm")
    try:
        checkpoints = folder / "results/tiny/train/tiny/checkpoints"
        wait_until(lambda: list(checkpoints.glob("*/step-*.pt")), run)
        os.kill(training_process(folder, "tiny"), signal.SIGKILL)
        run.wait(timeout=patience)
    finally:
        run.kill()
    log = (folder / "snakemake.log").read_text()
    assert run.returncode == 0, log[-6000:]
    jobs = [job for job in cluster.jobs() if job.folder == str(folder)]
    return SimpleNamespace(folder=folder, jobs=jobs, log=log, cluster=cluster)


def test_the_study_runs_whole(study):
    made = {path.name for path in (study.folder / "results/tiny/figures").iterdir()}
    assert {"metric_table.png", "provenance.html", "loss_curve-tiny.png"} <= made


def test_every_job_lands_where_its_device_is(study):
    for job in study.jobs:
        if any(f"rule_{rule}" in job.comment for rule in ON_DEVICE):
            assert (job.partition, job.gres) == ("gpu-a100", "gpu:a100:1"), job.comment
        else:
            assert (job.partition, job.gres) == ("cpu", ""), job.comment
    assert {job.partition for job in study.jobs} == {"cpu", "gpu-a100"}


def test_short_jobs_without_a_device_share_a_submission(study):
    assert len([job for job in study.jobs if job.partition == "cpu"]) == 2


def test_a_killed_training_is_submitted_again_and_goes_on_from_its_checkpoint(study):
    attempts = [job for job in study.jobs if "rule_train_model" in job.comment]
    assert [job.state for job in attempts] == ["FAILED", "COMPLETED"]
    assert re.search(r"goes on from step [1-9]", (study.folder / "logs/tiny/train/tiny.log").read_text())


def test_a_second_attempt_gets_more_memory(study):
    attempts = [job.fields["MinMemoryNode"] for job in study.jobs if "rule_train_model" in job.comment]
    # 64,000 MB, as scontrol writes it.
    assert attempts == ["32000M", "62.50G"]


def test_what_slurm_said_of_a_failed_job_is_kept_in_its_log(study):
    assert len(list((study.folder / "logs/slurm/rule_train_model").rglob("*.log"))) == 1


def test_nothing_that_is_finished_runs_again(study):
    command = [sys.executable, "-m", "snakemake", "-n", "--configfile", TINY, "--workflow-profile", "profiles/slurm"]
    done = subprocess.run(command, cwd=study.folder, env=study.cluster.env, capture_output=True, text=True, check=True)
    assert "Nothing to be done" in done.stdout + done.stderr
