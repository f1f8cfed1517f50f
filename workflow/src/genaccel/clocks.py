"""Files dated in the future, which another machine's clock left."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from genaccel.spec import SpecError

TOLERANCE_S = 60
"""A job that takes this long ends later than what it was made from is dated."""


def check_dates(jobs: Iterable[Any]) -> None:
    """Refuses inputs from the future: after all its work, Snakemake throws a job's outputs away that are older.

    Args:
        jobs: Snakemake's, those that are about to run.

    Raises:
        SpecError: naming the latest.
    """
    now, jobs = time.time(), list(jobs)
    # What is made again is dated anew.
    made = {path for job in jobs for path in job.output}
    inputs = {path for job in jobs if not job.rule.norun for path in job.input}
    late = {path: date for path in inputs - made if (date := _date(path)) > now + TOLERANCE_S}
    if late:
        latest = max(late, key=lambda path: late[path])
        raise SpecError(
            f"{latest} is dated {_shown(late[latest])}, and here it is {_shown(now)}"
            + (f" ({len(late) - 1} more files are of the future)" if len(late) > 1 else "")
            + ". Set the clock that is wrong, then date such files now: find results -newermt now -exec touch {} +"
        )


def _date(path: str) -> float:
    # As Snakemake dates a folder.
    stamp = os.path.join(path, ".snakemake_timestamp")
    try:
        return os.stat(stamp if os.path.isdir(path) and os.path.exists(stamp) else path).st_mtime
    except FileNotFoundError:
        return 0


def _shown(date: float) -> str:
    return datetime.fromtimestamp(date).isoformat(" ", "seconds")
