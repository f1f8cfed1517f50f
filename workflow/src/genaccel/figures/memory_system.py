"""Draws how a step uses the memories: throughput of their peak, and hit rates of the caches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genaccel.command import stage_errors
from genaccel.figures.bars import empty_figure, grouped, panels
from genaccel.figures.profiled import counted, of_step, read_profile, variants_of, why_no_counters, with_times
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import colour, figure_parser, save, theme

NAME = "Memory system"

QUANTITIES = {
    "DRAM throughput": ("throughput", "dram"),
    "L2 throughput": ("throughput", "l2"),
    "L1 throughput": ("throughput", "l1"),
    "L2 hit rate": ("hit_rate", "l2"),
    "L1 hit rate": ("hit_rate", "l1"),
}
"""Metric and memory of each group."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("memory_system", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `profile` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.memory_system"):
        job = FigureJob.parse(args.spec)
        rows = read_profile(args.table)
        with theme():
            save(memory_system(rows, job), args.out, job.figures)


def memory_system(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """A group of bars a quantity, a bar a variant; averages over the measured kernels, weighted by elapsed cycles."""
    shown = pandas.concat([of_step(rows, metric) for metric in ("throughput", "hit_rate")])
    if shown.empty:
        return empty_figure(NAME, job, why_no_counters(rows))
    order = variants_of(with_times(rows, shown))
    legend = {name: colour(place) for place, name in enumerate(order)}
    notes = [counted(rows), "Averages over kernels, weighted by elapsed cycles."]
    lines = len(QUANTITIES) * max(len(order), 2) // 2 + 1

    def draw(axes: Axes, panel: pandas.DataFrame, variants: Sequence[str]) -> None:
        table = pandas.DataFrame(index=list(QUANTITIES), columns=list(order), dtype=float)
        for label, (metric, memory) in QUANTITIES.items():
            found = of_step(panel, metric)
            for row in found[found["memory"] == memory].itertuples():
                table.loc[label, row.variant] = row.value * 100
        grouped(axes, table.dropna(axis=1, how="all"), legend, lambda value: f"{value:.0f} %")
        axes.set_xlim(0, 112)
        axes.set_xlabel("%", fontsize=8)

    return panels(with_times(rows, shown), NAME, job, draw, legend, notes, lambda group: lines)


if __name__ == "__main__":
    main()
