"""What `metrics` found of a variant's quality: beside every speed stands what it costs, or that nobody looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas

from genaccel.measurement import parse_case

ARITHMETIC = ("fp32_strict", "fp32_strict_benchmark")
"""Baselines in whose arithmetic others are judged; both compute the same, but for cuDNN's algorithms."""


class Quality(NamedTuple):
    """``text`` is one of accepted, not accepted, undecided, not measured, baseline; ``reason`` says why."""

    text: str
    reason: str = ""


NOT_MEASURED = Quality("not measured", "no comparison of its volumes with a baseline's in the table of `metrics`")
BASELINE = Quality("baseline", "what others are compared with")


def comparisons(metrics: pandas.DataFrame | None) -> pandas.DataFrame:
    """Rows ``accepted`` of the stage `metrics`, the parts of their cases as columns; empty where there are none."""
    columns = ["sampler", "steps", "modality", "baseline_variant", "baseline_sampler", "baseline_steps"]
    if metrics is None:
        return pandas.DataFrame(columns=["model", "variant", "value", "status", "reason", "n", *columns])
    rows = metrics[metrics["metric"] == "accepted"]
    cases = [parse_case(case) for case in rows["case"]]
    return rows.assign(**{key: [case.get(key, "") for case in cases] for key in columns})


def of_arithmetic(found: pandas.DataFrame, variant: str) -> Quality:
    """Of a variant against strict FP32 with the same sampler and steps, whatever these are."""
    if variant in ARITHMETIC:
        return BASELINE
    same = (found["sampler"] == found["baseline_sampler"]) & (found["steps"] == found["baseline_steps"])
    return _together(found[(found["variant"] == variant) & same & found["baseline_variant"].isin(ARITHMETIC)])


def of_volume(found: pandas.DataFrame, variant: str, sampler: str, steps: str, chain: tuple[str, str]) -> Quality:
    """Of volumes of a variant, sampler and steps against the whole chain in strict FP32.

    One comparison with that very run, or a way there over several: another arithmetic at the same steps, and more
    steps in the same arithmetic.

    Args:
        chain: sampler and steps of the whole chain.
    """
    own = found[(found["variant"] == variant) & (found["sampler"] == sampler) & (found["steps"] == steps)]
    to_chain = (own["baseline_sampler"] == chain[0]) & (own["baseline_steps"] == chain[1])
    strict = own["baseline_variant"].isin(ARITHMETIC)
    if (direct := own[to_chain & strict]).shape[0]:
        return _together(direct)
    if (sampler, steps) == chain:
        return BASELINE if variant in ARITHMETIC else NOT_MEASURED
    parts = [own[to_chain & (own["baseline_variant"] == variant)]]
    if variant not in ARITHMETIC:
        same = (own["baseline_sampler"] == sampler) & (own["baseline_steps"] == steps)
        parts.append(own[strict & same])
    if any(part.empty for part in parts):
        return NOT_MEASURED
    return _together(pandas.concat(parts))


def _together(rows: pandas.DataFrame) -> Quality:
    """One verdict of several comparisons: accepted where all are."""
    if rows.empty:
        return NOT_MEASURED
    told = rows[rows["status"] == "ok"]
    if (refused := told[told["value"] != 1]).shape[0]:
        return Quality("not accepted", _reasons(refused))
    if len(told) < len(rows):
        return Quality("undecided", _reasons(rows[rows["status"] != "ok"]))
    return Quality("accepted", _reasons(rows))


def _reasons(rows: pandas.DataFrame) -> str:
    texts: Sequence[str] = [
        f"{row.model}, {row.variant}, {row.sampler} {row.steps} against {row.baseline_variant}, {row.baseline_sampler} "
        f"{row.baseline_steps}, n = {row.n:.0f}: {row.reason}"
        for row in rows.itertuples()
    ]
    return "; ".join(dict.fromkeys(texts))
