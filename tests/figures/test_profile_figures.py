"""The figures of profiles, drawn from small tables."""

from __future__ import annotations

import importlib

import pytest

from genaccel.figures.profiled import read_profile
from genaccel.figures.spec import FigureJob
from genaccel.measurement import Result, Run, tidy_rows, write_table
from genaccel.profile.counters import Launch, wanted
from genaccel.profile.results import base_case, counter_results, missing, trace_results
from genaccel.profile.timeline import Launch as Traced
from genaccel.profile.timeline import Step

COUNTERS = ("instruction_mix", "memory_system", "warp_states", "priority_scores", "counters_change")
FIGURES = ("kernel_breakdown", *COUNTERS)
KINDS = (
    ("sm80_xmma_fprop_implicit_gemm", "convolution_forward", 50.0),
    ("RowwiseMomentsCUDAKernel", "normalisation", 20.0),
    ("vectorized_elementwise_kernel", "elementwise", 10.0),
)


def step(slow: float) -> Step:
    launches, time = [], 1.0
    for name, kind, duration in KINDS:
        launches.append(Traced(name, kind, time, duration * slow))
        time += duration * slow + 5
    return Step("any", tuple(launches), 0.0, time)


def counted(slow: float, rules: dict[str, float]) -> list[Launch]:
    values = dict.fromkeys(wanted(), 10.0)
    values |= {"sm__cycles_elapsed.max": 1000 * slow, "smsp__inst_executed.sum": 4e6 * slow}
    return [Launch(name, values, rules) for name, _, _ in KINDS]


def run(variant: str, slow: float, rules: dict[str, float] | None, reason: str = "", model: str = "m") -> Run:
    results: list[Result] = []
    for phase in ("denoise", "train"):
        case = base_case((128, 128, 128), 1, phase)
        results += trace_results([step(slow), step(slow * 1.1)], "kernels", case)
        if rules is None:
            results.append(missing("counter_time", "s", case | {"kernel": "step"}, reason))
        else:
            results += counter_results(counted(slow, rules), step(slow), case)
    empty = {"spec": {}, "workload": {}, "provenance": {}}
    return Run(stage="profile", model=model, variant=variant, device="nvidia-h200", results=tuple(results), **empty)


@pytest.fixture
def table(tmp_path):
    def write(*runs: Run):
        write_table(tmp_path / "profile.csv", [row for run in runs for row in tidy_rows(run)])
        return tmp_path / "profile.csv"

    return write


@pytest.fixture
def two(table):
    return table(
        run("tf32", 1.0, {"LaunchConfiguration": 0.1}),
        run("fp32_strict", 3.0, {"IssueSlotUtilization": 0.3, "CPIStall": 0.2}),
    )


def draw(name, path, make_spec):
    module = importlib.import_module(f"genaccel.figures.{name}")
    return getattr(module, name)(read_profile(path), FigureJob.parse(make_spec()))


@pytest.mark.parametrize("name", FIGURES)
def test_the_command_writes_the_figure(name, two, make_spec, tmp_path):
    out = tmp_path / "figure.svg"
    module = importlib.import_module(f"genaccel.figures.{name}")
    module.main(["--spec", make_spec(format="svg"), "--table", str(two), "--out", str(out)])
    assert out.read_text().count("<svg") == 1


@pytest.mark.parametrize("name", FIGURES)
def test_a_panel_shows_each_phase(name, two, make_spec, texts):
    assert {"denoising step", "training step"} <= set(texts(draw(name, two, make_spec)))


@pytest.mark.parametrize("name", COUNTERS)
def test_without_counters_the_figure_says_why(name, table, make_spec, texts):
    path = table(run("tf32", 1.0, None, "ERR_NVGPUCTRPERM: ask"))
    assert "Not measured: ERR_NVGPUCTRPERM: ask" in texts(draw(name, path, make_spec))


def test_the_slowest_variant_stands_first(two, make_spec):
    axes = draw("kernel_breakdown", two, make_spec).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fp32_strict", "tf32"]


def test_the_bars_of_a_variant_add_up_to_its_step_and_say_how_many_kernels(two, make_spec, texts):
    figure = draw("kernel_breakdown", two, make_spec)
    ends = [max(bar.get_x() + bar.get_width() for bar in figure.axes[0].patches if bar.get_y() > 0)]
    # Classes and idle: the median of two steps of 80 us and 88 us of kernels with 16 us between and around them.
    assert ends[0] == pytest.approx(0.084 + 0.016)
    assert any(text.endswith("ms, 3 kernels") for text in texts(figure))


def test_models_have_panels_of_their_own(table, make_spec, texts):
    path = table(run("tf32", 1.0, {}), run("tf32", 1.0, {}, model="other"))
    assert {"denoising step, m", "denoising step, other"} <= set(texts(draw("kernel_breakdown", path, make_spec)))


def test_counters_stand_against_strict_fp32(two, make_spec, texts):
    figure = draw("counters_change", two, make_spec)
    assert "times fp32_strict" in texts(figure)
    # A third of the cycles, and of the same launches equal bytes.
    assert {"0.33", "1"} <= set(texts(figure))


def test_one_variant_alone_has_nothing_to_stand_against(table, make_spec, texts):
    path = table(run("tf32", 1.0, {}))
    assert "only tf32 was" in " ".join(texts(draw("counters_change", path, make_spec)))


def test_rules_that_expect_nothing_are_said(table, make_spec, texts):
    path = table(run("tf32", 1.0, {}))
    assert "Not measured: no rule expects anything" in texts(draw("priority_scores", path, make_spec))


def test_a_variant_that_cannot_run_is_named_with_its_status(table, make_spec, texts):
    lacking = run("tf32", 1.0, {}).model_copy(
        update={
            "variant": "fp16",
            "results": (missing("profiled_step_time", "s", base_case((128,) * 3, 1, "train"), "no FP16"),),
        }
    )
    assert "unsupported" in texts(draw("kernel_breakdown", table(run("tf32", 1.0, {}), lacking), make_spec))


def test_a_table_without_profiles_is_an_error(make_table, image, make_spec, tmp_path, capsys):
    path = make_table({"m": [image()]})
    module = importlib.import_module("genaccel.figures.kernel_breakdown")
    with pytest.raises(SystemExit):
        module.main(["--spec", make_spec(), "--table", str(path), "--out", str(tmp_path / "x.png")])
    assert "holds no rows of the stage `profile`; run that stage first" in capsys.readouterr().err
