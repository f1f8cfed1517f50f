"""Prepares all subjects, on several processes where that pays."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from genaccel.data.faults import InputFault
from genaccel.data.manifest import Subject
from genaccel.data.prepare import prepare_subject
from genaccel.data.samples import Sample
from genaccel.data.spec import DataSpec
from genaccel.data.split import Split

Task = tuple[Sample, Split, DataSpec, Path, str]
"""The arguments of ``prepare_subject``."""

# A process takes about as long to start as it takes to prepare this much.
BYTES_A_PROCESS = 8 * 2**20


def prepare_all(tasks: Sequence[Task], processes: int) -> tuple[list[Subject], dict[str, InputFault]]:
    """Prepares every subject; the number of processes changes nothing.

    Returns:
        The subjects, sorted by name, and the faults of those that cannot be used, by name.

    Raises:
        Whatever else goes wrong, such as a full disk: no fault of a subject, and noted whose turn it was.
    """
    subjects: list[Subject] = []
    faults: dict[str, InputFault] = {}
    with tqdm(total=len(tasks), desc="data", unit="subject") as progress:
        for name, outcome in _outcomes(tasks, min(processes, len(tasks), 1 + _bytes(tasks) // BYTES_A_PROCESS)):
            if isinstance(outcome, InputFault):
                faults[name] = outcome
            else:
                subjects.append(outcome)
            progress.update()
    return sorted(subjects, key=lambda subject: subject.subject), faults


def _bytes(tasks: Sequence[Task]) -> int:
    return sum(path.stat().st_size for sample, *_ in tasks for path in sample.files.values() if path.is_file())


def _outcomes(tasks: Sequence[Task], processes: int) -> Iterator[tuple[str, Subject | InputFault]]:
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


def _attempt(task: Task) -> tuple[str, Subject | InputFault]:
    name = task[0].subject
    try:
        return name, prepare_subject(*task)
    except InputFault as fault:
        return name, fault
    except Exception as error:
        error.add_note(f"data: this happened while subject {name} was prepared")
        raise
