"""Hardware counters: what Nsight Compute is asked for, and what it means for a kernel and for a step.

Names are those of Nsight Compute on compute capability 7.0 to 9.0; what a device or version lacks is left out. The
reader hands over one plain dict a launch, so that nothing here depends on how a report is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Launch(NamedTuple):
    """One launch of a kernel as Nsight Compute measured it.

    Attributes:
        name: of the kernel, with template arguments.
        counters: Nsight Compute's metrics in base units (ns, bytes, cycles, %).
        rules: its rules' estimated speed-ups, as a share of the kernel's time, by rule.
    """

    name: str
    counters: Mapping[str, float]
    rules: Mapping[str, float]


class Counter(NamedTuple):
    """A number that is recorded of a kernel and of the step.

    Attributes:
        sources: metrics that hold it; the first that was measured counts.
        unit: as recorded.
        scale: from the metric's unit to the recorded one.
        case: what tells it from others of its name.
    """

    sources: tuple[str, ...]
    unit: str
    scale: float = 1.0
    case: tuple[tuple[str, str], ...] = ()


CYCLES = ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
"""Elapsed cycles of a launch: the weight of its rates."""

PIPES = {
    "fma": ("sm__inst_executed_pipe_fma.sum",),
    "alu": ("sm__inst_executed_pipe_alu.sum",),
    "fp16": ("sm__inst_executed_pipe_fp16.sum",),
    "fp64": ("sm__inst_executed_pipe_fp64.sum",),
    "hmma": ("sm__inst_executed_pipe_tensor_op_hmma.sum",),
    "hgmma": ("sm__inst_executed_pipe_tensor_op_gmma.sum",),
    "imma": ("sm__inst_executed_pipe_tensor_op_imma.sum",),
    "tensor": ("sm__inst_executed_pipe_tensor.sum",),
    "lsu": ("sm__inst_executed_pipe_lsu.sum",),
    "tma": ("sm__inst_executed_pipe_tma.sum",),
    "tex": ("sm__inst_executed_pipe_tex.sum",),
    "xu": ("sm__inst_executed_pipe_xu.sum",),
    "adu": ("sm__inst_executed_pipe_adu.sum",),
    "cbu": ("sm__inst_executed_pipe_cbu.sum",),
    "uniform": ("sm__inst_executed_pipe_uniform.sum",),
}
"""Executed instructions by pipe. FFMA runs in ``fma``; ``tensor`` is the tensor pipe as a whole, HMMA, HGMMA and IMMA
its parts where the device tells them apart."""

STALLS = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard"),
    *("math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected"),
    *("short_scoreboard", "sleeping", "tex_throttle", "wait"),
)

SUMS: Mapping[str, tuple[Counter, ...]] = {
    "counter_time": (Counter(("gpu__time_duration.sum",), "s", 1e-9),),
    "cycles_elapsed": (Counter(CYCLES, "cycle"),),
    "cycles_active": (Counter(("sm__cycles_active.avg",), "cycle"),),
    "instructions": (
        Counter(("smsp__inst_executed.sum", "sm__inst_executed.sum"), "inst", case=(("pipe", "all"),)),
        *(Counter(sources, "inst", case=(("pipe", pipe),)) for pipe, sources in PIPES.items()),
    ),
    "bytes": (
        Counter(("dram__bytes.sum",), "B", case=(("memory", "dram"),)),
        Counter(("lts__t_bytes.sum",), "B", case=(("memory", "l2"),)),
        Counter(("l1tex__t_bytes.sum",), "B", case=(("memory", "l1"),)),
    ),
}
"""What is added up over launches."""

PERCENT = 0.01


def _throughput(unit: str) -> tuple[str, ...]:
    return tuple(f"{unit}__throughput.avg.pct_of_peak_sustained_{over}" for over in ("elapsed", "active"))


RATES: Mapping[str, tuple[Counter, ...]] = {
    "ipc": (Counter(("sm__inst_executed.avg.per_cycle_elapsed",), "inst/cycle"),),
    "tensor_pipe_use": (
        Counter(
            (
                "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
            ),
            "1",
            PERCENT,
        ),
    ),
    "sm_throughput": (Counter(_throughput("sm"), "1", PERCENT),),
    "throughput": tuple(
        Counter(_throughput(unit), "1", PERCENT, (("memory", name),))
        for name, unit in (("l1", "l1tex"), ("l2", "lts"), ("dram", "dram"))
    ),
    "hit_rate": (
        Counter(("l1tex__t_sector_hit_rate.pct",), "1", PERCENT, (("memory", "l1"),)),
        Counter(("lts__t_sector_hit_rate.pct",), "1", PERCENT, (("memory", "l2"),)),
    ),
    "achieved_occupancy": (Counter(("sm__warps_active.avg.pct_of_peak_sustained_active",), "1", PERCENT),),
    "warp_stall": tuple(
        Counter(
            (f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio",),
            "cycle/inst",
            case=(("state", stall),),
        )
        for stall in STALLS
    ),
}
"""What is averaged over launches, each weighted by its elapsed cycles."""


class Value(NamedTuple):
    metric: str
    case: dict[str, str]
    unit: str
    value: float


def wanted() -> list[str]:
    """All metrics to ask for."""
    counters = [counter for group in (SUMS, RATES) for found in group.values() for counter in found]
    return list(dict.fromkeys(source for counter in counters for source in counter.sources))


def summarise(launches: Sequence[Launch]) -> list[Value]:
    """Sums, and averages weighted by elapsed cycles, over launches; one launch gives its own values.

    A counter that some launches lack is summed and averaged over the others; one that all lack is left out. A rule
    that says nothing about a launch would save nothing there.
    """
    values = []
    for metric, counters in SUMS.items():
        for counter in counters:
            found = [value for launch in launches if (value := _read(launch, counter)) is not None]
            if found:
                values.append(Value(metric, dict(counter.case), counter.unit, sum(found)))
    for metric, counters in RATES.items():
        for counter in counters:
            pairs = [(value, cycles(la)) for la in launches if (value := _read(la, counter)) is not None]
            if weight := sum(weight for _, weight in pairs):
                average = sum(value * weight for value, weight in pairs) / weight
                values.append(Value(metric, dict(counter.case), counter.unit, average))
    total = sum(map(cycles, launches))
    for rule in sorted({rule for launch in launches for rule in launch.rules}):
        saved = sum(launch.rules.get(rule, 0.0) * cycles(launch) for launch in launches)
        if total:
            values.append(Value("rule_speedup", {"rule": rule}, "1", saved / total))
    return values


def cycles(launch: Launch) -> float:
    """Elapsed cycles of a launch; 0 where they were not measured."""
    return next((launch.counters[name] for name in CYCLES if name in launch.counters), 0.0)


def _read(launch: Launch, counter: Counter) -> float | None:
    value = next((launch.counters[name] for name in counter.sources if name in launch.counters), None)
    return None if value is None else value * counter.scale
