"""Runs a study with Snakemake: the one command to start it, and the one after any fault."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from genaccel.atomic import NO_LOCKS
from genaccel.config.compose import compose
from genaccel.config.reading import read_yaml
from genaccel.site.accounting import keeps_accounts
from genaccel.site.at_work import check_alone
from genaccel.site.orphans import find_orphans, name_prefix, of_study, queued_jobs, settle
from genaccel.spec import SpecError

LOOKS = (
    "--dry-run", "--dryrun", "--help", "--version", "--dag", "--rulegraph", "--filegraph", "--d3dag", "--summary",
    "--detailed-summary", "--lint", "--list-rules", "--list-target-rules", "--lt", "--list-changes", "--lc",
    "--list-input-changes", "--li", "--list-params-changes", "--lp", "--list-untracked", "--lu", "--list-conda-envs",
    "--print-compilation", "--report", "--unlock", "--touch", "--cleanup-metadata", "--cm", "--cleanup-shadow",
    "--conda-cleanup-envs", "--conda-create-envs-only", "--container-cleanup-images", "--containerize", "--archive",
    "--delete-all-output", "--delete-temp-output", "--generate-unit-tests",
)  # fmt: skip
"""Arguments with which Snakemake submits no job, so that none may be cancelled for its successor."""
_SHORT_LOOKS = re.compile(r"-[A-Za-z]*[nhvSDlt][A-Za-z]*")
SNAKEMAKE = (sys.executable, "-m", "snakemake")


def run_study(config: str, profile: str, cores: str, extra: Sequence[str] = ()) -> int:
    """Runs Snakemake on a study, then renews its report where a figure is newer, and names both.

    Args:
        config: path of the study's config.
        profile: folder of a workflow profile.
        cores: a number, ``all``, or "" for what the profile says.
        extra: further arguments for Snakemake; with targets or a dry run no report is made.

    Returns:
        Snakemake's exit status.
    """
    study = compose(read_yaml(config)).study
    settings = read_profile(profile)
    submits = settings.get("executor") == "slurm"
    # Where jobs are submitted, a number of cores would cap the threads of each.
    common = ["--configfile", config, "--workflow-profile", profile, *(["--cores", cores] if cores else [])]
    dry = any(map(_looks, extra))
    prefix = name_prefix(study) if submits and not settings.get("slurm-jobname-prefix") else None
    named = ["--slurm-jobname-prefix", prefix] if prefix else []
    if submits and "slurm-status-command" not in settings and not dry and not keeps_accounts():
        print("genaccel: this SLURM keeps no accounts; asking squeue how jobs ended", flush=True)
        named += ["--slurm-status-command", "squeue"]
    with _checkout() as lock:
        if not dry:
            # Snakemake says it in several ways, some of them tracebacks.
            for folder in ("results", "logs"):
                _check_writable(Path(folder, study))
        locks = Path(".snakemake/locks")
        locked = locks.is_dir() and any(locks.iterdir())
        orphans = find_orphans() if submits and not dry else []
        if (locked or orphans) and (other := _living_snakemake()) is not None:
            raise SpecError(f"Snakemake (process {other}) is at work in this folder; wait for it, or end it")
        if locked or orphans:
            check_alone(queued_jobs)
        if locked:
            print("genaccel: a killed run left its lock; unlocking", flush=True)
            _snakemake([*common, "--unlock", "--quiet"], lock)
        settle(of_study(orphans, study))
        status = _snakemake([*common, *named, "--rerun-incomplete", *extra], lock)
        if status or extra:
            return status
        return _renew_report(study, common, lock)


def _looks(word: str) -> bool:
    """Whether an argument, perhaps shortened (``--dry``) or among others (``-np``), makes Snakemake submit nothing."""
    if not word.startswith("--"):
        return bool(_SHORT_LOOKS.fullmatch(word))
    option = word.partition("=")[0]
    return option != "--" and any(look.startswith(option) for look in LOOKS)


MAPS = {
    "groups": (str, "a group"),
    "group-components": (int | str, "a number"),
    "set-threads": (int | str, "a number"),
    "set-resources": (dict, "a map such as {runtime: 60}"),
}
"""Keys of a profile that hold a map, and of what: others Snakemake meets with its usage or a traceback."""


def read_profile(profile: str) -> dict[str, Any]:
    """A profile's settings.

    Raises:
        SpecError: there is none, or a map in it is none.
    """
    path = find_profile(profile)
    settings = read_yaml(path)
    for key, (kind, needed) in MAPS.items():
        named = settings.get(key)
        if named is None:
            continue
        if not isinstance(named, dict) or not named:
            raise SpecError(f"{path}: {key}: {named!r} is empty or no map; write lines `name: value`, or take it out")
        for name, value in named.items():
            if isinstance(value, bool) or not isinstance(value, kind) or value in ("", {}):
                raise SpecError(f"{path}: {key}.{name}: {value!r} where {needed} belongs")
    return settings


def find_profile(profile: str) -> Path:
    """The file of a profile.

    Raises:
        SpecError: there is none.
    """
    for path in (Path(profile, "config.yaml"), *sorted(Path(profile).glob("config.v*.yaml"))):
        if path.is_file():
            return path
    there = ", ".join(f"`{p}`" for p in sorted(Path("profiles").glob("*/")))
    raise SpecError(f"there is no profile {profile}; there are {there}")


def _check_writable(folder: Path) -> None:
    """Writes something where a folder is or will be.

    Raises:
        OSError: naming the folder.
    """
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def _renew_report(study: str, common: Sequence[str], lock: int) -> int:
    results = Path("results", study)
    report = results / "report.html"
    figures = sorted(p for p in (results / "figures").iterdir() if p.suffix in (".png", ".svg", ".pdf"))
    if report.is_file() and all(report.stat().st_mtime >= figure.stat().st_mtime for figure in figures):
        return 0
    partial = report.with_name(".partial-report.html")
    status = _snakemake([*common, "--quiet", "--report", str(partial)], lock)
    if status == 0:
        os.replace(partial, report)
        print(f"\nreport: {report}")
        for figure in figures:
            print(f"figure: {figure}")
    return status


def _living_snakemake() -> int | None:
    """A Snakemake of this machine that works in this folder, started by whomever."""
    here = os.getcwd()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            there = os.readlink(f"/proc/{entry}/cwd")
        except OSError:
            continue
        starts = {os.path.basename(word) for word in words[:3]}
        # One that carries out a single job (`--mode`) is the job's, which outlives the Snakemake that submitted it.
        works = b"snakemake" in starts and not any(word.startswith(b"--mode") for word in words)
        if there == here and works and int(entry) != os.getpid():
            return int(entry)
    return None


def _snakemake(arguments: Sequence[str], lock: int) -> int:
    # With the lock in the child's hands too, it lasts as long as Snakemake does, even if this process is killed.
    child = subprocess.Popen([*SNAKEMAKE, *arguments], pass_fds=(lock,))
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
def _checkout() -> Iterator[int]:
    """Holds this checkout for one run and yields the lock's descriptor.

    The kernel lets go of it once this process and its Snakemake have ended, however they end.

    Raises:
        SpecError: another run has it.
    """
    Path(".snakemake").mkdir(exist_ok=True)
    with open(".snakemake/genaccel.lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise SpecError(
                f"another run (process {file.read().strip() or 'unknown'}) is at work in this folder; "
                "wait for it (told to end, it lets its running jobs finish first), or clone the project a second time"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            print("genaccel: this file system keeps no locks: see to it that one run at a time works here", flush=True)
        file.truncate(0)
        file.write(f"{os.getpid()} on {os.uname().nodename}\n")
        file.flush()
        yield file.fileno()
