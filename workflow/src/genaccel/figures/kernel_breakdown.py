"""Draws where the time of a step goes: a bar a variant, its time by class of kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genaccel.command import stage_errors
from genaccel.figures.bars import empty_figure, panels, stacked
from genaccel.figures.numbers import decimals, number
from genaccel.figures.profiled import read_profile
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import figure_parser, save, theme

NAME = "Where a step's time goes"

CLASSES = {
    "convolution_forward": ("convolution, forward", "#0072B2"),
    "data_gradient": ("convolution, data gradient", "#56B4E9"),
    "weight_gradient": ("convolution, weight gradient", "#004A75"),
    "implicit_gemm": ("convolution, direction unknown", "#8FB8D0"),
    "gemm": ("matrix product", "#009E73"),
    "attention": ("attention", "#7FCFB6"),
    "normalisation": ("normalisation", "#D55E00"),
    "layout_transform": ("layout transform", "#E69F00"),
    "copy": ("copy", "#F0C979"),
    "elementwise": ("elementwise", "#CC79A7"),
    "reduction": ("reduction", "#8C4B73"),
    "optimizer": ("optimizer", "#F0E442"),
    "other": ("other", "#777777"),
    "idle": ("idle", "#DDDDDD"),
}
"""Name and colour of each class, in the order of a bar: families of work share a hue."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("kernel_breakdown", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `profile` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.kernel_breakdown"):
        job = FigureJob.parse(args.spec)
        rows = read_profile(args.table)
        with theme():
            save(kernel_breakdown(rows, job), args.out, job.figures)


def kernel_breakdown(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """Medians over the traced steps, in ms, with the number of kernels at the end of each bar."""
    timed = rows[rows["metric"] == "profiled_step_time"]
    if (timed["status"] != "ok").all():
        return empty_figure(NAME, job, "; ".join(timed["reason"].unique()))
    shown = rows[rows["metric"].isin(["profiled_step_time", "class_time", "class_count"])]
    found = [kind for kind in CLASSES if (shown["class"] == kind).any()]
    legend = {CLASSES[kind][0]: CLASSES[kind][1] for kind in found}
    notes = [
        "Medians over the steps of a trace. The profiler slows launches down: these are shares of time, not speeds."
    ]
    if (rows["of"] == "operators").any():
        notes.append("On a CPU: own times of operators; idle is what lies between them.")
    return panels(shown, NAME, job, _draw, legend, notes)


def _draw(axes: Axes, rows: pandas.DataFrame, variants: Sequence[str]) -> None:
    times = _by_class(rows, "class_time").reindex(variants) * 1e3
    counts = _by_class(rows, "class_count").drop(columns="idle", errors="ignore").sum(axis=1)
    lacking = rows[rows["status"] != "ok"].drop_duplicates("variant").set_index("variant")
    texts = {}
    for name in variants:
        if name in lacking.index:
            texts[name] = lacking.loc[name, "status"]
        elif name in counts.index:
            what = "operators" if (rows["of"] == "operators").any() else "kernels"
            total = times.loc[name].sum()
            texts[name] = f"{number(total, decimals(total))} ms, {counts[name]:.0f} {what}"
    stacked(axes, times, {kind: colour for kind, (_, colour) in CLASSES.items()}, texts)
    axes.set_xlabel("ms a step, under the profiler", fontsize=8)


def _by_class(rows: pandas.DataFrame, metric: str) -> pandas.DataFrame:
    """Medians over steps: a row a variant, a column a class in the order of ``CLASSES``."""
    found = rows[(rows["metric"] == metric) & (rows["status"] == "ok")]
    table = found.pivot_table(index="variant", columns="class", values="value", aggfunc="median")
    return table.reindex(columns=[kind for kind in CLASSES if kind in table.columns])


if __name__ == "__main__":
    main()
