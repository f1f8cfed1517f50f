"""Which Snakemakes work in this folder, on any of the machines that share it.

Snakemake's own lock names no machine, and a process can only be looked for on this one.
"""

from __future__ import annotations

import atexit
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from genaccel.spec import SpecError

PLACE = Path(".snakemake/genaccel-at-work")
"""A file for each, `<machine>-<process>`, which goes when it ends and stays when it is killed or its machine dies."""
# The SLURM executor takes it out of the environment before Snakemake's hooks run.
_JOB = os.environ.get("SLURM_JOB_ID", "")
_held: list[IO[str]] = []


def announce() -> None:
    """Says that this process works here, until it ends."""
    path = (PLACE / f"{os.uname().nodename}-{os.getpid()}").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "w")  # noqa: SIM115  open, and so locked, as long as the process lives
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    file.write(_JOB)
    file.flush()
    _held.append(file)
    atexit.register(path.unlink, missing_ok=True)


def check_alone(queued: Callable[[], set[str]]) -> None:
    """Refuses to go on where a Snakemake works here, or may do so on a machine that this one cannot look into.

    Args:
        queued: numbers of this user's jobs in SLURM's queue: Snakemake itself may run in one.

    Raises:
        SpecError: naming the machine.
    """
    for path in sorted(PLACE.glob("*-*")):
        host, _, process = path.name.rpartition("-")
        if _has_ended(path, host, process, queued):
            path.unlink(missing_ok=True)
            continue
        raise SpecError(
            f"Snakemake (process {process} on {host}) works in this folder, or died there without a word. Wait for it, "
            f"or end it there; if it is gone, run this on {host}, or `rm {path}` and run again"
        )


def _has_ended(path: Path, host: str, process: str, queued: Callable[[], set[str]]) -> bool:
    here = host == os.uname().nodename
    try:
        file = open(path, "r+")  # noqa: SIM115
    except FileNotFoundError:
        return True
    except PermissionError:
        # A colleague's.
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # The file system keeps no locks.
            if here:
                return not Path("/proc", process).exists()
        # A lock that could be had proves nothing about other machines: many file systems keep each machine's apart.
        if here:
            return True
        job, owner = file.read().strip(), os.fstat(file.fileno()).st_uid
    if not job or owner != os.getuid():
        return False
    try:
        return job not in queued()
    except SpecError:
        return False
