"""Draws the training loss: every step, and its running mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from genaccel.command import stage_errors
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import ACCENT, MUTED, figure_parser, save, theme
from genaccel.spec import SpecError


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("loss_curve", __doc__)
    parser.add_argument("--loss", type=Path, required=True, help="CSV of the stage `train`: step, loss, volumes_per_s")
    args = parser.parse_args(argv)
    with stage_errors("figures.loss_curve"):
        job = FigureJob.parse(args.spec)
        losses = read_losses(args.loss)
        with theme():
            save(loss_curve(losses, job), args.out, job.figures)


def read_losses(path: Path) -> pandas.Series:
    """Loss by step.

    Raises:
        SpecError: columns are missing, or a loss is no positive number.
    """
    try:
        table = pandas.read_csv(path)
    except (pandas.errors.EmptyDataError, pandas.errors.ParserError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no CSV ({error}); delete it and run again") from None
    if missing := {"step", "loss"} - set(table.columns):
        raise SpecError(f"{path} lacks the column {', '.join(sorted(missing))}; it has {', '.join(table.columns)}")
    losses = table.set_index("step")["loss"].astype(float)
    if bad := int((~losses.gt(0)).sum()):
        raise SpecError(f"{path}: {bad} of {len(losses)} losses are not positive numbers; look at the training's log")
    return losses


def loss_curve(losses: pandas.Series, job: FigureJob) -> Figure:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.set(title=f"Training loss: {job.title}", xlabel="optimizer step", ylabel="mean absolute error of the noise")
    if losses.empty:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "no training step: the weights were used as they are", ha="center", color=MUTED)
        return figure
    window = min(job.figures.smoothing, len(losses))
    mean = losses.rolling(window, min_periods=1).mean()
    dot = "o" if len(losses) == 1 else None  # a single point draws no line
    # Single steps are mostly the draw of the diffusion step, so they stay in the background.
    axes.plot(losses.index, losses, color="#9a9a9a", linewidth=0.6, alpha=0.7, label="each step", marker=dot)
    axes.plot(mean.index, mean, color=ACCENT, linewidth=1.8, label=_mean_of(window, len(losses)), marker=dot)
    end = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "color": ACCENT, "fontweight": "bold"}
    axes.annotate(f"{mean.iloc[-1]:.3g}", (mean.index[-1], mean.iloc[-1]), **end)
    axes.set_yscale("log")
    axes.set_ylim(losses.min() / 1.2, losses.max() * 1.2)
    # Over few decades the powers of ten alone would leave an axis without numbers.
    digits = (1, 2, 5) if losses.max() / losses.min() > 5 else range(1, 10)
    axes.yaxis.set_major_locator(LogLocator(subs=digits))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.legend(loc="upper right")
    return figure


def _mean_of(window: int, steps: int) -> str:
    return "mean of all steps so far" if window == steps else f"mean of the last {window} steps"


if __name__ == "__main__":
    main()
