"""Draws the smoothed losses of variants over several seeds, and their differences beside the spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from genaccel.command import stage_errors
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import INK, MUTED, WARNING, figure_parser, save, theme
from genaccel.figures.tidy import read_tidy
from genaccel.measurement import parse_case
from genaccel.spec import SpecError
from genaccel.train.smoothing import WINDOW, smoothed

INKS = ("#333333", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""The baseline's first."""

Curves = dict[int, np.ndarray]
"""Smoothed losses by seed."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("training_curves", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of `genaccel.train.curves` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.training_curves"):
        job = FigureJob.parse(args.spec)
        with theme():
            save(training_curves(read_tidy(args.table, "train"), job), args.out, job.figures)


def training_curves(rows: pandas.DataFrame, job: FigureJob) -> Figure:
    """Losses above, differences to the baseline below.

    Args:
        rows: of stage `train`: ``training_loss``, ``within_seed_range``.

    Raises:
        SpecError: no losses, or of no variant that was compared with another.
    """
    verdicts = rows[rows["metric"] == "within_seed_range"]
    curves = {variant: _curves(found) for variant, found in rows.groupby("variant") if _curves(found)}
    baselines = {parse_case(case)["baseline"] for case in verdicts["case"]}
    if len(baselines) != 1 or not baselines <= set(curves):
        raise SpecError(
            f"the table holds losses of {', '.join(curves) or 'no variant'} and comparisons with "
            f"{', '.join(sorted(baselines)) or 'none'}; gather them with python -m genaccel.train.curves"
        )
    (baseline,) = baselines
    variants = [baseline, *(name for name in curves if name != baseline)]
    figure = Figure(figsize=(6.8, 5.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, ink in zip(variants, INKS, strict=False):
        # Wide below, narrow above: curves that agree cover each other.
        _losses(upper, curves[name], name, ink, width=2.2 if name == baseline else 0.8)
        if name != baseline:
            _differences(lower, curves[name], curves[baseline], name, ink)
    _seed_range(lower, curves[baseline], baseline)
    upper.set(title=f"Training loss by variant and seed: {job.title}", ylabel=f"loss, mean of {WINDOW} steps")
    upper.set_yscale("log")
    upper.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    upper.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    upper.yaxis.set_minor_formatter(NullFormatter())
    lower.set(xlabel="optimizer step", ylabel=f"difference to {baseline}")
    for axes in (upper, lower):
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axes.legend(loc="upper right", fontsize=7.5)
    said = "\n".join(f"{row.variant}: {row.reason}" for row in verdicts.itertuples())
    ink = MUTED if (verdicts["value"] == 1).all() else WARNING
    lower.set_title(said, fontsize=7.5, loc="left", color=ink)
    return figure


def _curves(rows: pandas.DataFrame) -> Curves:
    losses = rows[(rows["metric"] == "training_loss") & (rows["status"] == "ok")]
    seeds = losses["case"].map(lambda case: int(parse_case(case)["seed"]))
    return {seed: smoothed(found.sort_values("repeat")["value"]) for seed, found in losses.groupby(seeds)}


def _steps(curve: np.ndarray) -> np.ndarray:
    """The last step behind each mean."""
    return np.arange(len(curve)) + WINDOW


def _losses(axes: Axes, curves: Curves, name: str, ink: str, width: float) -> None:
    for number, curve in enumerate(curves.values()):
        label = f"{name}, {len(curves)} seeds" if number == 0 else None
        axes.plot(_steps(curve), curve, color=ink, linewidth=width, alpha=0.7, label=label)


def _differences(axes: Axes, curves: Curves, baseline: Curves, name: str, ink: str) -> None:
    differences = np.stack([curves[seed] - baseline[seed] for seed in sorted(curves)])
    for difference in differences:
        axes.plot(_steps(difference), difference, color=ink, linewidth=0.6, alpha=0.6)
    mean = differences.mean(axis=0)
    axes.plot(_steps(mean), mean, color=ink, linewidth=1.8, label=f"{name}: mean over seeds (thin: each)")


def _seed_range(axes: Axes, baseline: Curves, name: str) -> None:
    spread = np.ptp(np.stack(list(baseline.values())), axis=0)
    label = f"range over the seeds of {name}"
    axes.fill_between(_steps(spread), -spread, spread, color="#cccccc", alpha=0.6, linewidth=0, label=label)
    axes.axhline(0, color=INK, linewidth=0.8)


if __name__ == "__main__":
    main()
