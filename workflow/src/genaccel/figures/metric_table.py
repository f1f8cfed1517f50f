"""Draws the table of scores and writes its summary: mean and spread, count, unit, direction, warnings."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from genaccel.atomic import atomic_file
from genaccel.command import stage_errors
from genaccel.figures.scores import BETTER, SAMPLING, read_scores, summarise
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import INK, MINUS, MUTED, TIMES, WARNING, figure_parser, save, text_at, theme

NAMES = {"ssim": "SSIM", "psnr": "PSNR", "mse": "MSE", "fid": "FID-3D"}
ARROWS = {"higher": "\N{UPWARDS ARROW}", "lower": "\N{DOWNWARDS ARROW}"}
MARKS = "*\N{DAGGER}\N{DOUBLE DAGGER}\N{SECTION SIGN}\N{PILCROW SIGN}#"
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"

# Inches.
MARGIN, COLUMN, LINE, HEAD, HEADER, FOOT_LINE = 0.2, 1.6, 0.23, 0.48, 0.74, 0.14
STUB = (1.15, 1.05, 0.75)  # metric, region, modality


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("metric_table", __doc__)
    parser.add_argument("--table", type=Path, required=True, help="tidy table of the stage `metrics` (CSV)")
    parser.add_argument(
        "--summary", type=Path, required=True, help="CSV to write: what the figure rounds or leaves out"
    )
    args = parser.parse_args(argv)
    with stage_errors("figures.metric_table"):
        job = FigureJob.parse(args.spec)
        summary = summarise(read_scores(args.table))
        with theme():
            save(metric_table(summary, job), args.out, job.figures)
        with atomic_file(args.summary) as partial:
            summary.to_csv(partial, index=False, float_format="%.6g", lineterminator="\n")


class Notes:
    """Footnotes by the marks of their cells; equal notes share a mark."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        if text not in self.texts:
            self.texts.append(text)
        number = self.texts.index(text)
        return MARKS[number % len(MARKS)] * (1 + number // len(MARKS))

    def __iter__(self) -> Iterator[str]:
        return (f"{self.mark(text)} {text}" for text in self.texts)


def metric_table(summary: pandas.DataFrame, job: FigureJob) -> Figure:
    """One row a score, region and modality; one column a model and its sampling."""
    summary = summary.assign(detail=[_detail(row) for row in summary.itertuples()])
    columns = list(summary.groupby(["model", "device", *SAMPLING], sort=False))
    lines = list(summary.groupby(["metric", "detail", "region", "modality"], sort=False).groups)
    notes = Notes()
    cells = [[_cell(column, line, notes) for _, column in columns] for line in lines]
    width = max(MARGIN * 2 + sum(STUB) + COLUMN * len(columns), 6.0)
    edges = [width - MARGIN - 0.05 - COLUMN * number for number in reversed(range(len(columns)))]
    foot = [line for text in (_explanation(summary), *notes) for line in textwrap.wrap(text, int(width * 18))]
    body = HEAD + HEADER + LINE * len(lines)
    figure = Figure(figsize=(width, body + 0.2 + FOOT_LINE * len(foot) + 0.1))
    text_at(figure, MARGIN, 0.14, f"Scores of synthetic volumes: {job.title}", fontsize=11, fontweight="bold")
    _rule(figure, HEAD, 1.2)
    _header(figure, columns, edges, several_devices=summary["device"].nunique() > 1)
    _rule(figure, HEAD + HEADER, 0.7)
    above = ("", "", "", "")
    for number, (line, values) in enumerate(zip(lines, cells, strict=True)):
        top = HEAD + HEADER + LINE * number
        if number and line[0] != above[0]:
            _rule(figure, top, 0.3)
        _stub(figure, top + 0.06, line, above, summary)
        for right, (text, ink) in zip(edges, values, strict=True):
            text_at(figure, right, top + 0.06, text, fontsize=8.5, color=ink, ha="right")
        above = line
    _rule(figure, body, 1.2)
    for number, text in enumerate(foot):
        text_at(figure, MARGIN, body + 0.12 + FOOT_LINE * number, text, fontsize=7, color=MUTED)
    return figure


def _detail(row: Any) -> str:
    """What the score is by, where another choice would be another score."""
    settings = dict(part.split("=", 1) for part in row.settings.split("; ") if part)
    if row.metric == "ssim":
        window, sigma = settings.get("window", "?"), settings.get("sigma", "?")
        return f"{window}\N{SUPERSCRIPT THREE} window, \N{GREEK SMALL LETTER SIGMA} {sigma}"
    return settings.get("features", "")


def _cell(column: pandas.DataFrame, line: tuple[str, ...], notes: Notes) -> tuple[str, str]:
    """Text and colour of a cell."""
    keys = ["metric", "detail", "region", "modality"]
    found = column[(column[keys] == list(line)).all(axis=1)]
    parts, ink = [], INK
    for row in found.itertuples():
        text = {"unsupported": "not available", "oom": "out of memory"}.get(row.status, "")
        if row.status == "ok":
            text = _with_spread(row.mean, row.sd) + (" unreliable" if row.warning else "")
        if row.warning:
            text, ink = f"{text} {notes.mark(row.warning)}", WARNING if row.status == "ok" else MUTED
        parts.append(text)
    return ("; ".join(parts), ink) if parts else ("\N{EN DASH}", MUTED)


def _with_spread(mean: float, sd: float) -> str:
    """Three significant digits of the mean, or of a standard deviation (NaN: none) that is larger."""
    spread = 0.0 if math.isnan(sd) else sd
    size = max(abs(mean), spread)
    decimals = max(2 - math.floor(math.log10(size)), 0) if size else 3
    form = ".2e" if size and not 1e-3 <= size < 1e4 else f".{decimals}f"
    text = f"{mean:{form}}" if math.isnan(sd) else f"{mean:{form}} {PLUS_MINUS} {sd:{form}}"
    return text.replace("-", MINUS)


def _header(figure: Figure, columns: list, edges: list[float], several_devices: bool) -> None:
    for right, (key, rows) in zip(edges, columns, strict=True):
        model, device, sampler, steps, eta, split, size = key
        sampling = f"{sampler}, {steps} steps" + (f", \N{GREEK SMALL LETTER ETA} {eta}" if eta not in ("", "0") else "")
        counts = rows.loc[rows["status"] == "ok", "n"].unique()
        count = f", n = {counts[0]}" if len(counts) == 1 else ""
        text_at(figure, right, HEAD + 0.08, model, fontsize=9, fontweight="bold", ha="right")
        text_at(figure, right, HEAD + 0.26, sampling, fontsize=7.5, ha="right")
        where = f"{split}{count}" + (f", {device}" if several_devices else "")
        text_at(figure, right, HEAD + 0.41, where, fontsize=7.5, color=MUTED, ha="right")
        text_at(figure, right, HEAD + 0.55, size.replace("x", f" {TIMES} "), fontsize=7.5, color=MUTED, ha="right")


def _stub(figure: Figure, top: float, line: tuple, above: tuple, summary: pandas.DataFrame) -> None:
    """What the line is of, as far as the line above does not say it."""
    metric, detail, region, modality = line
    if line[0] != above[0]:
        unit = summary.loc[summary["metric"] == metric, "unit"].iloc[0]
        name = f"{NAMES[metric]} {ARROWS[BETTER[metric]]}" + (f" ({unit})" if unit != "1" else "")
        text_at(figure, MARGIN, top, name, fontsize=9, fontweight="bold")
    if line[:3] != above[:3]:
        text_at(figure, MARGIN + STUB[0], top, region or detail, fontsize=8.5)
    text_at(figure, MARGIN + sum(STUB[:2]), top, modality, fontsize=8.5)


def _explanation(summary: pandas.DataFrame) -> str:
    text = f"{ARROWS['higher']} higher is better, {ARROWS['lower']} lower is better. Mean {PLUS_MINUS} standard "
    text += "deviation over volumes, each against the real volume of its mask."
    windows = summary.loc[summary["metric"] == "ssim", "detail"].unique()
    if len(windows):
        text += f" SSIM: Gaussian {'; '.join(windows)}."
    if (summary["metric"] == "fid").any():
        text += " FID-3D: all synthetic against all real volumes of the split, one value."
    return text


def _rule(figure: Figure, top: float, weight: float) -> None:
    width, height = figure.get_size_inches()
    ends = (MARGIN / width, 1 - MARGIN / width)
    figure.add_artist(Line2D(ends, (1 - top / height,) * 2, color=INK, linewidth=weight))


if __name__ == "__main__":
    main()
