"""Draws hardware counters before and after: each variant against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from genaccel.command import stage_errors
from genaccel.figures.bars import empty_figure, panels
from genaccel.figures.profiled import counted, of_step, read_profile, variants_of, why_no_counters, with_times
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MUTED, colour, figure_parser, save, theme

NAME = "Counters against"

BASELINE = "fp32_strict"

COUNTERS = {
    "time in kernels": ("counter_time", "", True),
    "elapsed cycles": ("cycles_elapsed", "", True),
    "instructions": ("instructions", "all", True),
    "FMA instructions": ("instructions", "fma", True),
    "tensor instructions": ("instructions", "tensor", True),
    "DRAM bytes": ("bytes", "dram", True),
    "L2 bytes": ("bytes", "l2", True),
    "L1 bytes": ("bytes", "l1", True),
    "instructions a cycle": ("ipc", "", False),
    "tensor pipe use": ("tensor_pipe_use", "", False),
    "achieved occupancy": ("achieved_occupancy", "", False),
}
"""Metric, pipe or memory, and whether it is a count, of each line."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("counters_change", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `profile` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.counters_change"):
        job = FigureJob.parse(args.spec)
        rows = read_profile(args.table)
        with theme():
            save(counters_change(rows, job), args.out, job.figures)


def counters_change(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """Each variant's counters over the baseline's, on a logarithmic axis; 1 is no change.

    The baseline is strict FP32 where it was profiled, else the slowest variant. Counts are scaled to the whole step by
    the share of its kernel time that was measured.
    """
    shown = pandas.concat([of_step(rows, metric) for metric in {metric for metric, _, _ in COUNTERS.values()}])
    if shown.empty:
        return empty_figure(f"{NAME} a baseline", job, why_no_counters(rows))
    order = variants_of(with_times(rows, shown))
    baseline = BASELINE if BASELINE in order else order[0]
    others = [name for name in order if name != baseline]
    if not others:
        return empty_figure(f"{NAME} {baseline}", job, f"only {baseline} was; profile another variant beside it")
    legend = {name: colour(place) for place, name in enumerate(others)}
    notes = [counted(rows), "Counts are scaled to the whole step by the share of kernel time that was measured."]

    def draw(axes: Axes, panel: pandas.DataFrame, variants: Sequence[str]) -> None:
        before = _values(panel, baseline)
        for place, name in enumerate(others):
            ratios = _values(panel, name) / before
            for line, ratio in enumerate(ratios):
                if ratio > 0:
                    middle = line + (place - (len(others) - 1) / 2) * 0.8 / len(others)
                    axes.plot([1, ratio], [middle, middle], color=legend[name], linewidth=1.2)
                    axes.plot([ratio], [middle], "o", color=legend[name], markersize=4.5)
                    side = {"ha": "left", "xytext": (5, 0)} if ratio >= 1 else {"ha": "right", "xytext": (-5, 0)}
                    text = {"textcoords": "offset points", "fontsize": 6.5, "va": "center", "color": MUTED}
                    axes.annotate(f"{ratio:.2g}", (ratio, middle), **side, **text)
        axes.set_xscale("log")
        axes.axvline(1, color="#333333", linewidth=0.8)
        axes.margins(x=0.2)
        axes.set_yticks(range(len(COUNTERS)), list(COUNTERS), fontsize=8)
        axes.set_ylim(len(COUNTERS) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(f"times {baseline}", fontsize=8)

    lines = max(len(COUNTERS), len(COUNTERS) * len(others) // 2)
    return panels(with_times(rows, shown), f"{NAME} {baseline}", job, draw, legend, notes, lambda group: lines)


def _values(rows: pandas.DataFrame, variant: str) -> pandas.Series:
    """The counters of a variant's step; NaN where it has none."""
    mine = rows[rows["variant"] == variant]
    share = of_step(mine, "counter_coverage")["value"]
    values = {}
    for label, (metric, key, is_count) in COUNTERS.items():
        found = of_step(mine, metric)
        found = found[(found["pipe"] + found["memory"]) == key]["value"]
        scale = share.iloc[0] if is_count and len(share) else 1.0
        values[label] = found.iloc[0] / scale if len(found) and scale else float("nan")
    return pandas.Series(values)


if __name__ == "__main__":
    main()
