"""Draws what the warps of a step wait for: cycles between two instructions of a warp, by state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genaccel.command import stage_errors
from genaccel.figures.bars import empty_figure, panels, stacked
from genaccel.figures.profiled import counted, of_step, read_profile, why_no_counters, with_times
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import figure_parser, save, theme

NAME = "Warp states"

REST = "rest"

STATES = {
    "selected": ("selected", "#009E73"),
    "not_selected": ("not selected", "#7FCFB6"),
    "math_pipe_throttle": ("math pipe busy", "#0072B2"),
    "gmma": ("tensor result (GMMA)", "#004A75"),
    "wait": ("fixed latency", "#56B4E9"),
    "long_scoreboard": ("memory (long scoreboard)", "#D55E00"),
    "lg_throttle": ("memory queue (LG)", "#8A3C00"),
    "short_scoreboard": ("shared memory (short scoreboard)", "#E69F00"),
    "mio_throttle": ("shared memory queue (MIO)", "#F0C979"),
    "barrier": ("barrier", "#CC79A7"),
    "membar": ("memory barrier", "#8C4B73"),
    "no_instruction": ("no instruction", "#999999"),
    "dispatch_stall": ("dispatch", "#BBBBBB"),
    REST: ("rest", "#DDDDDD"),
}
"""Name and colour of each state, in the order of a bar: issuing, arithmetic, memory, synchronisation, control."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("warp_states", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `profile` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.warp_states"):
        job = FigureJob.parse(args.spec)
        rows = read_profile(args.table)
        with theme():
            save(warp_states(rows, job), args.out, job.figures)


def warp_states(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """A bar a variant: cycles a warp spends in each state for every instruction that is issued."""
    shown = of_step(rows, "warp_stall")
    if shown.empty:
        return empty_figure(NAME, job, why_no_counters(rows))
    drawn = list(dict.fromkeys(state if state in STATES else REST for state in _ordered(shown["state"])))
    legend = {STATES[state][0]: STATES[state][1] for state in STATES if state in drawn}
    notes = [counted(rows), "Averages over kernels, weighted by elapsed cycles. Selected: the cycle that issues."]
    return panels(with_times(rows, shown), NAME, job, _draw, legend, notes)


def _draw(axes: Axes, rows: pandas.DataFrame, variants: Sequence[str]) -> None:
    found = of_step(rows, "warp_stall")
    found = found.assign(part=[state if state in STATES else REST for state in found["state"]])
    table = found.pivot_table(index="variant", columns="part", values="value", aggfunc="sum").reindex(variants)
    table = table[[state for state in STATES if state in table]]
    texts = {name: f"{value:.1f}" for name, value in table.sum(axis=1, min_count=1).dropna().items()}
    stacked(axes, table, {state: colour for state, (_, colour) in STATES.items()}, texts)
    axes.set_xlabel("cycles of a warp for each instruction it issues", fontsize=8)


def _ordered(states: pandas.Series) -> list[str]:
    return sorted(states.unique())


if __name__ == "__main__":
    main()
