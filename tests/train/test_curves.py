"""Losses of several seeds and variants, compared."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genaccel.figures.spec import FigureJob
from genaccel.figures.tidy import read_tidy
from genaccel.figures.training_curves import training_curves
from genaccel.measurement import Result, Run, merge_runs, read_run, write_run, write_table
from genaccel.spec import SpecError
from genaccel.train.curves import main
from genaccel.train.smoothing import WINDOW, apart, smoothed

STEPS = 120


def losses(seed: int, shift: float = 0.0) -> list[float]:
    noise = np.random.default_rng(seed).normal(0, 0.02, STEPS)
    return (0.1 + 0.9 * np.exp(-np.arange(STEPS) / 30) + 0.01 * seed + noise.clip(-0.05, 0.05) + shift).tolist()


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=80), st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_a_smoothed_loss_lies_within_the_losses(values, window):
    found = smoothed(values, window)
    assert len(found) == len(values) - min(window, len(values)) + 1
    assert min(values) - 1e-9 <= found.min() <= found.max() <= max(values) + 1e-9


@pytest.mark.parametrize(("shift", "within"), [(0.0, True), (0.015, True), (-0.015, True), (0.03, False)])
def test_a_shift_counts_against_the_spread_over_seeds(shift, within):
    found = apart({seed: losses(seed, shift) for seed in range(3)}, {seed: losses(seed) for seed in range(3)})
    assert found.by_seed == pytest.approx((shift,) * 3)
    assert found.mean == pytest.approx(shift)
    assert found.seed_range == pytest.approx(0.02, rel=0.5)
    assert found.within is within


@pytest.mark.parametrize("other", [{0: losses(0)}, {0: losses(0), 2: losses(2)}, {0: losses(0), 1: losses(1)[:-1]}])
def test_curves_that_are_no_pairs_are_refused(other):
    with pytest.raises(ValueError, match=r"curves are (paired by seed|of equal length)"):
        apart({0: losses(0), 1: losses(1)}, other)


@pytest.fixture
def gather(tmp_path):
    """Writes trainings, and compares the second variant with the first: ``gather({variant: {seed: losses}})``."""

    def write(variant, seed, values, steps):
        folder = tmp_path / f"{variant}_{seed}"
        folder.mkdir(exist_ok=True)
        train = {"steps": steps, "seed": seed, "variant": variant}
        work = {"model": {}, "train": {"steps": steps, "seed": seed}}
        result = Result(metric="training_time", unit="s", case={"size": "8x8x8", "batch": 1}, values=(1.0,))
        run = Run(
            stage="train", model=folder.name, variant=variant, device="cpu", spec={"train": train}, workload=work,
            provenance={"packages": {"torch": "2"}}, results=(result,),
        )  # fmt: skip
        write_run(folder / "run.json", run)
        rows = "".join(f"{step},{loss!r},1\n" for step, loss in enumerate(values, 1))
        (folder / "loss.csv").write_text(f"step,loss,volumes_per_s\n{rows}")
        return folder

    def run(trainings, steps=STEPS):
        paths, baseline = [], []
        for variant, by_seed in trainings.items():
            folders = [write(variant, seed, values, steps) for seed, values in by_seed.items()]
            options = {"runs": [f / "run.json" for f in folders], "losses": [f / "loss.csv" for f in folders]}
            given = [text for name, files in options.items() for text in (f"--{name}", *map(str, files))]
            out = tmp_path / f"{variant}.json"
            job = {"study": "curves", "variant": variant, "baseline": "fp32_strict"}
            main(["--spec", json.dumps(job), "--code", "c", *given, *baseline, "--out", str(out)])
            baseline = baseline or [text.replace("--", "--baseline-") for text in given]
            paths.append(out)
        return paths

    return run


SEEDS = {seed: losses(seed) for seed in range(3)}


def test_every_loss_and_the_verdict_are_rows_of_one_table(gather, tmp_path):
    strict, fast = gather({"fp32_strict": SEEDS, "fast": {seed: losses(seed, 0.001) for seed in range(3)}})
    assert {result.metric for result in read_run(strict).results} == {"training_loss"}
    found = {result.metric: result for result in read_run(fast).results}
    assert found["loss_difference"].values == pytest.approx((0.001,) * 3)
    assert found["within_seed_range"].values == (1.0,)
    assert "within the between-seed range" in found["within_seed_range"].reason
    rows = merge_runs([strict, fast])
    assert sum(row["metric"] == "training_loss" for row in rows) == 2 * 3 * STEPS
    assert read_run(strict).workload == read_run(fast).workload


def test_trainings_that_differ_in_more_than_seed_and_variant_are_an_error(gather, capsys, tmp_path):
    gather({"fp32_strict": SEEDS})
    (tmp_path / "fp32_strict_1").rename(tmp_path / "kept")
    gather({"fp32_strict": {1: SEEDS[1]}}, steps=7)
    files = [tmp_path / name for name in ("fp32_strict_0", "fp32_strict_1")]
    job = json.dumps({"study": "curves", "variant": "fp32_strict", "baseline": "fp32_strict"})
    given = ["--runs", *(str(f / "run.json") for f in files), "--losses", *(str(f / "loss.csv") for f in files)]
    with pytest.raises(SystemExit):
        main(["--spec", job, *given, "--out", str(tmp_path / "out.json")])
    assert "fp32_strict_1 differ from that of fp32_strict_0 in more than seed and variant" in capsys.readouterr().err


def test_the_figure_shows_losses_of_every_seed_and_paired_differences(gather, tmp_path):
    paths = gather({"fp32_strict": SEEDS, "fast": {seed: losses(seed, 0.05) for seed in range(3)}})
    write_table(tmp_path / "curves.csv", merge_runs(paths))
    job = FigureJob.build({"title": "curves", "figures": {}})
    figure = training_curves(read_tidy(tmp_path / "curves.csv", "train"), job)
    upper, lower = figure.axes
    assert len(upper.lines) == 6
    assert upper.lines[0].get_xdata()[0] == WINDOW
    mean = next(line for line in lower.lines if "mean over seeds" in str(line.get_label()))
    assert mean.get_ydata() == pytest.approx([0.05] * (STEPS - WINDOW + 1))
    assert "beyond the between-seed range" in lower.get_title(loc="left")


def test_a_figure_without_a_comparison_says_what_to_run(gather, tmp_path):
    write_table(tmp_path / "curves.csv", merge_runs(gather({"fp32_strict": SEEDS})))
    with pytest.raises(SpecError, match=r"comparisons with none; gather them with python -m genaccel\.train\.curves"):
        training_curves(read_tidy(tmp_path / "curves.csv", "train"), FigureJob.build({"title": "c", "figures": {}}))
