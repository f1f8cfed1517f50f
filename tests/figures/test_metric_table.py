import pandas
import pytest
from matplotlib.text import Text

from genaccel.figures.metric_table import main, metric_table
from genaccel.figures.scores import read_scores
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MINUS
from genaccel.figures.summary import SUMMARY, summarise
from genaccel.measurement import Result

GRID = {"distance": "rmse", "grid": "16x16x16"}


@pytest.fixture
def draw(make_table, make_spec):
    """The figure of the results of models."""

    def draw(models):
        return metric_table(summarise(read_scores(make_table(models))), FigureJob.parse(make_spec("demo")))

    return draw


@pytest.fixture
def written(draw, texts):
    return lambda *results, **models: texts(draw(models or {"tiny": list(results)}))


def unsupported(image, metric="fid", reason="FID needs two volumes a side"):
    case = {key: value for key, value in image().case.items() if key in ("sampler", "steps", "eta", "split", "size")}
    return Result(metric=metric, unit="1", case=case | {"modality": "t1"}, status="unsupported", reason=reason)


@pytest.mark.parametrize("models", [1, 3])
def test_the_figure_never_shows_an_unreliable_fid_without_saying_so(written, image, distance, models):
    found = written(**{f"m{n}": [image(), *distance(reliable="no")] for n in range(models)})
    assert [text for text in found if text.startswith("12.3")] == ["12.3 unreliable *"] * models
    assert "* unreliable: 4 synthetic and 3 real volumes for 240 features" in found


def test_a_score_that_is_missing_has_its_reason_as_a_note(written, image):
    found = written(image(), unsupported(image))
    assert "not available *" in found
    assert "* FID needs two volumes a side" in found


def test_different_notes_have_different_marks(written, image, distance):
    found = written(a=distance(low=1, high=20, reliable="no"), b=[unsupported(image)])
    assert {"12.3 unreliable *", "not available †"} <= set(found)


def test_the_figure_states_units_directions_windows_and_counts(written, image, distance):
    found = written(image(), image("psnr", (20.0, 22.0, 21.0)), *distance(n=3))
    assert {"SSIM ↑", "PSNR ↑ (dB)", "FID-3D ↓", "test, n = 3", "ddim, 25 steps"} <= set(found)
    assert "SSIM: Gaussian 7³ window, \N{GREEK SMALL LETTER SIGMA} 1.5." in found


def test_a_score_stands_over_its_interval(written, image):
    found = written(image(values=(0.5, 0.6, 0.7)))
    assert {"0.600 ± 0.100", "[0.352, 0.848]"} <= set(found)


def test_one_volume_has_no_plus_minus_and_no_interval(written, image):
    found = written(image(values=(0.5,)))
    assert "0.500" in found
    assert not any("±" in text or "[" in text for text in found if not text.startswith("↑"))


@pytest.mark.parametrize("metric", ["fid", "kid", "mmd"])
def test_a_distance_has_its_interval_and_the_floor_beside_it(written, distance, metric):
    found = written(*distance(metric, 0.02, low=-0.01, high=0.05, floor=(0.002, 0.004), reliable="yes"))
    assert {"0.0200", f"[{MINUS}0.0100, 0.0500]", "floor 0.0030"} <= {part for t in found for part in t.split("  ")}


def test_a_score_near_zero_is_written_out(written, image):
    found = written(image(values=(-0.004, 0.0038)))
    assert f"{MINUS}0.0001 ± 0.0055" in found


def test_a_count_that_differs_from_the_columns_is_stated(written, image):
    pairs = Result(metric="ms_ssim_diversity", unit="1", case=image().case | {"scales": 2}, values=(0.4, 0.5, 0.6))
    found = written(image(values=(0.5, 0.6)), pairs)
    assert "test, n = 2" in found
    assert any("n = 3 pairs" in text for text in found)


def test_samples_a_mask_are_stated(written, image):
    assert "test, n = 4 (2 a mask)" in written(image(values=(0.5, 0.6, 0.7, 0.8), per_mask=2))


def test_adherence_has_a_line_a_channel_and_the_ceiling_beside_it(written, image):
    case = {key: value for key, value in image("mse").case.items() if key not in ("region", "modality")}
    found = written(
        *(
            Result(metric=metric, unit="1", case=case | {"channel": channel}, values=values)
            for channel in ("brain", "tumour")
            for metric, values in (("dice", (0.6, 0.7)), ("dice_real", (0.9, 0.92)))
        )
    )
    assert {"Dice ↑", "brain", "tumour"} <= set(found)
    assert sum("real 0.910" in text for text in found) == 2


def test_memorisation_is_compared_with_real_volumes_and_says_which(written, image):
    case = {key: value for key, value in image("mse").case.items() if key != "region"} | GRID
    real = Result(metric="nearest_train_real", unit="1", case=case | {"real": "train"}, values=(0.3, 0.32))
    found = written(Result(metric="nearest_train", unit="1", case=case, values=(0.1, 0.12)), real)
    assert "Nearest train ≈" in found
    assert any("real 0.310 *" in text for text in found)
    assert any(text.startswith("* real: of each real training volume to the nearest other one") for text in found)


def test_each_model_and_sampling_has_a_column(written, image):
    found = written(a=[image(), image(steps=50, values=(0.9,))], b=[image(modality="flair")])
    assert [found.count(text) for text in ("a", "b", "ddim, 25 steps", "ddim, 50 steps")] == [2, 1, 2, 1]
    assert found.count("\N{EN DASH}") == 3


def test_columns_are_in_the_order_of_their_steps(draw, image):
    figure = draw({"a": [image(steps=steps) for steps in (100, 5, 20)]})
    heads = [text for text in figure.findobj(Text) if text.get_text().endswith("steps")]
    left_to_right = sorted(heads, key=lambda text: text.get_position()[0])
    assert [text.get_text() for text in left_to_right] == ["ddim, 5 steps", "ddim, 20 steps", "ddim, 100 steps"]


@pytest.mark.parametrize("columns", [1, 5, 6, 13])
def test_however_many_columns_none_is_lost_and_the_figure_stays_narrow(draw, image, texts, columns):
    figure = draw({"a": [image(steps=steps) for steps in range(1, columns + 1)]})
    found = texts(figure)
    assert all(f"ddim, {steps} step{'s' if steps > 1 else ''}" in found for steps in range(1, columns + 1))
    assert figure.get_figwidth() < 13


def test_no_letter_is_smaller_than_seven_points_and_none_leaves_the_figure(draw, image, distance):
    results = [image(steps=steps, per_mask=1) for steps in range(1, 8)]
    figure = draw({"a_model_with_a_long_name": [*results, *distance(low=1, high=20, floor=(1, 2), steps=3)]})
    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        if text.get_text():
            assert text.get_fontsize() >= 7
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.y0 >= 0
            assert box.x1 <= figure.bbox.x1


def test_windows_that_differ_are_lines_of_their_own(written, image):
    narrow = image(values=(0.4,)).model_copy(update={"case": image().case | {"window": 5}})
    assert {"0.600", "0.400"} <= set(written(image(values=(0.6,)), narrow))


def test_the_command_writes_figure_and_summary(make_table, make_spec, image, distance, tmp_path):
    table = make_table({"tiny": [image(), *distance(reliable="no")]})
    out, summary = tmp_path / "t.svg", tmp_path / "t.csv"
    main(["--spec", make_spec(format="svg"), "--table", str(table), "--out", str(out), "--summary", str(summary)])
    read = pandas.read_csv(summary)
    assert tuple(read.columns) == SUMMARY
    assert {"n", "low", "high", "floor", "better"} <= set(read.columns)
    assert out.exists()
