"""A copy of the project in which the tiny study has run to its end, and a probe of what would run again."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

TINY = "tests/config/tiny.yaml"
PATIENCE = 1800  # seconds: a run that hangs should fail some day, and one on a busy machine should not


def _snakemake(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs Snakemake as a user does, in a folder."""
    environment = {**os.environ, "PYTHONPATH": ""}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    if check:
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done


@pytest.fixture(scope="session")
def finished(copy_project, tmp_path_factory) -> Path:
    """The tiny study, run once; by the first of several pytest workers, of which each has a copy of its own."""
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if parallel else base) / "finished" / "project dir"
    made.parent.mkdir(exist_ok=True)
    with open(made.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(made.with_name("running"), ignore_errors=True)
            folder = copy_project(made.with_name("running") / made.name)
            _snakemake(folder, "--configfile", TINY)
            folder.rename(made)
    if not parallel:
        return made
    return shutil.copytree(made, base / "finished" / made.name, symlinks=True, copy_function=shutil.copy2)


@pytest.fixture(scope="session")
def snakemake():
    """Runs Snakemake as a user does: ``snakemake(folder, *arguments, check=True)``."""
    return _snakemake


@pytest.fixture(scope="module")
def module_project(copy_project, tmp_path_factory) -> Callable[[str], Path]:
    """Makes fresh copies of the project for a module's tests, by name."""
    return lambda name: copy_project(tmp_path_factory.mktemp(name) / "project")


@pytest.fixture
def project(copy_project, tmp_path) -> Path:
    """A fresh copy of the project, in which nothing has run."""
    return copy_project(tmp_path / "project")


@pytest.fixture(scope="session")
def patience() -> int:
    """Seconds to wait for what a test started."""
    return PATIENCE


Probe = Callable[..., set[str]]


@pytest.fixture
def needed(finished, monkeypatch) -> Probe:
    """Rules that would run again: ``needed()``, or ``needed(config)`` with another config as plain data.

    ``needed(targets={"train"})`` asks for those alone, as they stand behind ``snakemake``.
    """
    monkeypatch.chdir(finished)

    def probe(config: dict | None = None, configfile: str = TINY, targets: set[str] = frozenset()) -> set[str]:
        from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi
        from snakemake.settings.enums import Quietness

        if config is not None:
            configfile = "tests/config/changed.yaml"
            Path(configfile).write_text(yaml.safe_dump(config))
        with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=ConfigSettings(configfiles=[Path(configfile)]),
                snakefile=Path("Snakefile"),
            )
            workflow.dag(DAGSettings(targets=targets)).execute_workflow(executor="dryrun")
            jobs = workflow._workflow.dag.needrun_jobs(exclude_finished=False)
            return {job.rule.name for job in jobs if not job.rule.norun}

    return probe
