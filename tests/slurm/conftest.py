"""A real SLURM on this machine for the whole session, and projects that run on it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

PATIENCE = 900  # seconds: a run that hangs should fail some day, and one on a busy machine should not
# Short of a site's: a test has few jobs, which end in seconds, and the cluster has no accounting.
HASTE = {"slurm-status-command": "squeue", "slurm-init-seconds-before-status-checks": 1, "latency-wait": 5}


@pytest.fixture(scope="session")
def cluster(root):
    """The cluster: ``cluster.env`` for what talks to it, ``cluster.jobs()`` for what it knows of its jobs."""
    spec = importlib.util.spec_from_file_location("cluster", root / "tests/slurm/cluster.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if reason := module.missing():
        if os.environ.get("GENACCEL_REQUIRE_SLURM"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Not in pytest's own folder, which is closed to others: munge refuses to put its socket there.
    with tempfile.TemporaryDirectory(prefix="genaccel-slurm-") as name:
        folder = Path(name)
        env = {**os.environ, "PYTHONPATH": "", **module.environment(folder)}
        try:
            module.start(folder)
            yield SimpleNamespace(env=env, jobs=lambda: _jobs(env))
        finally:
            module.stop(folder)


def _jobs(env: dict[str, str]) -> list[SimpleNamespace]:
    """Every job that the cluster was given: rules, partition, gres, state, and all of scontrol's fields."""
    shown = subprocess.run(
        ["scontrol", "show", "job", "-o"], env=env, capture_output=True, text=True, check=True
    ).stdout
    jobs = []
    for line in shown.splitlines():
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        if "JobId" not in fields or "Partition" not in fields:
            continue
        asked = fields.get("TresPerJob") or fields.get("TresPerNode") or ""
        jobs.append(
            SimpleNamespace(
                comment=fields.get("Comment", ""),
                partition=fields["Partition"],
                gres=asked.removeprefix("gres:"),
                state=fields["JobState"],
                folder=fields.get("WorkDir", ""),
                fields=fields,
            )
        )
    return jobs


@pytest.fixture(scope="session")
def site_project(root):
    """Writes a copy of the project for the cluster: ``site_project(folder, profile, **changes)``.

    Changes are of the profile's keys; None takes one out.
    """

    def write(folder: Path, profile: str, **changes) -> Path:
        folder.mkdir(parents=True)
        (folder / "tests").mkdir()
        for name in ("Snakefile", "workflow", "config", "profiles", "envs", "tests/config"):
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy2(source, folder / name)
        path = folder / "profiles" / profile / "config.yaml"
        settings = yaml.safe_load(path.read_text()) | HASTE | changes
        path.write_text(yaml.safe_dump({key: value for key, value in settings.items() if value is not None}))
        return folder

    return write


@pytest.fixture(scope="session")
def submit(root, cluster):
    """Starts Snakemake in a folder on the cluster: ``submit(folder, *arguments)`` gives the process."""

    def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
        # A file, not a pipe: nobody reads while the test looks at the cluster.
        with open(folder / "snakemake.log", "a") as log:
            return subprocess.Popen(
                [sys.executable, str(root / "tests/slurm/hasty.py"), *arguments],
                cwd=folder,
                env=cluster.env,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )

    return start


@pytest.fixture(scope="session")
def patience() -> int:
    """Seconds to wait for what a test started."""
    return PATIENCE
