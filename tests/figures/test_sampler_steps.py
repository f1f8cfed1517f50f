import pytest
from matplotlib.text import Text

from genaccel.figures.sampler_steps import main, sampler_steps
from genaccel.figures.scores import read_scores
from genaccel.figures.spec import FigureJob
from genaccel.figures.summary import summarise
from genaccel.spec import SpecError


@pytest.fixture
def draw(make_table, make_spec):
    def draw(models):
        return sampler_steps(summarise(read_scores(make_table(models))), FigureJob.parse(make_spec("demo")))

    return draw


@pytest.fixture
def run(image, distance):
    """Results of one sampler and number of steps."""

    def run(sampler, steps, reliable="yes", **case):
        named = {"sampler": sampler, "steps": steps} | case
        return [
            image(values=(0.5, 0.55, 0.6), **named),
            *distance(
                "fid", 100 / steps, low=80 / steps, high=130 / steps, floor=(0.5, 1.0), reliable=reliable, **named
            ),
            *distance("kid", 1 / steps, low=-0.5 / steps, high=2 / steps, **named),
        ]

    return run


def line(axes, steps):
    """The line through as many points as there are steps."""
    return next(line for line in axes.lines if len(line.get_xdata()) == steps and line.get_linestyle() == "-")


def test_a_line_a_sampler_goes_through_its_steps(draw, run):
    figure = draw({"m": [result for steps in (5, 20, 10) for result in run("ddim", steps)]})
    fid, kid, ssim = figure.axes
    assert line(fid, 3).get_xdata().tolist() == [5, 10, 20]
    assert line(fid, 3).get_ydata().tolist() == [20, 10, 5]
    assert line(kid, 3).get_ydata().tolist() == [0.2, 0.1, 0.05]
    assert line(ssim, 3).get_ydata() == pytest.approx([0.55] * 3)
    assert {axes.get_xscale() for axes in figure.axes} == {"log"}


def test_every_sampler_has_a_colour_and_a_marker_of_its_own(draw, run, texts):
    samplers = ("ddim", "deis", "dpm_solver_pp", "ipndm")
    figure = draw({"m": [r for sampler in samplers for steps in (5, 10) for r in run(sampler, steps)]})
    handles = [handle for handle in figure.legends[0].legend_handles if hasattr(handle, "get_marker")]
    assert len({handle.get_color() for handle in handles}) == len({handle.get_marker() for handle in handles}) == 4
    assert set(samplers) <= set(texts(figure))


def test_variants_of_one_sampler_are_lines_of_their_own(make_table, make_spec, run, texts, tmp_path):
    rows = []
    for variant in ("fp32_strict", "fast"):
        lines = make_table({"m": [r for steps in (5, 10) for r in run("ddim", steps)]}, variant=variant).read_text()
        rows += lines.splitlines(keepends=True)[bool(rows) :]
    (tmp_path / "table.csv").write_text("".join(rows))
    figure = sampler_steps(summarise(read_scores(tmp_path / "table.csv")), FigureJob.parse(make_spec("demo")))
    assert {"ddim, fast", "ddim, fp32_strict"} <= set(texts(figure))
    assert sum(len(line.get_xdata()) == 2 and line.get_linestyle() == "-" for line in figure.axes[0].lines) == 2


def test_points_have_their_intervals(draw, run):
    fid = draw({"m": [result for steps in (5, 10) for result in run("ddim", steps)]}).axes[0]
    ends = [end for bar in fid.collections for segment in bar.get_segments() for end in segment[:, 1]]
    assert sorted(ends) == pytest.approx([8, 13, 16, 26])


def test_the_ancestral_chain_is_a_level_with_its_interval_as_a_band(draw, run, texts):
    figure = draw({"m": [*run("ddim", 10), *run("ddpm", 250)]})
    fid = figure.axes[0]
    (level,) = [line for line in fid.lines if line.get_linestyle() == "--"]
    assert set(level.get_ydata()) == {0.4}
    bands = [(patch.get_y(), patch.get_y() + patch.get_height()) for patch in fid.patches]
    assert pytest.approx((80 / 250, 130 / 250)) in bands
    assert "ddpm: every step" in texts(figure)


def test_the_floor_is_a_band(draw, run, texts):
    figure = draw({"m": run("ddim", 10)})
    (floor,) = figure.axes[0].patches
    assert 0.5 <= floor.get_y() < floor.get_y() + floor.get_height() <= 1.0
    assert not figure.axes[1].patches
    assert "real against real" in texts(figure)


def test_what_is_unreliable_is_open_and_said_with_its_reason(draw, run, texts):
    figure = draw({"m": [*run("ddim", 5, reliable="no"), *run("ddim", 10)]})
    points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert sorted(line.get_markerfacecolor() == "white" for line in points) == [False, True]
    assert "open markers unreliable" in texts(figure)
    assert "Unreliable: 4 synthetic and 3 real volumes for 240 features." in texts(figure)


def test_a_point_without_an_interval_is_said(draw, distance, texts):
    assert "No interval was measured." in texts(draw({"m": distance(reliable="yes")}))


@pytest.mark.parametrize("sampler", ["ddim", "ddpm"])
def test_one_sampler_and_number_of_steps_is_drawn(draw, run, texts, sampler):
    figure = draw({"m": run(sampler, 7)})
    figure.draw_without_rendering()
    ticks = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert ticks == ["7"]


def test_scores_of_volumes_without_a_distance_are_drawn_alone(draw, image):
    assert len(draw({"m": [image()]}).axes) == 1


def test_a_score_that_is_not_available_is_said(draw, run, image, texts):
    fid, *rest = run("ddim", 5)[1:2]
    missing = fid.model_copy(update={"values": (), "status": "unsupported", "reason": "one volume"})
    assert "not available" in texts(draw({"m": [image(steps=5), missing, *rest]}))


@pytest.mark.parametrize(("models", "modalities"), [(1, 1), (2, 1), (1, 4), (2, 4), (3, 3)])
def test_each_model_and_modality_has_a_column_and_a_page_stays_narrow(draw, run, image, texts, models, modalities):
    names, kinds = "abc"[:models], ("t1", "t1ce", "t2", "flair")[:modalities]
    figure = draw({name: [image(steps=n, modality=kind) for kind in kinds for n in (5, 10)] for name in names})
    assert {f"{name}, {kind}" for name in names for kind in kinds} <= set(texts(figure))
    assert sum(axes.get_visible() for axes in figure.axes) == models * modalities
    assert figure.get_figwidth() < 13


def test_no_letter_is_smaller_than_seven_points(draw, run):
    figure = draw({"m": [*run("ddim", 5, reliable="no"), *run("ddpm", 250)]})
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= 7


def test_a_table_without_such_scores_is_an_error(draw, image):
    with pytest.raises(SpecError, match="holds no FID, KID or SSIM"):
        draw({"m": [image("psnr")]})


def test_the_command_writes_the_figure(make_table, make_spec, run, tmp_path):
    table, out = make_table({"m": run("ddim", 5)}), tmp_path / "steps.png"
    main(["--spec", make_spec(), "--code", "figures@0", "--table", str(table), "--out", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
