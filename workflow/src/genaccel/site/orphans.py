"""Jobs that a dead Snakemake left in SLURM."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from genaccel.spec import SpecError

GOES_ON = "rule_train_model"
"""A training at work is left alone: the lock on its checkpoints makes its successor wait, and its place on the cluster
may have taken days to get."""

# The executor names all jobs of one Snakemake by a UUID.
_NAME = re.compile(r"(?:genaccel-(?P<study>.+)_|.*_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The folder last: a `|` in what others called their jobs then never makes one of them seem to be from here.
_FORMAT = "%A|%T|%k|%j|%Z"
PATIENCE_S = 300


@dataclass(frozen=True)
class Orphan:
    """A job in the queue: its number, SLURM's word for its state, what the executor says that it is, and its study."""

    job: str
    state: str
    comment: str
    study: str = ""

    @property
    def goes_on(self) -> bool:
        return self.state == "RUNNING" and self.comment.startswith(GOES_ON)

    def __str__(self) -> str:
        return f"{self.job} ({self.comment}, {self.state.lower()})"


def find_orphans() -> list[Orphan]:
    """Jobs in SLURM's queue that a Snakemake submitted from this folder.

    Raises:
        SpecError: SLURM does not say.
    """
    here, found = os.path.realpath("."), []
    for line in _queue(_FORMAT):
        if line.count("|") < 4:
            raise SpecError(f"squeue printed {line!r} where a job was asked for; see what `squeue` is here")
        job, state, comment, rest = line.split("|", 3)
        name, folder = rest.split("|", 1)
        match = _NAME.fullmatch(name)
        if match and comment.startswith("rule_") and os.path.realpath(folder) == here:
            found.append(Orphan(job, state, comment, match["study"] or ""))
    return found


def queued_jobs() -> set[str]:
    """Numbers of all of this user's jobs in SLURM's queue.

    Raises:
        SpecError: SLURM does not say.
    """
    return {line.strip() for line in _queue("%A")}


def name_prefix(study: str) -> str | None:
    """What the names of a study's jobs start with, by which they are told from another's; None where SLURM's executor
    does not take it."""
    prefix = f"genaccel-{study}"
    return prefix if re.fullmatch(r"[A-Za-z0-9_-]{1,50}", prefix) else None


def of_study(orphans: Sequence[Orphan], study: str) -> list[Orphan]:
    """Those of a study, and those that name none. Of the others it says that they stay: nothing submits them again."""
    others = [orphan for orphan in orphans if orphan.study not in ("", study)]
    if others:
        names = ", ".join(f"{orphan} of {orphan.study}" for orphan in others)
        print(f"genaccel: a killed run of another study left SLURM jobs, which go on: {names}", flush=True)
    return [orphan for orphan in orphans if orphan.study in ("", study)]


def _queue(form: str) -> list[str]:
    command = ["squeue", "--noheader", "--all", f"--user={os.getuid()}", f"--format={form}"]
    # A user's own filters would hide jobs.
    env = {name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")}
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        fault = done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired) as error:
        fault = str(error)
    if fault:
        raise SpecError(
            f"SLURM does not say which jobs are in its queue ({fault}); run this where `squeue` works, once it does"
        )
    return done.stdout.splitlines()


def settle(orphans: Sequence[Orphan]) -> None:
    """Cancels what would write the outputs of the jobs that are now submitted again, and waits until it has ended.

    Raises:
        SpecError: a job does not end.
    """
    for orphan in orphans:
        if orphan.goes_on:
            print(
                f"genaccel: SLURM job {orphan} of a killed run goes on; the job that is submitted for it waits until "
                f"it ends (`scancel {orphan.job}` ends it after a checkpoint)",
                flush=True,
            )
    cancelled = {orphan.job for orphan in orphans if not orphan.goes_on}
    if not cancelled:
        return
    names = ", ".join(str(orphan) for orphan in orphans if orphan.job in cancelled)
    print(f"genaccel: a killed run left SLURM jobs, which are submitted again; cancelling {names}", flush=True)
    subprocess.run(["scancel", *sorted(cancelled)], check=False)
    until = time.monotonic() + PATIENCE_S
    while left := [orphan for orphan in find_orphans() if orphan.job in cancelled]:
        if time.monotonic() > until:
            raise SpecError(
                f"SLURM job {left[0]} was cancelled and does not end; run again once squeue shows it no more"
            )
        time.sleep(0.5)
