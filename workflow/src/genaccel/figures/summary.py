"""Summarises scores: one row a score, model and sampling, with its interval, what stands beside it and warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas

from genaccel.figures.intervals import of_mean, of_pairs
from genaccel.figures.scores import SAMPLING, SCORES
from genaccel.measurement import parse_case

SUMMARY = (
    *("metric", "region", "channel", "modality", "mean", "sd", "low", "high", "n", "subjects", "unit", "better"),
    *("floor", "floor_low", "floor_high", "real", "real_is", "median", "q25", "q75", "status", "warning", "note"),
    *("model", "device", "variant", *SAMPLING, "settings"),
)

NUMBERS = ("mean", "sd", "low", "high", "n", "subjects", "floor", "floor_low", "floor_high", "real")


class Cell(NamedTuple):
    """The rows of the table that are one measurement."""

    case: Mapping[str, str]
    rows: pandas.DataFrame

    @property
    def ok(self) -> bool:
        return self.rows["status"].iloc[0] == "ok"

    @property
    def values(self) -> pandas.Series:
        return self.rows["value"]

    @property
    def reason(self) -> str:
        return self.rows["reason"].iloc[0]


def summarise(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Columns ``SUMMARY``, in the order of a table.

    mean: over volumes or pairs; the value itself where there is one. sd: the sample standard deviation over them,
    empty where there is one. low, high: 95 % interval of the mean over subjects or, of a score of whole sets, the one
    that was measured with it. n: volumes or pairs behind it. subjects: masks behind those volumes. floor: the mean
    of the same score of real against real sets, with the 2.5th and 97.5th percentile of its draws. real: the mean of
    the same score of real volumes; real_is: which, where its case says so. settings: what else the score depends on,
    such as SSIM's window.
    """
    rows = []
    for (model, device, variant), of_model in scores.groupby(["model", "device", "variant"], sort=False):
        named = {"model": model, "device": device, "variant": variant}
        cells: dict[str, list[Cell]] = {}
        for (metric, case), found in of_model.groupby(["metric", "case"], sort=False):
            cells.setdefault(metric, []).append(Cell(parse_case(case), found))
        for metric in SCORES:
            rows += [named | _summary(metric, cell, cells) for cell in cells.get(metric, ())]
    table = pandas.DataFrame(sorted(rows, key=_position), columns=SUMMARY)
    return table.fillna({"real_is": ""}).astype(dict.fromkeys(NUMBERS, float))


def _summary(metric: str, cell: Cell, cells: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    case = dict(cell.case)
    row: dict[str, Any] = {"metric": metric, "better": SCORES[metric].better, "unit": cell.rows["unit"].iloc[0]}
    row |= {"status": cell.rows["status"].iloc[0], "warning": cell.reason, "note": ""}
    row |= _count(metric, cell, cells)
    if cell.ok:
        row |= {"mean": cell.values.mean(), "sd": cell.values.std(ddof=1), "median": cell.values.median()}
        row |= {"warning": _warning(metric, case, row["n"])}
        row |= _interval(metric, cell, cells) | _beside(metric, cell, cells)
    if len(cell.rows) > 1:
        row |= {"q25": cell.values.quantile(0.25), "q75": cell.values.quantile(0.75)}
    row |= {key: case.pop(key, "") for key in ("modality", "region", "channel", *SAMPLING)}
    return row | {"settings": "; ".join(f"{key}={case[key]}" for key in sorted(case) if key != "reliable")}


def _count(metric: str, cell: Cell, cells: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """Of a score of whole sets the volumes behind its one value, which the table states."""
    stated = cell.rows["n"].iloc[0]
    if SCORES[metric].of == "set":
        return {"n": None if math.isnan(stated) else int(stated)}
    if not cell.ok:
        return {"n": 0}
    n = len(cell.rows)
    by_subject = SCORES[metric].of == "volume" and not _why_not_by_subject(cell, cells)
    return {"n": n, "subjects": n // _repeats(cell)} if by_subject else {"n": n}


def _repeats(cell: Cell) -> int:
    return int(cell.case.get("per_mask", "1"))


def _why_not_by_subject(cell: Cell, cells: Mapping[str, Sequence[Cell]]) -> str:
    """Why the values cannot be told apart by subject; empty where they can.

    They stand in the order of subjects, but a volume without a value, such as the Dice of an empty mask, has none.
    """
    every = _companion("mse", cell, cells)
    lacking = every is not None and every.ok and len(every.rows) != len(cell.rows)
    if _repeats(cell) > 1 and (lacking or len(cell.rows) % _repeats(cell)):
        return "some volumes have no value, and the table does not say which"
    return ""


def _interval(metric: str, cell: Cell, cells: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    if SCORES[metric].of == "pair":
        return _within(metric, of_pairs(cell.values.tolist()))
    if SCORES[metric].of == "volume":
        if reason := _why_not_by_subject(cell, cells):
            return {"note": f"no interval: {reason}"}
        return _within(metric, of_mean(cell.values.tolist(), _repeats(cell)))
    ends = [_companion(f"{metric}_{end}", cell, cells) for end in ("low", "high")]
    if None in ends:
        return {"note": "no interval was measured"}
    if lacking := [end.reason for end in ends if not end.ok]:
        return {"note": f"no interval: {lacking[0]}"}
    low, high = (end.values.iloc[0] for end in ends)
    return {"low": low, "high": high}


def _within(metric: str, ends: tuple[float, float]) -> dict[str, Any]:
    low, high = ends
    return {"low": max(low, SCORES[metric].least), "high": min(high, SCORES[metric].most)}


def _beside(metric: str, cell: Cell, cells: Mapping[str, Sequence[Cell]]) -> dict[str, Any]:
    """What real volumes or sets have, where it was measured."""
    found: dict[str, Any] = {}
    floor, real = (_companion(f"{metric}_{ending}", cell, cells) for ending in ("floor", "real"))
    if floor and floor.ok:
        found |= {"floor": floor.values.mean()}
        if len(floor.values) > 1:
            found |= {"floor_low": floor.values.quantile(0.025), "floor_high": floor.values.quantile(0.975)}
    if real and real.ok:
        more = sorted(set(real.case) - set(cell.case))
        found |= {"real": real.values.mean(), "real_is": "; ".join(f"{key}={real.case[key]}" for key in more)}
    return found


def _companion(metric: str, cell: Cell, cells: Mapping[str, Sequence[Cell]]) -> Cell | None:
    """The measurement that belongs to a score: its case contradicts the score's in nothing, and shares most with it."""
    fitting = [
        other
        for other in cells.get(metric, ())
        if all(cell.case[key] == value for key, value in other.case.items() if key in cell.case)
    ]
    return max(fitting, key=lambda other: len(set(other.case) & set(cell.case)), default=None)


def _warning(metric: str, case: Mapping[str, str], n: int | None) -> str:
    """What a reader must know beside the value; never empty for a FID that is not known to be reliable."""
    needed = metric == "fid"
    if SCORES[metric].of != "set" or case.get("reliable", "no" if needed else "yes") == "yes":
        return ""
    real, dimension = case.get("n_reference", "?"), case.get("dimension", "?")
    return f"unreliable: {'?' if n is None else n} synthetic and {real} real volumes for {dimension} features"


def _position(row: Mapping[str, Any]) -> tuple[Any, ...]:
    steps = int(row["steps"]) if row["steps"].isdigit() else 0
    metric, region = list(SCORES).index(row["metric"]), row["region"] != "whole"
    place = (metric, region, row["region"], row["channel"], row["modality"], row["model"], row["device"])
    return (*place, row["sampler"], row["eta"], steps, row["variant"], row["settings"])
