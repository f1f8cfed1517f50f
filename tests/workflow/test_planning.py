"""A dry run is light, also for the full study."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from genaccel.sample.samplers import SAMPLERS
from genaccel.variants import VARIANTS

SUBJECTS = 1000
DEVICES = ["v100", "a100", "h100", "gaudi1", "gaudi2", "gaudi3"]
COLUMNS = ("mask", "t1", "t1ce", "t2", "flair")


@pytest.fixture
def many_subjects(project):
    """The paper's study with sample tables of a thousand subjects, each with files of its own."""
    rows = ["\t".join(["subject", *COLUMNS])]
    folder = project / "images"
    folder.mkdir()
    for i in range(SUBJECTS):
        names = [folder / f"s{i:04d}_{column}.nii.gz" for column in COLUMNS]
        for name in names:
            name.touch()
        rows.append("\t".join([f"s{i:04d}", *(f"images/{name.name}" for name in names)]))
    for name in ("whole_head", "brats"):
        (project / f"config/{name}.tsv").write_text("\n".join(rows) + "\n")
    return project


@pytest.fixture
def many_devices(project):
    """The paper's networks on a thousand simulated subjects, with every variant measured on six devices."""
    raw = yaml.safe_load((project / "config/paper.yaml").read_text()) | {"devices": DEVICES}
    raw["data"] = {"simulated": {"simulated": {"subjects": SUBJECTS}, "shape": [128, 128, 128]}}
    raw["models"] = {name: raw["models"]["whole_head"] | {"data": "simulated"} for name in ("one", "another")}
    raw["sample"] |= {"samplers": SAMPLERS.names(), "steps": [20, 50], "variants": ["tf32", "fast"]}
    raw |= {stage: {"variants": list(VARIANTS)} for stage in ("optimize", "profile")}
    (project / "config/devices.yaml").write_text(yaml.safe_dump(raw))
    return project


def dry_run(project: Path, *arguments: str) -> dict[str, int]:
    """Plans in a process of its own; gives the number of jobs by rule, and of all as ``total``."""
    program = (
        "import sys\nfrom snakemake.cli import main\n"
        f"try:\n    main(['-n', '--cores', '1', *{arguments!r}])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'torch', 'monai', 'nibabel', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "print('heavy imports:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "heavy imports: []" in done.stdout
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE)}


def test_a_dry_run_of_the_full_study_imports_no_torch_and_plans_few_jobs(many_subjects):
    # One for each model, variant and figure; none for each subject.
    assert dry_run(many_subjects, "--configfile", "config/paper.yaml")["total"] < 60


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_a_study_of_many_devices_plans_one_job_for_each_thing_measured_or_sampled(many_devices, profile):
    planned = dry_run(many_devices, "--configfile", "config/devices.yaml", "--workflow-profile", f"profiles/{profile}")
    assert planned["optimize_measure"] == planned["profile_model"] == len(DEVICES) * 2 * len(VARIANTS)
    # Of each model, with either variant: ancestral sampling, and the others in 20 and in 50 steps.
    runs = 2 * 2 * (1 + 2 * (len(SAMPLERS.names()) - 1))
    assert planned["sample_volumes"] == planned["metrics_score"] == planned["figures_sample_montage"] == runs
    assert planned["data_simulate"] == planned["data_prepare"] == 1
    assert planned["total"] < 450
