import math

import pandas
import pytest

from genaccel.figures.spec import FigureJob
from genaccel.figures.speed import speed_table
from genaccel.figures.speedups import main, speedups
from genaccel.figures.style import WARNING
from genaccel.figures.tidy import read_tidy
from genaccel.measurement import Result, Run, tidy_rows, write_table

STEP = {"size": "128", "batch": 1}
FEW, ALL = {"sampler": "dpm_solver_pp", "steps": 20}, {"sampler": "ddpm", "steps": 250}


def timing(metric, *values, **case):
    return Result(metric=metric, unit="s", case=STEP | case, values=values)


def variant_results(train, denoise, memory=19.1, error=None):
    results = [timing("train_step_time", *train), timing("denoise_step_time", *denoise)]
    results += [
        Result(metric="peak_memory", unit="B", case=STEP | {"step": step}, values=(memory * 2**30 / part,))
        for step, part in (("train", 1), ("denoise", 4))
    ]
    if error:
        values = zip((5, 125, 245), (error / 2, error, error / 3), strict=True)
        results += [Result(metric="output_rel_error", unit="1", case=STEP | {"t": t}, values=(e,)) for t, e in values]
    return results


MEASURED = {
    "fp32_strict": [*variant_results((1.22, 1.24, 1.26), (0.197, 0.198, 0.199)), timing("volume_time", 49.4, **ALL)],
    "fp32_strict_benchmark": variant_results((0.85, 0.86, 0.87), (0.188, 0.188, 0.189)),
    "bf16": variant_results((0.15, 0.152, 0.154), (0.078, 0.079, 0.08), 16.8, 1e-2),
    "fast": [
        *variant_results((0.05, 0.051, 0.052), (0.0158, 0.016, 0.0163), 7.9, 9e-3),
        timing("volume_time", 0.32, **FEW),
        timing("volume_time", 4.0, **ALL),
    ],
    "broken": [
        Result(metric=metric, unit="s", case=STEP, status="oom", reason="needed 150 GiB of 139.8 GiB")
        for metric in ("train_step_time", "denoise_step_time")
    ],
}


def accepted(of, against, value=1.0, status="ok", reason="FID difference +0.0001"):
    case = {**of, "modality": "t1"} | {f"baseline_{key}": text for key, text in against.items()}
    values = {"values": (value,)} if status == "ok" else {"status": status}
    return Result(metric="accepted", unit="1", case=case, n=256, reason=reason, **values)


def judged(*pairs):
    """Results of variants by name, of which each is compared with the others that follow it."""
    found = {}
    for variant, of, base, against, *rest in pairs:
        found.setdefault(variant, []).append(accepted(of, {"variant": base, **against}, *rest))
    return found


@pytest.fixture
def write(tmp_path):
    """Writes the tidy table of a stage: results by variant."""

    def make(stage, results):
        rows = []
        for variant, of_variant in results.items():
            run = Run(
                stage=stage, model="whole_head", variant=variant, device="nvidia-h200", spec={}, workload={},
                provenance={}, results=tuple(of_variant),
            )  # fmt: skip
            rows += tidy_rows(run)
        write_table(tmp_path / f"{stage}.csv", rows)
        return tmp_path / f"{stage}.csv"

    return make


@pytest.fixture
def table(write):
    def make(metrics=None, measured=MEASURED):
        optimize = read_tidy(write("optimize", measured), "optimize")
        return speed_table(optimize, None if metrics is None else read_tidy(write("metrics", metrics), "metrics"))

    return make


def line(table, measure, variant, **more):
    rows = table[(table["measure"] == measure) & (table["variant"] == variant)]
    for key, value in more.items():
        rows = rows[rows[key] == value]
    (row,) = rows.itertuples()
    return row


@pytest.mark.parametrize(
    ("measure", "published", "tuned"),
    [("training step", 1.24 / 0.051, 0.86 / 0.051), ("denoising step", 12.375, 11.75)],
)
def test_the_speedup_is_that_over_the_harder_baseline_beside_the_published_one(table, measure, published, tuned):
    row = line(table(), measure, "fast")
    assert row.harder_baseline == "fp32_strict_benchmark"
    assert row.speedup == row.speedup_tuned == pytest.approx(tuned)
    assert row.speedup_published == pytest.approx(published)
    assert row.speedup_low < row.speedup < row.speedup_high


def test_memory_is_that_of_the_step_and_the_error_the_largest(table):
    for measure, gib in (("training step", 7.9), ("denoising step", 7.9 / 4)):
        row = line(table(), measure, "fast")
        assert row.peak_memory_bytes == pytest.approx(gib * 2**30)
        assert row.output_rel_error == 9e-3


def test_a_volumes_speedup_is_its_steps_times_fewer_steps(table):
    row = line(table(), "volume", "fast", steps="20")
    assert row.speedup == pytest.approx(49.4 / 0.32)
    assert row.steps_ratio == 12.5
    assert row.step_ratio * row.steps_ratio == pytest.approx(row.speedup)
    assert line(table(), "volume", "fast", steps="250").steps_ratio == 1


@pytest.mark.parametrize(("other", "fastest"), [((0.05, 0.0506, 0.0512), {"fast", "bf16"}), ((0.06,) * 3, {"fast"})])
def test_no_winner_is_named_within_the_noise(table, other, fastest):
    measured = MEASURED | {"bf16": variant_results(other, (0.1,) * 3)}
    found = table(measured=measured)
    steps = found[found["measure"] == "training step"]
    assert set(steps.loc[steps["fastest"] == 1, "variant"]) == fastest


def test_a_failed_variant_keeps_its_line_with_status_and_reason(table):
    row = line(table(), "training step", "broken")
    assert (row.status, row.reason, math.isnan(row.speedup)) == ("oom", "needed 150 GiB of 139.8 GiB", True)


def test_without_a_baseline_there_is_no_speedup(table):
    row = line(table(measured={"fast": MEASURED["fast"]}), "training step", "fast")
    assert math.isnan(row.speedup)
    assert row.time_s == 0.051


SAME = ("fast", FEW, "fp32_strict", FEW)
FEWER = ("fast", FEW, "fast", ALL)


@pytest.mark.parametrize(
    ("pairs", "step", "volume"),
    [
        ([], "not measured", "not measured"),
        ([SAME], "accepted", "not measured"),
        ([SAME, FEWER], "accepted", "accepted"),
        ([(*SAME, 0.0), FEWER], "not accepted", "not accepted"),
        ([SAME, (*FEWER, 0.0)], "accepted", "not accepted"),
        ([("fast", FEW, "fp32_strict", ALL)], "not measured", "accepted"),
        ([(*SAME, 1.0, "unsupported", "too few volumes")], "undecided", "not measured"),
    ],
)
def test_a_verdict_stands_beside_each_speed_and_never_a_blank(table, pairs, step, volume):
    found = table(judged(*pairs))
    assert line(found, "denoising step", "fast").quality == step
    assert line(found, "volume", "fast", steps="20").quality == volume
    assert line(found, "denoising step", "fp32_strict").quality == "baseline"
    assert (found["quality"] != "").all()


def test_the_figure_shows_every_variant_its_quality_and_why_one_failed(table, make_spec, texts):
    figure = speedups(table(judged(SAME, FEWER)), FigureJob.parse(make_spec("demo")))
    shown = texts(figure)
    assert any(text.startswith("fast") for text in shown)
    assert "out of memory" in shown
    assert any("needed 150 GiB" in text for text in shown)
    assert any(text.startswith("accepted") for text in shown)
    assert "not measured" in shown
    assert any("154\N{MULTIPLICATION SIGN} = 12." in text for text in shown)


def test_the_command_writes_figure_and_table_with_or_without_scores(write, make_spec, tmp_path):
    optimize, metrics = write("optimize", MEASURED), write("metrics", judged(SAME))
    for scores in ([], ["--metrics", str(metrics)]):
        out = ["--out", str(tmp_path / "speedups.png"), "--summary", str(tmp_path / "speedups.csv")]
        main(["--spec", make_spec("demo"), "--optimize", str(optimize), *scores, *out])
        found = pandas.read_csv(tmp_path / "speedups.csv")
        assert set(found["measure"]) == {"training step", "denoising step", "volume"}
        assert (tmp_path / "speedups.png").stat().st_size > 10_000
        assert found.loc[found["variant"] == "fast", "quality"].isin(["accepted"]).any() == bool(scores)


def test_a_table_without_times_says_what_to_run(write, make_spec, tmp_path, capsys):
    empty = write("optimize", {"fast": [Result(metric="flops", unit="FLOP", case=STEP, values=(1.0,))]})
    out = ["--out", str(tmp_path / "s.png"), "--summary", str(tmp_path / "s.csv")]
    with pytest.raises(SystemExit):
        main(["--spec", make_spec("demo"), "--optimize", str(empty), *out])
    assert "holds no times of steps or volumes; run the stage `optimize` first" in capsys.readouterr().err


def test_unlike_versions_stand_below_in_red(table, make_spec):
    figure = speedups(table(), FigureJob.parse(make_spec("demo")), ["unlike torch: 2.11.0 (a), 2.13.0 (b)"])
    (found,) = [text for text in figure.texts if "unlike torch" in text.get_text()]
    assert found.get_text() == "Warning: unlike torch: 2.11.0 (a), 2.13.0 (b)"
    assert found.get_color() == WARNING
