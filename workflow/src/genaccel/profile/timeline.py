"""Reads a Chrome trace of torch.profiler: what ran in each step, how long, and when the device had nothing to do."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from genaccel.profile.classes import gradients, kernel_class, operator_class
from genaccel.spec import SpecError

MARK = "genaccel:"
"""Begins the name of the range around a step: ``genaccel:train``."""

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME = ("cuda_runtime", "cuda_driver")
HOST = ("cpu_op", "user_annotation")
BACKWARD = "convolution_backward"

Event = Mapping[str, Any]


class Launch(NamedTuple):
    """One piece of work: a kernel or copy on the device, or the own time of a host operator.

    Attributes:
        name: as the profiler shows it.
        kind: its class.
        start, duration: in microseconds of the trace's clock.
    """

    name: str
    kind: str
    start: float
    duration: float


class Step(NamedTuple):
    """One step of a phase.

    Attributes:
        phase: ``denoise`` or ``train``.
        launches: in order of their start.
        start, end: from the end of the step before to the end of this one on the device, so that a gap between
            steps counts; on the host, of the step's range. In microseconds.
    """

    phase: str
    launches: tuple[Launch, ...]
    start: float
    end: float

    @property
    def gaps(self) -> list[float]:
        """Spans in which nothing ran, in microseconds, whatever stream the work was on."""
        found, busy_until = [], self.start
        for launch in self.launches:
            if launch.start > busy_until:
                found.append(launch.start - busy_until)
            busy_until = max(busy_until, launch.start + launch.duration)
        return found + ([self.end - busy_until] if self.end > busy_until else [])


class _Range(NamedTuple):
    start: float
    end: float
    name: str
    call: int


def device_steps(events: Sequence[Event]) -> list[Step]:
    """The steps of a trace with kernels. The first step of each phase is left out, since no step precedes it.

    A kernel belongs to the step in whose range the host launched it; one whose launch the trace lacks, to the step
    in whose range it ran.

    Raises:
        SpecError: the trace holds no marked range.
    """
    marks = _marks(events)
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in RUNTIME and "correlation" in _args(e)}
    around = _around(_host_ranges(events), calls.values())
    work: dict[int, list[tuple[Event, tuple[_Range, ...]]]] = defaultdict(list)
    for event in sorted((e for e in events if e.get("cat") in DEVICE), key=lambda e: e["ts"]):
        correlation = _args(event).get("correlation")
        number = _mark_at(marks, calls.get(correlation, event)["ts"])
        if number is not None:
            work[number].append((event, around.get(correlation, ())))
    steps, seen, end = [], set(), 0.0
    for number, mark in enumerate(marks):
        launches = tuple(_classified(work[number]))
        start, end = end, max((la.start + la.duration for la in launches), default=mark.end)
        if mark.name in seen:
            steps.append(Step(mark.name, launches, start, end))
        seen.add(mark.name)
    return steps


def host_steps(events: Sequence[Event]) -> list[Step]:
    """The steps of a trace without kernels: the own times of operators, and what lies between them.

    The first step of each phase is left out, as of a device.

    Raises:
        SpecError: the trace holds no marked range.
    """
    marks, seen, steps = _marks(events), set(), []
    owned: dict[int, list[Launch]] = defaultdict(list)
    for ranges in _host_ranges(events).values():
        for own, around in _own_times(ranges):
            number = _mark_at(marks, own.start)
            if number is not None and not own.name.startswith(MARK):
                owned[number].append(own._replace(kind=operator_class(own.name, around)))
    for number, mark in enumerate(marks):
        if mark.name in seen:
            # Own times are pieces: laid end to end they leave free what no operator took.
            launches, place = [], mark.start
            for own in sorted(owned[number], key=lambda own: own.start):
                launches.append(own._replace(start=place))
                place += own.duration
            steps.append(Step(mark.name, tuple(launches), mark.start, max(mark.end, place)))
        seen.add(mark.name)
    return steps


def _classified(work: Iterable[tuple[Event, tuple[_Range, ...]]]) -> Iterator[Launch]:
    work = list(work)
    kinds = [kernel_class(event["name"], tuple(r.name for r in around)) for event, around in work]
    backward: dict[int, list[int]] = defaultdict(list)
    for place, (_, around) in enumerate(work):
        for outer in around:
            if outer.name.endswith(BACKWARD):
                backward[outer.call].append(place)
                break
    for places in backward.values():
        for place, kind in zip(places, gradients([kinds[place] for place in places]), strict=True):
            kinds[place] = kind
    for (event, _), kind in zip(work, kinds, strict=True):
        yield Launch(event["name"], kind, float(event["ts"]), float(event.get("dur", 0)))


def _marks(events: Sequence[Event]) -> list[_Range]:
    found = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith(MARK)]
    if not found:
        raise SpecError(f"the trace holds no range named {MARK}...; it is none of this stage")
    found.sort(key=lambda e: e["ts"])
    return [_Range(e["ts"], e["ts"] + e["dur"], e["name"].removeprefix(MARK), n) for n, e in enumerate(found)]


def _mark_at(marks: Sequence[_Range], time: float) -> int | None:
    number = bisect.bisect_right([mark.start for mark in marks], time) - 1
    return number if number >= 0 and time <= marks[number].end else None


def _host_ranges(events: Sequence[Event]) -> dict[Any, list[_Range]]:
    """Ranges of each thread, outer before inner."""
    threads: dict[Any, list[_Range]] = defaultdict(list)
    for number, event in enumerate(events):
        if event.get("cat") in HOST and "dur" in event:
            threads[event["tid"]].append(_Range(event["ts"], event["ts"] + event["dur"], event["name"], number))
    return {tid: sorted(ranges, key=lambda r: (r.start, -r.end)) for tid, ranges in threads.items()}


def _around(hosts: Mapping[Any, list[_Range]], calls: Iterable[Event]) -> dict[int, tuple[_Range, ...]]:
    """For each launch, by its correlation, the ranges of its thread that hold it, from outside in."""
    threads: dict[Any, list[Event]] = defaultdict(list)
    for call in calls:
        threads[call["tid"]].append(call)
    found = {}
    for tid, launches in threads.items():
        waiting, stack = list(reversed(hosts.get(tid, []))), []
        for call in sorted(launches, key=lambda call: call["ts"]):
            while waiting and waiting[-1].start <= call["ts"]:
                stack = [outer for outer in stack if outer.end > waiting[-1].start]
                stack.append(waiting.pop())
            stack = [outer for outer in stack if outer.end >= call["ts"]]
            found[call["args"]["correlation"]] = tuple(stack)
    return found


def _own_times(ranges: Sequence[_Range]) -> Iterator[tuple[Launch, tuple[str, ...]]]:
    """Each range's time less that of the ranges within it, with the names around it."""
    inner = [0.0] * len(ranges)
    around: list[tuple[str, ...]] = []
    stack: list[int] = []
    for number, this in enumerate(ranges):
        while stack and ranges[stack[-1]].end <= this.start:
            stack.pop()
        if stack:
            inner[stack[-1]] += this.end - this.start
        around.append(tuple(ranges[outer].name for outer in stack))
        stack.append(number)
    for this, within, names in zip(ranges, inner, around, strict=True):
        yield Launch(this.name, "", this.start, max(this.end - this.start - within, 0.0)), names


def _args(event: Event) -> Mapping[str, Any]:
    return event.get("args") or {}
