"""Draws what Nsight Compute's rules expect of removing each bottleneck: its priority scores."""

from __future__ import annotations

import re
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

NAME = "Priority scores"

RULES = 8
"""Rules shown, at most."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("priority_scores", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `profile` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.priority_scores"):
        job = FigureJob.parse(args.spec)
        rows = read_profile(args.table)
        with theme():
            save(priority_scores(rows, job), args.out, job.figures)


def priority_scores(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """The rules that promise most, a bar a variant: share of the measured kernels' time that each would save."""
    shown = of_step(rows, "rule_speedup")
    if shown.empty:
        counters = not of_step(rows, "counter_time").empty
        return empty_figure(NAME, job, "no rule expects anything" if counters else why_no_counters(rows))
    rules = shown.groupby("rule")["value"].max().nlargest(RULES).index
    order = variants_of(with_times(rows, shown))
    legend = {name: colour(place) for place, name in enumerate(order)}
    notes = [counted(rows), "Estimates of single rules: they overlap and do not add up."]
    lines = len(rules) * max(len(order), 2) // 2 + 1

    def draw(axes: Axes, panel: pandas.DataFrame, variants: Sequence[str]) -> None:
        found = of_step(panel, "rule_speedup")
        table = found.pivot_table(index="rule", columns="variant", values="value") * 100
        table = table.reindex(index=rules, columns=[name for name in order if name in table])
        table.index = [_words(rule) for rule in table.index]
        grouped(axes, table, legend, lambda value: f"{value:.1f} %")
        axes.set_xlabel("estimated saving, % of the kernels' time", fontsize=8)

    return panels(with_times(rows, shown), NAME, job, draw, legend, notes, lambda group: lines)


def _words(rule: str) -> str:
    """``IssueSlotUtilization`` -> ``Issue slot utilization``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", rule).split(" ")
    text = " ".join(word if word.isupper() else word.lower() for word in words)
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    main()
