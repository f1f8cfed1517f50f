"""Draws how much faster each variant is than strict FP32, with its memory, its error and its quality."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from genaccel.atomic import atomic_file
from genaccel.command import stage_errors
from genaccel.figures.notes import Notes
from genaccel.figures.spec import FigureJob
from genaccel.figures.speed import GROUP, speed_table
from genaccel.figures.style import ACCENT, INK, MUTED, TIMES, WARNING, axes_at, figure_parser, save, text_at, theme
from genaccel.figures.tidy import read_tidy
from genaccel.spec import SpecError

# Inches.
NAMES, PANEL, GAP, TEXTS = 2.5, 3.1, 0.35, (0.55, 0.85, 0.85, 1.2)
ROW, HEAD, BLOCK_HEAD, BETWEEN, AXIS, FOOT_LINE = 0.24, 0.62, 0.42, 0.25, 0.42, 0.14
WIDTH = NAMES + PANEL + GAP + sum(TEXTS) + 0.2

STATUS = {"oom": "out of memory", "unsupported": "not supported"}
QUALITY_INK = {"accepted": "#1B6E3C", "not accepted": WARNING}


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("speedups", __doc__)
    parser.add_argument("--optimize", type=Path, required=True, help="tidy table of the stage `optimize` (CSV)")
    parser.add_argument("--metrics", type=Path, help="tidy table of the stage `metrics` (CSV)")
    parser.add_argument("--warnings", type=Path, help="text: versions and work in which the table's runs differ")
    parser.add_argument("--summary", type=Path, required=True, help="CSV to write: what the figure shows, unrounded")
    args = parser.parse_args(argv)
    with stage_errors("figures.speedups"):
        job = FigureJob.parse(args.spec)
        metrics = read_tidy(args.metrics, "metrics") if args.metrics else None
        table = speed_table(read_tidy(args.optimize, "optimize"), metrics)
        if table.empty:
            raise SpecError(f"{args.optimize} holds no times of steps or volumes; run the stage `optimize` first")
        warnings = args.warnings.read_text().splitlines() if args.warnings else []
        with theme():
            save(speedups(table, job, warnings), args.out, job.figures)
        with atomic_file(args.summary) as partial:
            table.to_csv(partial, index=False, float_format="%.6g", lineterminator="\n")


def speedups(table: pandas.DataFrame, job: FigureJob, warnings: Sequence[str] = ()) -> Figure:
    """A block a model, device, size, batch and measure; in it a line a variant.

    Args:
        table: of ``speed_table``.
        warnings: what makes its devices hard to compare, a line each.
    """
    blocks = list(table.groupby([*GROUP, "measure"], sort=False))
    notes = Notes()
    lines = [[*_cells(rows, notes)] for _, rows in blocks]
    foot = [part for text in _foot(table, notes) for part in textwrap.wrap(text, int(WIDTH * 18))]
    warned = [part for text in warnings for part in textwrap.wrap(f"Warning: {text}", int(WIDTH * 18))]
    heights = [BLOCK_HEAD + ROW * len(rows) + AXIS + BETWEEN for _, rows in blocks]
    figure = Figure(figsize=(WIDTH, HEAD + sum(heights) + FOOT_LINE * len(warned + foot) + 0.1))
    text_at(figure, 0.15, 0.14, f"Speed-up over strict FP32: {job.title}", fontsize=11, fontweight="bold")
    text_at(figure, 0.15, 0.36, _legend(), fontsize=7.5, color=MUTED)
    top = HEAD
    for ((*names, measure), rows), texts, height in zip(blocks, lines, heights, strict=True):
        _head(figure, top, dict(zip(GROUP, names, strict=True)), measure)
        axes = axes_at(figure, NAMES, top + BLOCK_HEAD, PANEL, ROW * len(rows))
        draw_bars(axes, rows)
        for number, line in enumerate(texts):
            _line(figure, top + BLOCK_HEAD + ROW * (number + 0.5), line)
        top += height
    for number, text in enumerate(warned + foot):
        ink = WARNING if number < len(warned) else MUTED
        text_at(figure, 0.15, top + FOOT_LINE * number, text, fontsize=7, color=ink)
    return figure


def draw_bars(axes: Axes, rows: pandas.DataFrame) -> None:
    """A bar a line up to the speed-up over the harder baseline, its spread, and a ring at the published one's."""
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks([])
    ratios = rows[["speedup", "speedup_low", "speedup_high", "speedup_published"]].astype(float)
    largest = max(ratios.max(axis=None, skipna=True), 2.0) if ratios.notna().any(axis=None) else 2.0
    least = min(ratios.min(axis=None, skipna=True), 1.0) if ratios.notna().any(axis=None) else 1.0
    axes.set_xscale("log")
    axes.set_xlim(least / 1.3, largest * 2.2)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{TIMES}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=3)
    for place, row in enumerate(rows.itertuples()):
        if row.status != "ok" or math.isnan(row.speedup):
            text = STATUS.get(row.status, "no strict FP32 to compare with")
            axes.text(1.05, place, text, fontsize=7.5, color=MUTED, va="center")
            continue
        axes.barh(place, row.speedup - 1, left=1, height=0.62, color=ACCENT, alpha=0.85)
        spread = [[max(row.speedup - row.speedup_low, 0)], [max(row.speedup_high - row.speedup, 0)]]
        axes.errorbar([row.speedup], [place], xerr=spread, color=INK, elinewidth=0.9, capsize=2)
        if not math.isnan(row.speedup_published):
            axes.plot([row.speedup_published], [place], "o", markersize=4.5, markerfacecolor="white", color=INK)
        ends = [value for value in (row.speedup, row.speedup_high, row.speedup_published) if not math.isnan(value)]
        axes.text(max(ends) * 1.09, place, _ratio(row.speedup), fontsize=7.5, va="center")


def _cells(rows: pandas.DataFrame, notes: Notes) -> Iterator[list[tuple[str, str]]]:
    """Text and colour of each column beside the bars: name, time, memory, error, quality."""
    fastest = rows.loc[rows["fastest"] == 1, "variant"]
    for row in rows.itertuples():
        name = row.variant if not row.sampler else f"{row.variant}, {row.sampler} {row.steps}"
        # Of one or two repeats there is no spread to tell by.
        alone = len(fastest) == 1 and row.fastest == 1 and row.repeats >= 3
        mark = notes.mark("the fastest: no other one's quartiles reach down to its own") if alone else ""
        failed = notes.mark(row.reason) if row.status != "ok" else ""
        memory = "\N{EN DASH}" if math.isnan(row.peak_memory_bytes) else f"{row.peak_memory_bytes / 2**30:.1f} GiB"
        error = "\N{EN DASH}" if math.isnan(row.output_rel_error) else f"{row.output_rel_error:.1e}"
        why = notes.mark(row.quality_reason) if row.quality in ("accepted", "not accepted", "undecided") else ""
        yield [
            (" ".join(filter(None, (name, mark, failed))), INK),
            (_seconds(row.time_s), INK),
            (memory, INK),
            (error, INK),
            (" ".join(filter(None, (row.quality, why))), QUALITY_INK.get(row.quality, MUTED)),
        ]


def _line(figure: Figure, top: float, cells: Sequence[tuple[str, str]]) -> None:
    text_at(figure, NAMES - 0.1, top, cells[0][0], fontsize=8, ha="right", va="center")
    for right, (text, ink) in zip(_rights(), cells[1:], strict=True):
        text_at(figure, right, top, text, fontsize=8, color=ink, ha="right", va="center")


def _head(figure: Figure, top: float, names: dict[str, str], measure: str) -> None:
    size = names["size"].replace("x", f" {TIMES} ") if "x" in names["size"] else f"{names['size']}\N{SUPERSCRIPT THREE}"
    title = f"{measure}: {names['model']}, {size}, batch {names['batch']}, {names['device']}"
    text_at(figure, 0.15, top + 0.02, title[0].upper() + title[1:], fontsize=9, fontweight="bold")
    for right, text in zip(_rights(), ("median", "peak memory", "output error", "quality"), strict=True):
        text_at(figure, right, top + 0.22, text, fontsize=7.5, color=MUTED, ha="right")


def _rights() -> list[float]:
    left = NAMES + PANEL + GAP
    return [left + sum(TEXTS[: number + 1]) for number in range(len(TEXTS))]


def _ratio(value: float) -> str:
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f}{TIMES}"


def _seconds(value: float) -> str:
    if math.isnan(value):
        return "\N{EN DASH}"
    scaled, unit = (value, "s") if value >= 1 else (value * 1e3, "ms")
    return f"{scaled:.{max(0, 2 - int(math.log10(max(scaled, 1))))}f} {unit}"


def _legend() -> str:
    return (
        "Bars: over the faster (harder) of the two strict-FP32 baselines, medians, with quartiles; "
        "rings: over strict FP32 as published (fp32_strict)."
    )


def _foot(table: pandas.DataFrame, notes: Notes) -> Iterator[str]:
    if table["output_rel_error"].notna().any():
        yield "Output error: relative L2 error of the predicted noise to strict FP32's, the largest of three steps."
    volumes = table[table["steps_ratio"].notna() & (table["steps_ratio"] != 1)]
    for row in volumes.itertuples():
        yield (
            f"{row.variant}, {row.sampler} {row.steps}: {_ratio(row.speedup)} = {_ratio(row.step_ratio)} a step "
            f"{TIMES} {_ratio(row.steps_ratio)} fewer steps."
        )
    yield from notes


if __name__ == "__main__":
    main()
