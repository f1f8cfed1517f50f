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
_NAME = re.compile(r"(.*_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FORMAT = "%A|%T|%j|%Z|%k"
PATIENCE_S = 300


@dataclass(frozen=True)
class Orphan:
    """A job in the queue: its number, SLURM's word for its state, and what the executor says that it is."""

    job: str
    state: str
    comment: str

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
    command = ["squeue", "--noheader", f"--user={os.getuid()}", f"--format={_FORMAT}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        fault = done.stderr.strip() if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        fault = str(error)
    if fault:
        raise SpecError(
            f"SLURM does not say which jobs are in its queue ({fault}); run this where `squeue` works, once it does"
        )
    here, found = os.path.realpath("."), []
    for line in done.stdout.splitlines():
        job, state, name, folder, comment = line.split("|", 4)
        if _NAME.fullmatch(name) and os.path.realpath(folder) == here:
            found.append(Orphan(job, state, comment))
    return found


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
