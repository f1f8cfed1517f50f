"""Every profile with every config, and what is refused before anything is submitted."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

# `default` is planned with every config in tests/workflow.
PROFILES = ("local-gpu", "slurm", "slurm-gaudi")
CONFIGS = (
    *(
        f"config/{name}.yaml"
        for name in ("config", "curves", "h200", "paired", "paper", "quality", "samplers", "speed")
    ),
    "tests/config/tiny.yaml",
)
# What config/paper.yaml has tables of.
IMAGES = ("mask", "t1", "t1ce", "t2", "flair")


@pytest.fixture(scope="module")
def planned(root, dry_run, tmp_path_factory) -> Callable[[str, str], str]:
    """Plans a config under a profile: ``planned(profile, config)``."""
    folder = tmp_path_factory.mktemp("planned")
    for name in ("workflow", "envs", "tests", "profiles", "Snakefile"):
        (folder / name).symlink_to(root / name)
    shutil.copytree(root / "config", folder / "config")
    for table in ("whole_head", "brats"):
        names = [[f"{table}-{subject}-{image}.nii.gz" for image in IMAGES] for subject in range(10)]
        for name in itertools.chain.from_iterable(names):
            (folder / "config" / name).touch()
        rows = [["subject", *IMAGES], *([f"s{subject}", *images] for subject, images in enumerate(names))]
        (folder / f"config/{table}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))

    return lambda profile, config: dry_run(folder, profile, config)


@pytest.fixture
def project(linked_project, tmp_path) -> Path:
    return linked_project(tmp_path)


@pytest.fixture
def commands(tmp_path_factory, monkeypatch) -> Path:
    """SLURM's commands do nothing but leave their names in this folder."""
    folder = tmp_path_factory.mktemp("commands")
    for name in ("sbatch", "squeue", "scontrol", "sinfo", "sacct", "sacctmgr", "sshare"):
        path = folder / name
        path.write_text(f"#!/bin/sh\ntouch '{folder}/{name}.called'\nexit 1\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def snakemake(project: Path, profile: str, config: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "snakemake", "--quiet", "rules", "--configfile", config,
        "--workflow-profile", f"profiles/{profile}", *arguments,
    ]  # fmt: skip
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=600, check=False)


def change(project: Path, profile: str, **keys) -> None:
    path = project / f"profiles/{profile}/config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | keys))


def test_every_config_is_planned(root):
    assert {f"config/{path.name}" for path in (root / "config").glob("*.yaml")} < set(CONFIGS)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_plans_every_config(planned, profile, config):
    assert "all " in planned(profile, config)


@pytest.mark.parametrize(
    ("profile", "keys", "message"),
    [
        ("slurm", {"set-resources": {"train_modle": {"runtime": 9}}}, "'train_modle', which is no rule; did you mean"),
        ("default", {"set-threads": {"data_perpare": 2}}, "set-threads names 'data_perpare'"),
        ("slurm", {"groups": {"figure_subjects": "x"}}, "groups names 'figure_subjects'"),
        ("slurm", {"set-resources": {"train_model": {"gres": "gpu:2"}}}, "train_model has `gpu` and `gres` at once"),
        ("slurm", {"config": ["site=slrum"]}, "there is no row profiles.slrum; did you mean `slurm`?"),
        ("slurm", {"set-resources": {"train_model": {"gpu_model": "h200"}}}, "device 'h200', which has no partition"),
        ("slurm", {"set-resources": {"figures_loss_curve": {"runtime": 9999}}}, "asks for 9999 minutes"),
        ("slurm", {"set-resources": {"train_model": {"gpu": 9, "gpu_model": "h100"}}}, "2 node(s) of"),
    ],
)  # fmt: skip
def test_a_fault_is_refused_before_anything_is_submitted(project, commands, profile, keys, message):
    change(project, profile, **keys)
    done = snakemake(project, profile, "config/h200.yaml")
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
    assert not (commands / "sbatch.called").exists()


def test_a_config_on_the_command_line_that_replaces_the_profiles_is_noticed(project, commands):
    done = snakemake(project, "slurm", "config/h200.yaml", "--config", "device=cuda")
    assert done.returncode != 0
    assert "has no partition" in done.stdout + done.stderr
    assert not (commands / "sbatch.called").exists()
