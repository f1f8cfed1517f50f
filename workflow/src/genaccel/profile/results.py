"""From steps and counters to the results of a run.

Every ``case`` has ``size`` (``128`` or ``192x192x144``), ``batch`` and ``phase`` (``denoise``, ``train``).

Of the trace, with a value a step (``of=kernels``, or ``of=operators`` on a CPU, where the profiler sees those alone):

``profiled_step_time`` (s)
    A step under the profiler: only for shares, never a speed.
``class_time`` (s), ``class_count`` (1), ``class_mean_time`` (s); case ``class``
    Time, number and mean duration of the launches of a class; of ``idle`` of the gaps between launches. Classes without
    a launch have no row.
``kernel_time`` (s), ``kernel_count`` (1); case ``class``, ``kernel``
    The kernels with most time.

Of Nsight Compute, with one value each (``kernel=step``: all measured launches together, else those of one of the
kernels with most cycles, with its ``class``, where they are not 0):

``counter_time`` (s), ``cycles_elapsed``, ``cycles_active`` (cycle), ``instructions`` (inst; case ``pipe``), ``bytes``
(B; case ``memory``)
    Sums over launches.
``ipc`` (inst/cycle), ``tensor_pipe_use``, ``achieved_occupancy`` (1), ``sm_throughput``, ``throughput`` (1 of the peak;
case ``memory``), ``hit_rate`` (1; case ``memory``), ``warp_stall`` (cycle/inst; case ``state``)
    Averages over launches, weighted by elapsed cycles.
``rule_speedup`` (1; case ``rule``)
    What a rule of Nsight Compute expects of removing its bottleneck, as a share of the time, weighted like a rate.
``counter_coverage`` (1), ``counter_launches`` (1)
    Share of the step's kernel time that the measured launches take in the trace, and their number.

A phase that does not fit the device has ``profiled_step_time`` with status ``oom``; where Nsight Compute is not here or
may not measure, ``counter_time`` of ``kernel=step`` is ``unsupported`` with the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from genaccel.measurement import Result
from genaccel.profile.classes import CLASSES, function_name, kernel_class
from genaccel.profile.counters import Launch as Counted
from genaccel.profile.counters import cycles, summarise
from genaccel.profile.timeline import Step

Case = dict[str, str | int | float]

KERNELS = 20
"""Kernels of a step that have rows of their own in the trace."""

COUNTED = 10
"""Kernels of a step that have rows of their own among the counters: those with most cycles."""

NAME_LENGTH = 160
SECONDS = 1e-6


def base_case(size: Sequence[int], batch: int, phase: str) -> Case:
    sides = set(size)
    return {"size": str(size[0]) if len(sides) == 1 else "x".join(map(str, size)), "batch": batch, "phase": phase}


def trace_results(steps: Sequence[Step], of: str, case: Case) -> list[Result]:
    """Time by class and by kernel, a value a step."""
    case = case | {"of": of}
    results = [_result("profiled_step_time", "s", case, [(step.end - step.start) * SECONDS for step in steps])]
    for kind in CLASSES:
        per_step = [_durations(step, kind) for step in steps]
        if any(per_step):
            results += _time_count_mean(per_step, case | {"class": kind})
    for (name, kind), _ in _most(steps):
        per_step = [
            [la.duration for la in step.launches if (label(la.name), la.kind) == (name, kind)] for step in steps
        ]
        cell = case | {"class": kind, "kernel": name}
        results.append(_result("kernel_time", "s", cell, [sum(found) * SECONDS for found in per_step]))
        results.append(_result("kernel_count", "1", cell, [len(found) for found in per_step]))
    return results


def counter_results(launches: Sequence[Counted], step: Step, case: Case) -> list[Result]:
    """Counters of each kernel and of all measured launches together.

    Args:
        launches: in the order in which they ran.
        step: of the trace, which knows the class of each launch and the time of all.
    """
    kinds = counted_classes(launches, step)
    groups: dict[tuple[str, str], list[Counted]] = defaultdict(list)
    for launch, kind in zip(launches, kinds, strict=True):
        groups[function_name(launch.name), kind].append(launch)
    results = list(_counters(launches, case | {"kernel": "step"}))
    most = sorted(groups.items(), key=lambda group: -sum(map(cycles, group[1])))
    for (function, kind), found in most[:COUNTED]:
        # What a kernel never does, such as instructions of most pipes, has no row.
        cell = case | {"kernel": label(function), "class": kind}
        results += [result for result in _counters(found, cell) if result.values != (0.0,)]
    results.append(_result("counter_coverage", "1", case | {"kernel": "step"}, [coverage(launches, step)]))
    results.append(_result("counter_launches", "1", case | {"kernel": "step"}, [len(launches)]))
    return results


def counted_classes(launches: Sequence[Counted], step: Step) -> list[str]:
    """The class of each measured launch: that of the same launch of its kernel in the trace, else by its name."""
    known: dict[str, list[str]] = defaultdict(list)
    for launch in step.launches:
        known[function_name(launch.name)].append(launch.kind)
    seen: Counter[str] = Counter()
    kinds = []
    for launch in launches:
        function = function_name(launch.name)
        place = seen[function]
        seen[function] += 1
        there = known[function]
        kinds.append(there[place] if place < len(there) else kernel_class(launch.name))
    return kinds


def coverage(launches: Sequence[Counted], step: Step) -> float:
    """Share of the step's kernel time that as many launches of the same kernels take in the trace."""
    left = Counter(function_name(launch.name) for launch in launches)
    covered = 0.0
    for launch in step.launches:
        function = function_name(launch.name)
        if left[function]:
            left[function] -= 1
            covered += launch.duration
    total = sum(launch.duration for launch in step.launches)
    return covered / total if total else 0.0


def choose(step: Step, share: float, launches: int) -> list[str]:
    """Functions to measure: those with most time, until their share is reached or their launches are too many.

    One whose launches alone are too many is still taken when it comes first.
    """
    time: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for launch in step.launches:
        # Copies and fills of the driver are no kernels, and Nsight Compute does not see them.
        if not launch.name.startswith(("Mem", "[CUDA")):
            time[function_name(launch.name)] += launch.duration
            number[function_name(launch.name)] += 1
    total, chosen, covered, taken = sum(time.values()), [], 0.0, 0
    for function, duration in time.most_common():
        if chosen and (covered >= share * total or taken >= launches):
            break
        if chosen and taken + number[function] > launches:
            continue
        chosen.append(function)
        covered, taken = covered + duration, taken + number[function]
    return chosen


def label(name: str) -> str:
    """A kernel's name as a case holds it: without the signs that separate a case's parts, and not endless."""
    return name.replace(";", ",").replace("=", ":").removeprefix("void ")[:NAME_LENGTH]


def names_table(steps: Mapping[str, Sequence[Step]]) -> str:
    """All kernels of all phases, TSV: phase, class, launches and milliseconds a step, name."""
    lines = ["phase\tclass\tcount\tms\tname"]
    for phase, found in steps.items():
        time: Counter[tuple[str, str]] = Counter()
        number: Counter[tuple[str, str]] = Counter()
        for launch in (launch for step in found for launch in step.launches):
            time[launch.kind, launch.name] += launch.duration
            number[launch.kind, launch.name] += 1
        for (kind, name), duration in time.most_common():
            count = number[kind, name] / len(found)
            lines.append(f"{phase}\t{kind}\t{count:g}\t{duration / len(found) / 1000:.4f}\t{name}")
    return "\n".join(lines) + "\n"


def missing(metric: str, unit: str, case: Case, reason: str, status: str = "unsupported") -> Result:
    """A result without a value."""
    return Result(metric=metric, unit=unit, case=case, status=status, reason=reason)


def _durations(step: Step, kind: str) -> list[float]:
    return step.gaps if kind == "idle" else [launch.duration for launch in step.launches if launch.kind == kind]


def _time_count_mean(per_step: Sequence[Sequence[float]], case: Case) -> Iterator[Result]:
    kinds: dict[str, tuple[str, Callable[[Sequence[float]], float]]] = {
        "class_time": ("s", lambda found: sum(found) * SECONDS),
        "class_count": ("1", len),
        "class_mean_time": ("s", lambda found: sum(found) / len(found) * SECONDS if found else 0.0),
    }
    for metric, (unit, value) in kinds.items():
        yield _result(metric, unit, case, [value(found) for found in per_step])


def _most(steps: Sequence[Step]) -> list[tuple[tuple[str, str], float]]:
    time: Counter[tuple[str, str]] = Counter()
    for launch in (launch for step in steps for launch in step.launches):
        time[label(launch.name), launch.kind] += launch.duration
    return time.most_common(KERNELS)


def _counters(launches: Sequence[Counted], case: Case) -> Iterator[Result]:
    for value in summarise(launches):
        yield _result(value.metric, value.unit, case | value.case, [value.value])


def _result(metric: str, unit: str, case: Case, values: Sequence[float]) -> Result:
    return Result(metric=metric, unit=unit, case=case, values=tuple(map(float, values)))
