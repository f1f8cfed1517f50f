"""A real SLURM on this machine for the whole session, and projects that run on it."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest
import yaml
from snakemake.cli import main

T = TypeVar("T")
PATIENCE = 900  # seconds: a run that hangs should fail some day, and one on a busy machine should not
# Short of a site's: a test has few jobs, which end in seconds, and the cluster has no accounting.
HASTE = {"slurm-status-command": "squeue", "slurm-init-seconds-before-status-checks": 1, "latency-wait": 5}


@pytest.fixture(scope="session")
def cluster(root):
    """The cluster: ``cluster.env`` for what talks to it, ``cluster.jobs()`` for what it knows of its jobs,
    ``cluster.control(*words)`` for scontrol."""
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
            yield SimpleNamespace(env=env, jobs=lambda: _jobs(env), control=lambda *words: _control(env, *words))
        finally:
            module.stop(folder)


def _control(env: dict[str, str], *words: str) -> str:
    return subprocess.run(["scontrol", *words], env=env, capture_output=True, text=True, check=True).stdout


def _jobs(env: dict[str, str]) -> list[SimpleNamespace]:
    """Every job that the cluster was given: rules, partition, gres, state, and all of scontrol's fields."""
    jobs = []
    for line in _control(env, "show", "job", "-o").splitlines():
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        if "JobId" not in fields or "Partition" not in fields:
            continue
        asked = fields.get("TresPerJob") or fields.get("TresPerNode") or ""
        jobs.append(
            SimpleNamespace(
                id=fields["JobId"],
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
def site_project(copy_project):
    """Writes a copy of the project for the cluster: ``site_project(folder, profile, **changes)``.

    Changes are of the profile's keys; None takes one out.
    """

    def write(folder: Path, profile: str, **changes) -> Path:
        copy_project(folder)
        path = folder / "profiles" / profile / "config.yaml"
        settings = yaml.safe_load(path.read_text()) | HASTE | changes
        path.write_text(yaml.safe_dump({key: value for key, value in settings.items() if value is not None}))
        return folder

    return write


@pytest.fixture(scope="session")
def linked_project(root):
    """Makes a folder the project, of links but for the profiles, which a test may edit: ``linked_project(folder)``."""

    def link(folder: Path) -> Path:
        for name in ("workflow", "config", "envs", "tests"):
            (folder / name).symlink_to(root / name)
        shutil.copytree(root / "profiles", folder / "profiles")
        shutil.copy(root / "Snakefile", folder)
        return folder

    return link


@pytest.fixture(scope="session")
def dry_run():
    """What Snakemake says of a dry run: ``dry_run(folder, profile, config)``.

    In this process: a new one takes ten times as long to start.
    """

    def plan(folder: Path, profile: str, config: str) -> str:
        said = io.StringIO()
        arguments = ["-n", "--quiet", "rules", "--configfile", config, "--workflow-profile", f"profiles/{profile}"]
        with chdir(folder), redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as ended:
            main(arguments)
        assert not ended.value.code, said.getvalue()[-6000:]
        return said.getvalue()

    return plan


@pytest.fixture(scope="session")
def submit(root, cluster):
    """Starts Snakemake in a folder on the cluster: ``submit(folder, *arguments)`` gives the process.

    ``submit(folder, "run", ...)`` starts `genaccel run` with it.
    """

    def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
        # A file, not a pipe: nobody reads while the test looks at the cluster.
        with open(folder / "snakemake.log", "a") as log:
            return subprocess.Popen(
                [sys.executable, str(root / "tests/slurm/hasty.py"), *arguments],
                cwd=folder,
                env={**cluster.env, "PYTHONPATH": str(folder / "workflow/src")},
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )

    return start


@pytest.fixture(scope="session")
def wait_until(patience):
    """Waits until something is true, and fails where it can be so no more: ``wait_until(true, run)``."""

    def wait(true: Callable[[], T], run: subprocess.Popen[str]) -> T:
        until = time.monotonic() + patience
        while not (found := true()):
            assert run.poll() is None, "ended too early"
            assert time.monotonic() < until
            time.sleep(0.02)
        return found

    return wait


@pytest.fixture(scope="session")
def training_process():
    """The process that trains a model in a folder: ``training_process(folder, model)``; None where there is none."""

    def find(folder: Path, model: str) -> int | None:
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
                here = os.readlink(f"/proc/{entry}/cwd")
            except OSError:
                continue
            trains = words[1:3] == [b"-m", b"genaccel.train"] and here == str(folder)
            if trains and any(word.endswith(f"/{model}/weights.safetensors".encode()) for word in words):
                return int(entry)
        return None

    return find


@pytest.fixture(scope="session")
def patience() -> int:
    """Seconds to wait for what a test started."""
    return PATIENCE
