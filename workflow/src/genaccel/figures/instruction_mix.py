"""Draws what a step's kernels execute: a bar a variant, its instructions by pipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genaccel.command import stage_errors
from genaccel.figures.bars import empty_figure, panels, stacked
from genaccel.figures.numbers import number
from genaccel.figures.profiled import counted, of_step, read_profile, why_no_counters, with_times
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import figure_parser, save, theme

NAME = "Instructions by pipe"

PIPES = {
    "fma": ("FMA (FFMA, IMAD)", "#0072B2"),
    "fp16": ("FP16", "#56B4E9"),
    "fp64": ("FP64", "#004A75"),
    "tensor": ("tensor", "#009E73"),
    "hmma": ("tensor: HMMA", "#009E73"),
    "hgmma": ("tensor: HGMMA", "#7FCFB6"),
    "imma": ("tensor: IMMA", "#00573F"),
    "lsu": ("load, store (LSU)", "#E69F00"),
    "tma": ("TMA", "#F0C979"),
    "tex": ("texture", "#B87F00"),
    "alu": ("ALU", "#CC79A7"),
    "xu": ("transcendental (XU)", "#8C4B73"),
    "uniform": ("uniform", "#999999"),
    "cbu": ("branches (CBU)", "#777777"),
    "adu": ("addresses (ADU)", "#BBBBBB"),
}
"""Name and colour of each pipe, in the order of a bar: arithmetic, tensor cores, memory, integers and control."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("instruction_mix", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `profile` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.instruction_mix"):
        job = FigureJob.parse(args.spec)
        rows = read_profile(args.table)
        with theme():
            save(instruction_mix(rows, job), args.out, job.figures)


def instruction_mix(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """Warp instructions of all measured kernels of a step, as shares of those that any pipe shown executed."""
    shown = of_step(rows, "instructions")
    if shown.empty:
        return empty_figure(NAME, job, why_no_counters(rows))
    # The parts of the tensor pipe say more than the whole.
    if shown["pipe"].isin(["hmma", "hgmma"]).any():
        shown = shown[shown["pipe"] != "tensor"]
    legend = {PIPES[pipe][0]: PIPES[pipe][1] for pipe in PIPES if (shown["pipe"] == pipe).any()}
    notes = [
        counted(rows),
        "At a bar's end: all executed warp instructions. A tensor instruction does far more work than an FFMA.",
    ]
    return panels(with_times(rows, shown), NAME, job, _draw, legend, notes)


def _draw(axes: Axes, rows: pandas.DataFrame, variants: Sequence[str]) -> None:
    found = of_step(rows, "instructions")
    table = found.pivot_table(index="variant", columns="pipe", values="value").reindex(variants)
    total = table.pop("all") if "all" in table else table.sum(axis=1)
    parts = table[[pipe for pipe in PIPES if pipe in table]]
    shares = parts.div(parts.sum(axis=1), axis=0) * 100
    texts = {name: number(value, 0) for name, value in total.dropna().items()}
    stacked(axes, shares, {pipe: colour for pipe, (_, colour) in PIPES.items()}, texts)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("% of executed warp instructions", fontsize=8)


if __name__ == "__main__":
    main()
