"""Summarises the tidy table's scores: one row a score and model, with spread, direction and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas

from genaccel.measurement import COLUMNS, parse_case
from genaccel.spec import SpecError

BETTER = {"ssim": "higher", "psnr": "higher", "mse": "lower", "fid": "lower"}
"""Scores in the order of the table, with the direction that is better."""

SAMPLING = ("sampler", "steps", "eta", "split", "size")
"""Keys of a case that say which samples were scored; the others say how."""

SUMMARY = (
    *("metric", "region", "modality", "mean", "sd", "median", "q25", "q75", "n", "unit", "better", "status", "warning"),
    *("model", "device", *SAMPLING, "settings"),
)


def read_scores(path: Path) -> pandas.DataFrame:
    """The rows of stage `metrics` of a tidy table.

    Raises:
        SpecError: not a tidy table, or one without such rows.
    """
    text = dict.fromkeys(("model", "variant", "device", "case", "unit", "reason"), str)
    try:
        table = pandas.read_csv(path, dtype=text, keep_default_na=False, na_values={"value": "", "n": ""})
    except (pandas.errors.EmptyDataError, pandas.errors.ParserError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no tidy table ({error}); derive it with python -m genaccel.table") from None
    if missing := [column for column in COLUMNS if column not in table]:
        raise SpecError(f"{path} lacks the columns {', '.join(missing)}; derive it with python -m genaccel.table")
    scores = table[(table["stage"] == "metrics") & table["metric"].isin(list(BETTER))]
    if scores.empty:
        raise SpecError(f"{path} holds no scores among its {len(table)} rows; run the stage `metrics` first")
    return scores


def summarise(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Columns ``SUMMARY``, in the order of a table.

    ``sd`` is the sample standard deviation over volumes, empty where there is one value. ``n`` counts the volumes;
    those behind its one value for FID. ``settings`` is what else the score depends on, such as SSIM's window.
    """
    cells = scores.groupby(["model", "device", "metric", "unit", "case"], sort=False)
    rows = [_summary(*key, rows) for key, rows in cells]
    return pandas.DataFrame(sorted(rows, key=_position), columns=SUMMARY)


def _summary(model: str, device: str, metric: str, unit: str, case_text: str, rows: pandas.DataFrame) -> dict[str, Any]:
    case, values, ok = parse_case(case_text), rows["value"], rows["status"].iloc[0] == "ok"
    behind = int(rows["n"].iloc[0]) if rows["n"].notna().all() else None
    row: dict[str, Any] = {"metric": metric, "better": BETTER[metric], "unit": unit, "status": rows["status"].iloc[0]}
    row |= {"model": model, "device": device}
    row |= {"n": (len(values) if ok else 0) if behind is None else behind}
    row |= {"warning": _warning(metric, case, row["n"]) if ok else rows["reason"].iloc[0]}
    if ok:
        row |= {"mean": values.mean(), "sd": values.std(ddof=1), "median": values.median()}
    if len(values) > 1:
        row |= {"q25": values.quantile(0.25), "q75": values.quantile(0.75)}
    row |= {key: case.pop(key, "") for key in ("modality", "region", *SAMPLING)}
    return row | {"settings": "; ".join(f"{key}={case[key]}" for key in sorted(case) if key != "reliable")}


def _warning(metric: str, case: Mapping[str, str], n: int) -> str:
    """What a reader must know beside the value; never empty for a FID that is not known to be reliable."""
    if metric != "fid" or case.get("reliable") == "yes":
        return ""
    real, dimension = case.get("n_reference", "?"), case.get("dimension", "?")
    return f"unreliable: {n} synthetic and {real} real volumes for {dimension} features"


def _position(row: Mapping[str, Any]) -> tuple[Any, ...]:
    steps = int(row["steps"]) if row["steps"].isdigit() else 0
    metric, region = list(BETTER).index(row["metric"]), row["region"] != "whole"
    return metric, region, row["region"], row["modality"], row["model"], row["sampler"], steps, *map(str, row.values())
