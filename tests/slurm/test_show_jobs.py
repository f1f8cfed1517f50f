"""What `make show-jobs` prints, against what was recorded; the executor itself builds the lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from genaccel.cli import main
from genaccel.site.show import sbatch_lines

RECORDED = Path(__file__).parent / "recorded"
# A recording is made again with: genaccel show-jobs --config ... --profile ... > tests/slurm/recorded/<profile>.txt
CONFIG = "config/h200.yaml"


@pytest.fixture
def project(root, tmp_path, monkeypatch) -> Path:
    """A copy in which profiles can be edited."""
    for name in ("workflow", "config", "profiles", "envs", "tests"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "profiles").unlink()
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    shutil.copy(root / "Snakefile", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("profile", ["slurm", "slurm-gaudi"])
def test_every_kind_of_job_is_submitted_as_recorded(project, capsys, profile):
    main(["show-jobs", "--config", CONFIG, "--profile", f"profiles/{profile}"])
    assert capsys.readouterr().out == (RECORDED / f"{profile}.txt").read_text()
    assert not (project / "results").exists()
    assert not (project / ".snakemake").exists()


def test_an_account_a_constraint_and_further_options_reach_sbatch(project):
    site = Path("profiles/site.yaml")
    text = site.read_text().replace("account: null", "account: me")
    site.write_text(
        text.replace(
            'a100: {partition: gpu-a100, request: "--gpus=a100:{n}",',
            'a100: {partition: gpu-a100, request: "--gres=gpu:HL-225:{n}", constraint: sxm, extra: --exclusive,',
        )
    )
    lines = dict(sbatch_lines(CONFIG, "profiles/slurm"))
    assert all(" -A me " in line for line in lines.values())
    assert " -C sxm " in lines["train_model"]
    assert " --gpus-per-node=HL-225:1 --exclusive " in lines["train_model"]
    assert "--gpus-per-node" not in lines["data_prepare"]


def test_a_profile_that_submits_nothing_is_refused(project, capsys):
    with pytest.raises(SystemExit):
        main(["show-jobs", "--config", CONFIG, "--profile", "profiles/default"])
    assert "profiles/default submits nothing" in capsys.readouterr().err
