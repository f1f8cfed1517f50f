"""Every profile with every config, and what is refused before anything is submitted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

# `default` is planned with every config in tests/workflow.
PROFILES = ("local-gpu", "slurm", "slurm-gaudi")
# Those that need no files of the user's.
CONFIGS = ("config/config.yaml", "config/h200.yaml", "config/speed.yaml")


@pytest.fixture
def project(root, tmp_path) -> Path:
    for name in ("workflow", "config", "envs", "tests"):
        (tmp_path / name).symlink_to(root / name)
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    shutil.copy(root / "Snakefile", tmp_path)
    return tmp_path


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


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_plans_every_config(project, profile, config):
    done = snakemake(project, profile, config, "-n")
    assert done.returncode == 0, done.stdout + done.stderr


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
