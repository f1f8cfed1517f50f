"""Draws the table of scores and writes its summary: mean and spread, interval, count, direction, warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas

from genaccel.atomic import atomic_file
from genaccel.command import stage_errors
from genaccel.figures.grid_table import Column, Entry, Line, draw_table
from genaccel.figures.notes import Notes
from genaccel.figures.numbers import PLUS_MINUS, decimals, interval, number, with_spread
from genaccel.figures.scores import ARROWS, SAMPLING, SCORES, read_scores, sampling_name
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import INK, MUTED, TIMES, WARNING, figure_parser, save, theme
from genaccel.figures.summary import summarise

FITS = 30  # small letters that a column has room for
KEYS = ["metric", "detail", "place", "modality"]

REAL = {
    "real=held_out": "of the real volumes outside the training split",
    "real=train": "of each real training volume to the nearest other one, since there are no others",
}


class Key(NamedTuple):
    """What a line of the table is of; ``place`` is a region, a mask channel or a feature network."""

    metric: str
    detail: str
    place: str
    modality: str


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


def metric_table(summary: pandas.DataFrame, job: FigureJob) -> Any:
    """A figure with one line a score, region and modality; one column a model and its sampling."""
    details, places = zip(*(_what(row) for row in summary.itertuples()), strict=True)
    summary = summary.assign(detail=details, place=places)
    lines = [Key(*key) for key in summary.groupby(KEYS, sort=False).groups]
    notes = Notes()
    columns = []
    several = summary["device"].nunique() > 1
    for key, rows in sorted(summary.groupby(["model", "device", "variant", *SAMPLING], sort=False), key=_column_order):
        count = _common_count(rows)
        entries = [_entry(rows[(rows[KEYS] == list(line)).all(axis=1)], count, notes) for line in lines]
        columns.append(Column(_header(*key, count=count, several_devices=several), entries))
    stubs = [_stub(line, summary) for line in lines]
    foot = [*_explanation(summary), *notes]
    return draw_table(f"Scores of synthetic volumes: {job.title}", stubs, columns, foot)


def _what(row: Any) -> tuple[str, str]:
    """What the score is by, where another choice would be another score; and where it is taken."""
    settings = dict(part.split("=", 1) for part in row.settings.split("; ") if part)
    detail = []
    if "scales" in settings:
        detail.append(f"{settings['scales']} scales")
    if "window" in settings:
        sigma = f", \N{GREEK SMALL LETTER SIGMA} {settings['sigma']}" if "sigma" in settings else ""
        detail.append(f"{settings['window']}\N{SUPERSCRIPT THREE} window{sigma}")
    if "distance" in settings:
        detail.append(settings["distance"].upper() + (f" of {settings['grid']} voxels" if "grid" in settings else ""))
    return ", ".join(detail), row.channel or row.region or settings.get("features", "")


def _column_order(group: tuple[tuple[str, ...], pandas.DataFrame]) -> tuple[Any, ...]:
    model, device, variant, sampler, steps, *rest = group[0]
    return model, device, sampler, int(steps) if steps.isdigit() else 0, *rest, variant


def _common_count(rows: pandas.DataFrame) -> float:
    """The volumes behind a column's scores of volumes; NaN where there is no one number."""
    of_volumes = rows[rows["metric"].map(lambda metric: SCORES[metric].of == "volume") & (rows["status"] == "ok")]
    counts = of_volumes["n"].unique()
    if not len(counts):
        counts = rows.loc[rows["status"] == "ok", "n"].dropna().unique()
    return float(counts[0]) if len(counts) == 1 else math.nan


def _entry(found: pandas.DataFrame, count: float, notes: Notes) -> Entry:
    texts, below, ink = [], [], INK
    for row in found.itertuples():
        if row.status != "ok":
            text = {"unsupported": "not available", "oom": "out of memory"}[row.status]
            texts, ink = [*texts, f"{text} {notes.mark(row.warning)}"], MUTED
            continue
        digits = decimals(row.mean, row.sd, (row.high - row.low) / 2)
        text = with_spread(row.mean, row.sd, digits)
        if row.warning:
            text, ink = f"{text} unreliable {notes.mark(row.warning)}", WARNING
        texts.append(text)
        below += _below(row, digits, count, notes)
    return Entry("; ".join(texts), ink, below) if texts else Entry("\N{EN DASH}", MUTED, [])


def _below(row: Any, digits: int, count: float, notes: Notes) -> list[str]:
    """Interval, what real volumes have, and the count where it is not the column's."""
    ends = interval(row.low, row.high, digits)
    if row.note:
        ends = f"no interval {notes.mark(row.note)}"
    beside = [
        f"{name} {number(value, min(decimals(value), max(digits, 2)))}"
        for name, value in (("floor", row.floor), ("real", row.real))
        if not math.isnan(value)
    ]
    if beside and row.real_is:
        beside[-1] += f" {notes.mark(f'real: {REAL.get(row.real_is, row.real_is)}')}"
    other = "" if math.isnan(row.n) or row.n == count else f"n = {row.n:.0f}"
    if other and SCORES[row.metric].of == "pair":
        other += " pair" if row.n == 1 else " pairs"
    rest = ", ".join([*beside, *([other] if other else [])])
    together = "  ".join(filter(None, (ends, rest)))
    return [together] if 0 < len(together) <= FITS else [text for text in (ends, rest) if text]


def _header(
    model: str,
    device: str,
    variant: str,
    sampler: str,
    steps: str,
    eta: str,
    order: str,
    split: str,
    size: str,
    per_mask: str,
    count: float,
    several_devices: bool,
) -> list[str]:
    volumes = "" if math.isnan(count) else f", n = {count:.0f}"
    if volumes and per_mask not in ("", "1"):
        volumes += f" ({per_mask} a mask)"
    where = f"{split}{volumes}" + (f", {device}" if several_devices else "")
    size = size.replace("x", f" {TIMES} ")
    sampling = f"{sampling_name(sampler, eta, order)}, {steps} step{'' if steps == '1' else 's'}"
    return [model, sampling, *filter(None, [variant]), where, size]


def _stub(line: Key, summary: pandas.DataFrame) -> Line:
    unit = summary.loc[summary["metric"] == line.metric, "unit"].iloc[0]
    name = SCORES[line.metric].label + (f" ({unit})" if unit != "1" else "")
    several = summary.loc[summary["metric"] == line.metric, "detail"].nunique() > 1
    return Line(name, line.detail if several and not line.place else line.place, line.modality)


def _explanation(summary: pandas.DataFrame) -> Iterator[str]:
    """What the table's figures and names mean, as far as they stand in it."""
    kinds = {score.of for metric, score in SCORES.items() if (summary["metric"] == metric).any()}
    arrows = f"{ARROWS['higher']} higher is better, {ARROWS['lower']} lower is better."
    yield (
        arrows
        + f" Mean {PLUS_MINUS} standard deviation over volumes; [ ] 95 % interval of the mean over subjects, "
        + (
            "the samples of a mask averaged first."
            if (~summary["per_mask"].isin(["", "1"])).any()
            else "where there are two."
        )
    )
    for metric in ("ssim", "ms_ssim", "ms_ssim_diversity", "nearest_train"):
        details = [detail for detail in summary.loc[summary["metric"] == metric, "detail"].unique() if detail]
        if details:
            yield f"{SCORES[metric].name}: {MEANING.get(metric, '')}{'; '.join(details)}."
    if "set" in kinds:
        yield (
            "FID-3D, KID, MMD: all synthetic against all real volumes of the reference split, one value with its "
            "95 % interval; floor: real against real at the same n where there are enough, the least to expect."
        )
    if (summary["metric"] == "dice").any():
        yield "Dice: what a segmenter finds in the volume against the mask it was sampled for; real: of real volumes."


MEANING = {
    "ssim": "Gaussian ",
    "ms_ssim": "",
    "ms_ssim_diversity": "between synthetic volumes, lower is more diverse; ",
    "nearest_train": (
        f"{ARROWS['as real']} as real volumes (real) is best, far below is memorised: distance to the nearest real "
        "training volume, "
    ),
}


if __name__ == "__main__":
    main()
