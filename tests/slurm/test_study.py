"""The tiny study on a real SLURM, its training killed once on the way."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from genaccel.measurement import read_run

TINY = "tests/config/tiny.yaml"
# The study runs on the CPU, since the nodes are fake. Its rules ask for devices all the same.
ON_DEVICE = ("train_model", "sample_volumes", "metrics_real", "metrics_segmenter", "metrics_score")
DRAWINGS = (
    "figures_subjects", "figures_qc_montage", "figures_loss_curve", "figures_sample_montage", "metrics_table",
    "figures_metric_table", "figures_sampler_steps", "figures_provenance",
)  # fmt: skip
FIGURES = {*DRAWINGS} - {"metrics_table"}
AFTER_TRAINING = {
    "sample_volumes", "metrics_score", "metrics_table", "figures_sample_montage",
    "figures_metric_table", "figures_sampler_steps", "figures_provenance",
}  # fmt: skip
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
    raw["train"] |= {"steps": 20, "checkpoint": {"steps": 1}}
    # Each more would be three jobs more, of kinds that are there already.
    raw["sample"]["variants"] = ["fp32_strict"]
    raw["metrics"]["segmenter"]["steps"] = 2
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


@pytest.fixture(scope="module")
def moved(study, tmp_path_factory) -> Path:
    """The finished study, copied elsewhere as `cp -a` does."""
    folder = tmp_path_factory.mktemp("moved") / "project"
    return Path(shutil.copytree(study.folder, folder, symlinks=True, copy_function=shutil.copy2))


@pytest.fixture
def planned(dry_run) -> Callable[..., set[str]]:
    """Rules that would run in a folder under a profile: ``planned(folder, profile, config=TINY)``."""

    def rules(folder: Path, profile: str, config: str = TINY) -> set[str]:
        said = dry_run(folder, profile, config)
        counts = set(re.findall(r"^(\w+) +\d+$", said, re.MULTILINE))
        assert bool(counts) != ("Nothing to be done" in said)
        return counts - {"all", "total"}

    return rules


@pytest.mark.parametrize("profile", ["slurm", "default"])
def test_nothing_that_is_finished_runs_again(study, planned, profile):
    assert planned(study.folder, profile) == set()


@pytest.mark.parametrize("profile", ["slurm", "default"])
@pytest.mark.parametrize(
    ("block", "changes", "rules"),
    [("figures", {}, set()), ("figures", {"dpi": 61}, FIGURES), ("sample", {"steps": [4]}, AFTER_TRAINING)],
)
def test_what_ran_on_slurm_reruns_after_an_edit_as_what_ran_locally(moved, planned, profile, block, changes, rules):
    changed = moved / "tests/config/changed.yaml"
    shutil.copy(moved / TINY, changed)
    edit(changed, (block,), **changes)
    changed.write_text(f"# a comment\n{changed.read_text()}")
    assert planned(moved, profile, "tests/config/changed.yaml") == rules


def test_without_checkpoints_and_with_another_profile_nothing_reruns(moved, planned):
    shutil.rmtree(moved / "results/tiny/train/tiny/checkpoints")
    asked = {"gpu": 2, "runtime": 77, "mem_mb": 1234, "slurm_partition": "elsewhere", "slurm_account": "other"}
    profile = moved / "profiles/slurm/config.yaml"
    edit(profile, ("set-resources",), train_model=asked, data_prepare={"nodes": 1, "runtime": 7})
    edit(profile, ("set-threads",), train_model=3)
    edit(profile, ("groups",), figures_loss_curve="alone")
    edit(profile, (), retries=0, jobs=3)
    edit(moved / "profiles/site.yaml", (), account="me", scratch="/scratch", profiles={"slurm": "h100"})
    assert planned(moved, "slurm") == set()


def test_a_training_on_more_devices_than_a_node_grants_runs_over_several_nodes(study, submit, patience, tmp_path):
    folder = tmp_path / "moved"
    shutil.copytree(study.folder, folder, symlinks=True, copy_function=shutil.copy2)
    edit(folder / "profiles/site.yaml", ("devices", "h100", "limits"), devices_per_node=1)
    edit(folder / "profiles/slurm/config.yaml", ("set-resources",), train_model={"gpu": 2, "gpu_model": "h100"})
    edit(folder / TINY, ("train",), processes=2, batch=1, steps=2)
    run = submit(folder, "--configfile", TINY, "--workflow-profile", "profiles/slurm", "--retries", "0", "train")
    assert run.wait(timeout=patience) == 0, (folder / "snakemake.log").read_text()[-6000:]
    (job,) = [job for job in study.cluster.jobs() if job.folder == str(folder)]
    assert (job.partition, job.fields["NumNodes"], job.fields["NumTasks"]) == ("gpu-h100", "2", "2")
    assert job.fields["TresPerNode"] == "gres:gpu:h100:1"
    trained = read_run(folder / "results/tiny/train/tiny/run.json")
    assert (trained.n_devices, trained.provenance["parallelism"]["nodes"]) == (2, 2)


def edit(path: Path, at: tuple[str, ...], **changes) -> None:
    raw = block = yaml.safe_load(path.read_text())
    for key in at:
        block = block[key]
    block |= changes
    path.write_text(yaml.safe_dump(raw))
