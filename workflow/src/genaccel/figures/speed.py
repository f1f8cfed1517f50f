"""Speed of variants from the rows of the stage `optimize`: ratios to the strict-FP32 baselines, with their spread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas

from genaccel.figures.verdicts import NOT_MEASURED, Quality, comparisons, of_arithmetic, of_volume
from genaccel.measurement import parse_case

PUBLISHED, TUNED = "fp32_strict", "fp32_strict_benchmark"
"""The papers' baseline as they ran it, and with cuDNN's algorithms timed; the faster of the two is the harder one."""

MEASURES = {
    "train_step_time": ("training step", "train"),
    "denoise_step_time": ("denoising step", "denoise"),
    "volume_time": ("volume", "denoise"),
}
"""Metrics of time: what they are of, and the step whose memory stands beside them."""

COLUMNS = (
    *("model", "device", "size", "batch", "measure", "variant", "sampler", "steps"),
    *("time_s", "time_low_s", "time_high_s", "repeats"),
    *("speedup", "speedup_low", "speedup_high", "harder_baseline", "speedup_published", "speedup_tuned"),
    *("steps_ratio", "step_ratio", "fastest"),
    *("peak_memory_bytes", "output_rel_error", "quality", "quality_reason", "status", "reason"),
)
GROUP = ("model", "device", "size", "batch")


class Time(NamedTuple):
    """Median of the repeats, and their quartiles."""

    median: float
    low: float
    high: float
    repeats: int


def speed_table(optimize: pandas.DataFrame, metrics: pandas.DataFrame | None) -> pandas.DataFrame:
    """Columns ``COLUMNS``: one row a variant and measure, and of volumes a sampler and number of steps.

    speedup: over the harder of the two strict-FP32 baselines, of medians; low and high from the quartiles of both.
    A volume's baseline is the run of strict FP32 with the most steps: steps_ratio tells how much of the speed-up is
    in fewer steps, step_ratio how much in faster ones. fastest: 1 for the variant with the shortest median and for
    all whose quartiles overlap with its own, so that none is named within the noise.

    Args:
        optimize: rows of the stage.
        metrics: rows of the stage `metrics`; None leaves all quality not measured.
    """
    rows = optimize.reset_index(drop=True)
    cases = [parse_case(case) for case in rows["case"]]
    rows = rows.assign(**{key: [case.get(key, "") for case in cases] for key in ("size", "batch", "sampler", "steps")})
    rows = rows.assign(step=[case.get("step", "") for case in cases])
    found = comparisons(metrics)
    lines: list[dict[str, Any]] = []
    for names, group in rows.groupby(list(GROUP), sort=False):
        for metric in MEASURES:
            lines += _measure(dict(zip(GROUP, names, strict=True)), metric, group, found)
    return pandas.DataFrame(lines, columns=COLUMNS)


def _measure(
    named: dict[str, str], metric: str, group: pandas.DataFrame, found: pandas.DataFrame
) -> Iterator[dict[str, Any]]:
    cells = dict(iter(group[group["metric"] == metric].groupby(["variant", "sampler", "steps"], sort=False)))
    times = {key: time for key, cell in cells.items() if (time := _time(cell))}
    chain = _chain(times)
    baselines = {
        name: times[name, *chain] for name in (PUBLISHED, TUNED) if chain is not None and (name, *chain) in times
    }
    harder = min(baselines, key=lambda name: baselines[name].median, default="")
    best = min(times.values(), key=lambda time: time.median, default=None)
    what, step = MEASURES[metric]
    for (variant, sampler, steps), cell in cells.items():
        line = named | {"measure": what, "variant": variant, "sampler": sampler, "steps": steps}
        line |= {"status": cell["status"].iloc[0], "reason": cell["reason"].iloc[0], "harder_baseline": harder}
        line |= _beside(variant, step, group)
        quality = _quality(metric, found, variant, sampler, steps, chain)
        line |= {"quality": quality.text, "quality_reason": quality.reason}
        if time := times.get((variant, sampler, steps)):
            line |= {"time_s": time.median, "time_low_s": time.low, "time_high_s": time.high, "repeats": time.repeats}
            line |= {"fastest": int(best is not None and time.low <= best.high)}
            line |= _ratios(time, baselines, harder)
            if steps and chain and harder:
                ratio = int(chain[1]) / int(steps)
                line |= {"steps_ratio": ratio, "step_ratio": line["speedup"] / ratio}
        yield line


def _time(cell: pandas.DataFrame) -> Time | None:
    values = cell.loc[cell["status"] == "ok", "value"]
    if values.empty:
        return None
    return Time(values.median(), values.quantile(0.25), values.quantile(0.75), len(values))


def _chain(times: dict[tuple[str, str, str], Time]) -> tuple[str, str] | None:
    """Sampler and steps that ratios are taken to: those of strict FP32 with the most steps; empty for single steps."""
    strict = [(sampler, steps) for variant, sampler, steps in times if variant in (PUBLISHED, TUNED)]
    return max(strict, key=lambda sampling: int(sampling[1] or 0), default=None)


def _ratios(time: Time, baselines: dict[str, Time], harder: str) -> dict[str, float]:
    ratios = {
        f"speedup_{name}": baselines[baseline].median / time.median
        for name, baseline in (("published", PUBLISHED), ("tuned", TUNED))
        if baseline in baselines
    }
    if not harder:
        return ratios
    base = baselines[harder]
    return ratios | {
        "speedup": base.median / time.median,
        "speedup_low": base.low / time.high,
        "speedup_high": base.high / time.low,
    }


def _beside(variant: str, step: str, group: pandas.DataFrame) -> dict[str, float]:
    """Peak memory of the step, and the largest error of the output, where they were measured."""
    own = group[(group["variant"] == variant) & (group["status"] == "ok")]
    memory = own.loc[(own["metric"] == "peak_memory") & (own["step"] == step), "value"]
    errors = own.loc[own["metric"] == "output_rel_error", "value"]
    return {
        "peak_memory_bytes": memory.max() if len(memory) else math.nan,
        "output_rel_error": errors.max() if len(errors) else math.nan,
    }


def _quality(
    metric: str, found: pandas.DataFrame, variant: str, sampler: str, steps: str, chain: tuple[str, str] | None
) -> Quality:
    if metric != "volume_time":
        return of_arithmetic(found, variant)
    return NOT_MEASURED if chain is None else of_volume(found, variant, sampler, steps, chain)
