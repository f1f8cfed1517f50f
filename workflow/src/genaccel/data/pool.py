"""Prepares all subjects, on several processes where that pays."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from genaccel.data.faults import InputFault, lines
from genaccel.data.manifest import Subject
from genaccel.data.prepare import prepare_subject
from genaccel.data.samples import Sample
from genaccel.data.spec import DataSpec
from genaccel.data.split import Split

Task = tuple[Sample, Split, DataSpec, Path, str]
"""The arguments of ``prepare_subject``."""

# A process takes about as long to start as it takes to prepare this much.
BYTES_A_PROCESS = 8 * 2**20


def prepare_all(tasks: Sequence[Task], processes: int) -> list[Subject]:
    """Prepares every subject and returns them sorted by name; the number of processes changes nothing else.

    Raises:
        InputFault: naming all subjects that cannot be used, since finding them one run at a time is dear.
    """
    subjects, faults = [], []
    with tqdm(total=len(tasks), desc="data", unit="subject") as progress:
        for outcome in _outcomes(tasks, min(processes, len(tasks), 1 + _bytes(tasks) // BYTES_A_PROCESS)):
            (faults if isinstance(outcome, InputFault) else subjects).append(outcome)
            progress.update()
    if len(faults) == 1:
        raise faults[0]
    if faults:
        shown = lines(sorted(map(str, faults)))
        raise InputFault(
            "\n      ".join([f"{len(faults)} of {len(tasks)} subjects cannot be used:", *shown]),
            "Mend these files, or take the subjects out of the sample table.",
        )
    return sorted(subjects, key=lambda subject: subject.subject)


def _bytes(tasks: Sequence[Task]) -> int:
    return sum(path.stat().st_size for sample, *_ in tasks for path in (sample.mask, *sample.images.values()))


def _outcomes(tasks: Sequence[Task], processes: int) -> Iterator[Subject | InputFault]:
    if processes == 1:
        yield from map(_attempt, tasks)
        return
    # spawn: forking a process that already runs threads can hang the child.
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(_attempt, task) for task in tasks]):
            yield future.result()
    except BrokenProcessPool:
        raise RuntimeError("data: a worker was killed, most likely for memory; use fewer --threads") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _attempt(task: Task) -> Subject | InputFault:
    try:
        return prepare_subject(*task)
    except InputFault as fault:
        return fault
