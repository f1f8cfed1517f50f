"""A dry run is light, also for the full study."""

from __future__ import annotations

import subprocess
import sys

import pytest

SUBJECTS = 1000
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


def test_a_dry_run_of_the_full_study_imports_no_torch_and_plans_few_jobs(many_subjects):
    program = (
        "import sys\nfrom snakemake.cli import main\n"
        "try:\n    main(['-n', '--configfile', 'config/paper.yaml', '--cores', '1'])\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'torch', 'monai', 'nibabel', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "print('heavy imports:', sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=many_subjects, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "heavy imports: []" in done.stdout
    total = next(line for line in done.stdout.splitlines() if line.startswith("total"))
    # One for each model, variant and figure; none for each subject.
    assert int(total.split()[-1]) < 60
