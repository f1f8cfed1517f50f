"""Draws how scores fall with fewer network evaluations: a line a sampler, the full ancestral chain as reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, ScalarFormatter

from genaccel.command import stage_errors
from genaccel.figures.scores import SCORES, read_scores, sampling_name
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MUTED, WARNING, figure_parser, save, text_at, theme
from genaccel.figures.summary import summarise
from genaccel.spec import SpecError

METRICS = ("fid", "kid", "ssim")
REFERENCE = "ddpm"  # always every step of the schedule

# Of Okabe and Ito's colours those that show on white; markers tell the lines apart without any colour.
INKS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "osD^vPX*"
REFERENCE_INK = "#333333"
FLOOR = {"facecolor": "#d9d9d9", "hatch": "////", "edgecolor": "#bbbbbb"}

# Inches.
PANEL_WIDTH, PANEL_HEIGHT, HEAD, FOOT = 3.1, 2.0, 0.85, 0.55
ACROSS = 4  # columns of panels; more go below
DODGE = 1.02  # between the error bars of two samplers at one number of steps


class Panels(NamedTuple):
    """A model's scores in one modality on one device: a column of panels."""

    title: str
    rows: pandas.DataFrame


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("sampler_steps", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `metrics` (CSV)")
    args = parser.parse_args(argv)
    with stage_errors("figures.sampler_steps"):
        job = FigureJob.parse(args.spec)
        summary = summarise(read_scores(args.table))
        with theme():
            save(sampler_steps(summary, job), args.out, job.figures)


def sampler_steps(summary: pandas.DataFrame, job: FigureJob) -> Figure:
    """A column of panels a model and modality, a row of panels a score: FID-3D, KID, SSIM to the real volumes.

    Raises:
        SpecError: none of these scores is in the table.
    """
    shown = summary[summary["metric"].isin(METRICS) & summary["region"].isin(["", "whole"])]
    metrics = [metric for metric in METRICS if (shown["metric"] == metric).any()]
    if not metrics:
        raise SpecError("the table holds no FID, KID or SSIM to draw over the steps; run the stage `metrics` again")
    shown = shown.assign(line=_names_of(shown))
    names, notes = _line_names(shown), _notes(shown)
    columns = list(_columns(shown))
    across = min(len(columns), ACROSS)
    bands = math.ceil(len(columns) / across)
    width = max(PANEL_WIDTH * across, 5.2)
    foot = FOOT + 0.14 * len(notes)
    height = HEAD + (PANEL_HEIGHT + 0.25 * (bands > 1)) * len(metrics) * bands + foot
    figure = Figure(figsize=(width, height))
    margins = {"left": 0.75 / width, "right": 1 - 0.2 / width, "top": 1 - (HEAD + 0.12) / height}
    margins |= {"bottom": foot / height, "hspace": 0.5 if bands > 1 else 0.22, "wspace": 0.3}
    grid = figure.subplots(len(metrics) * bands, across, squeeze=False, gridspec_kw=margins)
    for number, column in enumerate(columns):
        first = number // across * len(metrics)
        for metric, axes in zip(metrics, grid[first : first + len(metrics), number % across], strict=True):
            draw_panel(axes, column.rows[column.rows["metric"] == metric], metric, names)
            axes.set_title(column.title if metric == metrics[0] else "", fontsize=8.5, fontweight="bold")
            axes.set_xlabel("network evaluations a volume" if metric == metrics[-1] else "", fontsize=8)
            axes.set_ylabel(_axis_name(metric) if number % across == 0 else "", fontsize=8)
    for axes in grid[-len(metrics) :, across - (across * bands - len(columns)) :].flat:
        axes.set_visible(False)
    figure.align_ylabels()
    text_at(figure, 0.15, 0.14, f"Scores by sampler and steps: {job.title}", fontsize=11, fontweight="bold")
    _legend(figure, shown, names)
    for number, (text, ink) in enumerate(notes):
        below = height - 0.12 - 0.14 * (len(notes) - 1 - number)
        text_at(figure, 0.15, below, text, fontsize=7, color=ink, va="bottom")
    return figure


def draw_panel(axes: Axes, rows: pandas.DataFrame, metric: str, names: Sequence[str]) -> None:
    """Points with their 95 % intervals; open ones are unreliable.

    Args:
        rows: of ``summarise``, of one score, model and modality.
        names: of all lines of the figure, so that a sampler looks the same in every panel.
    """
    found = rows[rows["status"] == "ok"]
    axes.grid(axis="y", color="#ececec", linewidth=0.7)
    axes.set_axisbelow(True)
    if found.empty:
        axes.set(xticks=[], yticks=[])
        place = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, "not available" if len(rows) else "not measured", fontsize=8, color=MUTED, **place)
        return
    _floor(axes, found)
    lines = [found[found["line"] == name] for name in names]
    for number, (name, points) in enumerate(zip(names, lines, strict=True)):
        if points.empty:
            continue
        ink, marker = _look(name, names)
        if points["sampler"].iloc[0] == REFERENCE:
            _reference(axes, points.iloc[-1])
        shift = DODGE ** (number - (len(names) - 1) / 2)
        _points(axes, points.sort_values("steps"), ink, marker, shift)
    _scale(axes, found)
    if (found["warning"] != "").any():
        which = "all" if (found["warning"] != "").all() else "open markers"
        place = {"ha": "right", "va": "top", "transform": axes.transAxes}
        axes.text(0.98, 0.98, f"{which} unreliable", fontsize=7.5, color=WARNING, **place)


def _points(axes: Axes, points: pandas.DataFrame, ink: str, marker: str, shift: float) -> None:
    x = points["steps"] * shift
    axes.plot(x, points["mean"], color=ink, linewidth=1.2, zorder=3)
    look = {"color": ink, "marker": marker, "markersize": 5, "elinewidth": 0.9, "capsize": 2, "zorder": 4}
    for place, row in zip(x, points.itertuples(), strict=True):
        # An estimate may lie outside its interval by rounding; a bar has no negative length.
        bar = [[max(row.mean - row.low, 0.0)], [max(row.high - row.mean, 0.0)]]
        face = "white" if row.warning else ink
        axes.errorbar([place], [row.mean], yerr=None if math.isnan(row.low) else bar, markerfacecolor=face, **look)


def _reference(axes: Axes, row: pandas.Series) -> None:
    axes.axhline(row["mean"], color=REFERENCE_INK, linewidth=1, linestyle="--", zorder=2)
    if not math.isnan(row["low"]):
        axes.axhspan(row["low"], row["high"], color=REFERENCE_INK, alpha=0.12, linewidth=0, zorder=1)


def _floor(axes: Axes, rows: pandas.DataFrame) -> None:
    """The floors of all points, which differ where these are of different numbers of volumes."""
    floors = rows[["floor", "floor_low", "floor_high"]].to_numpy()
    floors = floors[~pandas.isna(floors)]
    if floors.size:
        axes.axhspan(floors.min(), floors.max(), alpha=0.6, linewidth=1, zorder=0, **FLOOR)


def _scale(axes: Axes, rows: pandas.DataFrame) -> None:
    axes.set_xscale("log")
    steps = sorted(rows["steps"].unique())
    axes.set_xlim(steps[0] / 1.25, steps[-1] * 1.25)
    # Of numbers that would overlap, the first.
    ticks = steps[:1]
    for step in steps[1:]:
        if step / ticks[-1] > (steps[-1] / steps[0]) ** 0.08:
            ticks.append(step)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    values = rows[["mean", "low", "high", "floor"]].to_numpy()
    values = values[~pandas.isna(values)]
    if values.min() > 0 and values.max() / values.min() > 30:
        axes.set_yscale("log")
    axes.margins(y=0.12)


def _columns(shown: pandas.DataFrame) -> Iterator[Panels]:
    several = shown["device"].nunique() > 1
    for (model, device, modality), rows in shown.groupby(["model", "device", "modality"]):
        title = ", ".join(filter(None, (model, modality, device if several else "")))
        steps = pandas.to_numeric(rows["steps"], errors="coerce").fillna(0).clip(lower=1).astype(int)
        yield Panels(title, rows.assign(steps=steps))


def _names_of(rows: pandas.DataFrame) -> list[str]:
    """Sampler with its settings, and the variant where there are several."""
    several = rows["variant"].nunique() > 1
    return [
        ", ".join(filter(None, (sampling_name(row.sampler, row.eta, row.order), row.variant if several else "")))
        for row in rows.itertuples()
    ]


def _line_names(rows: pandas.DataFrame) -> list[str]:
    return sorted(set(rows["line"]), key=lambda name: (name.startswith(REFERENCE), name))


def _look(name: str, names: Sequence[str]) -> tuple[str, str]:
    """Colour and marker of a line."""
    if name.startswith(REFERENCE):
        return REFERENCE_INK, "d"
    number = names.index(name)
    return INKS[number % len(INKS)], MARKERS[number % len(MARKERS)]


def _axis_name(metric: str) -> str:
    score = SCORES[metric]
    return f"{score.label} to the real volume" if score.of == "volume" else score.label


def _legend(figure: Figure, shown: pandas.DataFrame, names: Sequence[str]) -> None:
    handles: list[Line2D | Patch] = []
    for name in names:
        ink, marker = _look(name, names)
        style, label = ("--", f"{name}: every step") if name.startswith(REFERENCE) else ("-", name)
        line = {"color": ink, "marker": marker, "markersize": 5, "linewidth": 1.2, "linestyle": style}
        handles.append(Line2D([], [], label=label, **line))
    if shown["floor"].notna().any():
        handles.append(Patch(label="real against real", **FLOOR))
    width, height = figure.get_size_inches()
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.1 / width, 1 - 0.36 / height),
        ncols=max(2, min(len(handles), int(width / 1.7))),
        fontsize=7.5,
        borderaxespad=0,
        columnspacing=1.2,
    )


def _notes(shown: pandas.DataFrame) -> list[tuple[str, str]]:
    notes = [("Bars and the grey band: 95 % intervals (of SSIM: of the mean over subjects).", MUTED)]
    reasons = shown.loc[(shown["status"] == "ok") & (shown["warning"] != ""), "warning"].unique()
    lacking = shown.loc[(shown["status"] == "ok") & (shown["note"] != ""), "note"].unique()
    notes += [(note[0].upper() + note[1:] + ".", MUTED) for note in lacking[:2]]
    return notes + [(reason[0].upper() + reason[1:] + ".", WARNING) for reason in reasons[:3]]


if __name__ == "__main__":
    main()
