"""Reads the rows of the stage `profile` for its figures: one row a value, the parts of its case as columns."""

from __future__ import annotations

from pathlib import Path

import pandas

from genaccel.figures.tidy import read_tidy
from genaccel.measurement import parse_case
from genaccel.spec import SpecError

PHASES = {"denoise": "denoising step", "train": "training step"}
"""Phases as figures write them, in their order."""

CASE = ("size", "batch", "phase", "of", "class", "kernel", "pipe", "memory", "state", "rule")


def read_profile(path: Path) -> pandas.DataFrame:
    """Rows of stage `profile` with the columns of ``CASE`` beside the table's own; empty text where a case lacks one.

    Raises:
        SpecError: not a tidy table, or one without such rows.
    """
    rows = read_tidy(path, "profile")
    if rows.empty:
        raise SpecError(f"{path} holds no rows of the stage `profile`; run that stage first")
    cases = [parse_case(case) for case in rows["case"]]
    return rows.assign(**{key: [case.get(key, "") for case in cases] for key in CASE})


def workloads(rows: pandas.DataFrame) -> list[tuple[str, pandas.DataFrame]]:
    """Each model with its device, size and batch, as ``(title, rows)``; named as far as there are several."""
    keys = ["model", "device", "size", "batch"]
    several = [key for key in keys if rows[key].nunique() > 1]
    found = []
    for values, group in rows.groupby(keys, sort=True):
        named = dict(zip(keys, values, strict=True))
        words = {"size": f"{named['size']} voxels a side", "batch": f"batch {named['batch']}"}
        found.append((", ".join(words.get(key, named[key]) for key in several), group))
    return found


def variants_of(rows: pandas.DataFrame) -> list[str]:
    """Variants of the rows, the slowest first."""
    times = rows[rows["metric"].isin(["profiled_step_time", "counter_time"]) & rows["kernel"].isin(["", "step"])]
    slow = times.groupby("variant")["value"].sum()
    return sorted(rows["variant"].unique(), key=lambda name: (-slow.get(name, 0.0), name))


def phases_of(rows: pandas.DataFrame) -> list[str]:
    return [phase for phase in PHASES if (rows["phase"] == phase).any()]


def of_step(rows: pandas.DataFrame, metric: str) -> pandas.DataFrame:
    """Counters of all measured launches of a step together, those that were measured."""
    return rows[(rows["metric"] == metric) & (rows["kernel"] == "step") & (rows["status"] == "ok")]


def why_no_counters(rows: pandas.DataFrame) -> str:
    """Why a table holds no hardware counters."""
    reasons = rows.loc[(rows["metric"] == "counter_time") & (rows["status"] != "ok"), "reason"].unique()
    return "; ".join(reasons) or "Nsight Compute was not asked (profile.ncu.launches: 0)"


def counted(rows: pandas.DataFrame) -> str:
    """How counters were measured, and what share of each step's kernel time they cover."""
    shares = of_step(rows, "counter_coverage")["value"] * 100
    span = f"{shares.min():.0f}" + (f" to {shares.max():.0f}" if shares.max() - shares.min() >= 1 else "")
    return f"Nsight Compute, clocks and caches left as they are; kernels that take {span} % of a step's kernel time."


def with_times(rows: pandas.DataFrame, shown: pandas.DataFrame) -> pandas.DataFrame:
    """What a figure shows together with what orders its variants and scales its counts."""
    beside = [of_step(rows, metric) for metric in ("counter_time", "counter_coverage")]
    return pandas.concat([shown, *beside]).drop_duplicates(["model", "device", "variant", "case", "metric", "repeat"])
