"""What every stage's command line shares: one-line errors and the common arguments."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_REFUSALS = {
    errno.ENOSPC: "; make room there and run again",
    errno.EDQUOT: "; make room within your quota and run again",
    errno.EROFS: "; make it writable, or work in a copy of this folder elsewhere, and run again",
}
"""What to do where a file system takes nothing."""


@contextmanager
def stage_errors(stage: str) -> Iterator[None]:
    """Turns bad input (``ValueError``, missing files) and a file system that takes nothing into ``stage: message`` on
    stderr and exit status 1.

    Anything else is a fault of the program and keeps its traceback.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        remedy = _REFUSALS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
        known = remedy or isinstance(error, ValueError | FileNotFoundError | PermissionError)
        if os.environ.get("GENACCEL_TRACEBACK") or not known:
            raise
        print(
            f"{stage}: {str(error) or repr(error)}{remedy}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr
        )
        sys.stderr.flush()
        sys.exit(1)


class SurvivingStream(io.TextIOBase):
    """A text stream that goes quiet, instead of raising, once nobody reads it any more.

    A signal to a job's whole process group ends the `tee` behind its output first; what is left to do, such
    as writing a checkpoint, must not fail for that.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def stage_parser(stage: str, description: str | None) -> argparse.ArgumentParser:
    """Parser with what every rule passes: ``--spec``, ``--code``, ``--threads``."""
    parser = argparse.ArgumentParser(prog=f"python -m genaccel.{stage}", description=description)
    parser.add_argument("--spec", required=True, help="canonical JSON of the job's settings, as `params.spec` holds it")
    parser.add_argument("--code", default="", help="hash of the code, for the record; `params.code`")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads (default: all that are allowed)")
    return parser


def cpu_threads(asked: int | None) -> int:
    """CPU threads of this job: what SLURM gave, else what was asked for, else what the machine allows.

    Inside a SLURM job Snakemake caps its own ``{threads}`` at the submitting machine's cores, so the
    allocation comes first.
    """
    allotted = os.environ.get("SLURM_CPUS_PER_TASK")
    if allotted:
        return int(allotted)
    return asked or len(os.sched_getaffinity(0))
