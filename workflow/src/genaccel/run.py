"""Runs a study with Snakemake: the one command to start it, and the one after any fault."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from genaccel.config.compose import Config, compose
from genaccel.spec import SpecError

DRY = {"-n", "--dry-run", "--dryrun"}


def run_study(config: str, profile: str, cores: str, extra: Sequence[str] = ()) -> int:
    """Runs Snakemake on a study, then renews its report where a figure is newer, and names both.

    Args:
        config: path of the study's config.
        profile: folder of a workflow profile.
        cores: a number, or ``all``.
        extra: further arguments for Snakemake; with targets or a dry run no report is made.

    Returns:
        Snakemake's exit status.
    """
    study = read_config(config).study
    if not Path(profile, "config.yaml").is_file() and not list(Path(profile).glob("config.v*.yaml")):
        there = ", ".join(f"`{p}`" for p in sorted(Path("profiles").glob("*")))
        raise SpecError(f"there is no profile {profile}; there are {there}")
    common = ["--configfile", config, "--workflow-profile", profile, "--cores", cores]
    with _checkout():
        # Under the lock above no other run of ours is alive, so a lock that Snakemake left is a killed run's.
        locks = Path(".snakemake/locks")
        if locks.is_dir() and any(locks.iterdir()):
            print("genaccel: a killed run left its lock; unlocking", flush=True)
            _snakemake([*common, "--unlock", "--quiet"])
        status = _snakemake([*common, "--rerun-incomplete", *extra])
        if status or extra:
            return status
        return _renew_report(study, common)


def read_config(path: str) -> Config:
    """Reads and checks a config file.

    Raises:
        SpecError: it is missing, no YAML, or holds a fault.
    """
    if not Path(path).is_file():
        there = ", ".join(f"`{p}`" for p in sorted(Path("config").glob("*.yaml")))
        raise SpecError(f"there is no config {path}; there are {there}")
    try:
        raw = yaml.safe_load(Path(path).read_text())
    except yaml.YAMLError as error:
        raise SpecError(f"{path} is no YAML: {error}") from None
    if not isinstance(raw, dict):
        raise SpecError(f"{path} holds no settings; start from config/config.yaml")
    return compose(raw)


def _renew_report(study: str, common: Sequence[str]) -> int:
    results = Path("results", study)
    report = results / "report.html"
    figures = sorted(p for p in (results / "figures").iterdir() if p.suffix in (".png", ".svg", ".pdf"))
    if report.is_file() and all(report.stat().st_mtime >= figure.stat().st_mtime for figure in figures):
        return 0
    partial = report.with_name(".partial-report.html")
    status = _snakemake([*common, "--quiet", "--report", str(partial)])
    if status == 0:
        os.replace(partial, report)
        print(f"\nreport: {report}")
        for figure in figures:
            print(f"figure: {figure}")
    return status


def _snakemake(arguments: Sequence[str]) -> int:
    child = subprocess.Popen([sys.executable, "-m", "snakemake", *arguments])
    # Ctrl-C reaches the child by itself; a termination signal reaches only this process.
    before = signal.signal(signal.SIGTERM, lambda number, frame: child.send_signal(number))
    try:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _checkout() -> Iterator[None]:
    """Holds this checkout for one run; the kernel lets go of it even when the run is killed.

    Raises:
        SpecError: another run has it.
    """
    Path(".snakemake").mkdir(exist_ok=True)
    with open(".snakemake/genaccel.lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise SpecError(
                f"another run (process {file.read().strip() or 'unknown'}) is at work in this folder; "
                "wait for it, or clone the project a second time"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
