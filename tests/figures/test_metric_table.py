import pandas
import pytest

from genaccel.figures.metric_table import main, metric_table
from genaccel.figures.scores import SUMMARY, read_scores, summarise
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MINUS
from genaccel.measurement import Result
from genaccel.spec import SpecError

SAMPLING = {"sampler": "ddim", "steps": 25, "eta": 0.0, "split": "test", "size": "32x32x32"}


def image(metric="ssim", values=(0.5, 0.6, 0.7), region="whole", modality="t1", **case):
    case = SAMPLING | {"modality": modality, "region": region} | case
    case |= {"window": 7, "sigma": 1.5} if metric == "ssim" else {}
    return Result(metric=metric, unit="dB" if metric == "psnr" else "1", case=case, values=values)


def fid(value=12.345, n=4, **case):
    case = SAMPLING | {"modality": "t1", "features": "deepbet", "dimension": 240, "n_reference": 3} | case
    return Result(metric="fid", unit="1", case=case, values=(value,), n=n)


def unsupported(metric="fid", reason="FID needs two volumes a side"):
    return Result(metric=metric, unit="1", case=SAMPLING | {"modality": "t1"}, status="unsupported", reason=reason)


def summary_of(make_table, *results):
    return summarise(read_scores(make_table({"tiny": list(results)})))


def written_in(make_table, make_spec, texts, models):
    summary = summarise(read_scores(make_table(models)))
    return texts(metric_table(summary, FigureJob.parse(make_spec("demo"))))


def test_a_score_is_summarised_over_its_volumes(make_table):
    (row,) = summary_of(make_table, image(values=(0.5, 0.6, 0.7))).to_dict("records")
    assert (row["mean"], row["sd"], row["median"]) == pytest.approx((0.6, 0.1, 0.6))
    assert (row["q25"], row["q75"]) == pytest.approx((0.55, 0.65))
    assert (row["n"], row["unit"], row["better"]) == (3, "1", "higher")
    assert (row["model"], row["sampler"], row["steps"], row["size"]) == ("tiny", "ddim", "25", "32x32x32")
    assert row["settings"] == "sigma=1.5; window=7"


def test_one_volume_has_no_spread(make_table):
    (row,) = summary_of(make_table, image(values=(0.5,))).to_dict("records")
    assert row["mean"] == 0.5
    assert pandas.isna([row["sd"], row["q25"], row["q75"]]).all()


@pytest.mark.parametrize(("metric", "better"), [("ssim", "higher"), ("psnr", "higher"), ("mse", "lower")])
def test_every_score_has_its_direction(make_table, metric, better):
    assert summary_of(make_table, image(metric))["better"].tolist() == [better]


def test_scores_stand_in_one_order(make_table):
    results = [fid(), image("mse"), image("psnr"), image("ssim", region="foreground"), image("ssim")]
    summary = summary_of(make_table, *results)
    order = [("ssim", "whole"), ("ssim", "foreground"), ("psnr", "whole"), ("mse", "whole"), ("fid", "")]
    assert list(zip(summary["metric"], summary["region"], strict=True)) == order


@pytest.mark.parametrize("case", [{"reliable": "no"}, {}])
def test_a_fid_not_known_to_be_reliable_has_a_warning(make_table, case):
    (warning,) = summary_of(make_table, fid(**case))["warning"]
    assert warning == "unreliable: 4 synthetic and 3 real volumes for 240 features"


def test_a_reliable_fid_has_none(make_table):
    assert summary_of(make_table, fid(n=300, reliable="yes"))["warning"].tolist() == [""]


@pytest.mark.parametrize("models", [1, 3])
def test_the_figure_never_shows_an_unreliable_fid_without_saying_so(make_table, make_spec, texts, models):
    written = written_in(make_table, make_spec, texts, {f"m{n}": [image(), fid(reliable="no")] for n in range(models)})
    shown = [text for text in written if text.startswith("12.3")]
    assert shown == ["12.3 unreliable *"] * models
    assert "* unreliable: 4 synthetic and 3 real volumes for 240 features" in written


def test_a_score_that_is_missing_has_its_reason_as_a_note(make_table, make_spec, texts):
    written = written_in(make_table, make_spec, texts, {"tiny": [image(), unsupported()]})
    assert "not available *" in written
    assert "* FID needs two volumes a side" in written


def test_different_notes_have_different_marks(make_table, make_spec, texts):
    models = {"a": [fid(reliable="no")], "b": [unsupported()]}
    written = written_in(make_table, make_spec, texts, models)
    assert {"12.3 unreliable *", "not available †"} <= set(written)


def test_the_figure_states_units_directions_windows_and_counts(make_table, make_spec, texts):
    written = written_in(make_table, make_spec, texts, {"tiny": [image(), image("psnr", (20.0, 22.0, 21.0)), fid(n=3)]})
    assert {"SSIM ↑", "PSNR ↑ (dB)", "FID-3D ↓", "test, n = 3", "ddim, 25 steps"} <= set(written)
    assert "SSIM: Gaussian 7³ window, \N{GREEK SMALL LETTER SIGMA} 1.5" in " ".join(written)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.64, 0.65, 0.66), "0.650 ± 0.010"),
        ((20.0, 21.0, 22.0), "21.0 ± 1.0"),
        ((0.0391,), "0.0391"),
        ((0.0,), "0.000"),
        ((1.234e-5,), f"1.23e{MINUS}05"),
        ((-0.004, 0.0038), f"{MINUS}0.00010 ± 0.00552"),
        ((812.4,), "812"),
    ],
)
def test_a_number_and_its_spread_end_at_the_same_decimal(make_table, make_spec, texts, values, text):
    assert text in written_in(make_table, make_spec, texts, {"tiny": [image(values=values)]})


def test_each_model_and_sampling_has_a_column(make_table, make_spec, texts):
    models = {"a": [image(), image(steps=50, values=(0.9,))], "b": [image(modality="flair")]}
    written = written_in(make_table, make_spec, texts, models)
    assert [written.count(text) for text in ("a", "b", "ddim, 25 steps", "ddim, 50 steps")] == [2, 1, 2, 1]
    assert written.count("\N{EN DASH}") == 3


def test_windows_that_differ_are_lines_of_their_own(make_table, make_spec, texts):
    narrow = image(values=(0.4,)).model_copy(update={"case": image().case | {"window": 5}})
    written = written_in(make_table, make_spec, texts, {"tiny": [image(values=(0.6,)), narrow]})
    assert {"0.600", "0.400"} <= set(written)


def test_the_command_writes_figure_and_summary(make_table, make_spec, tmp_path):
    table, out, summary = make_table({"tiny": [image(), fid(reliable="no")]}), tmp_path / "t.svg", tmp_path / "t.csv"
    main(["--spec", make_spec(format="svg"), "--table", str(table), "--out", str(out), "--summary", str(summary)])
    assert tuple(pandas.read_csv(summary).columns) == SUMMARY
    assert out.exists()


def test_rows_of_other_stages_are_left_out(make_table):
    with pytest.raises(SpecError, match="holds no scores among its 3 rows"):
        read_scores(make_table({"tiny": [image()]}, stage="train"))


@pytest.mark.parametrize(
    ("text", "message"), [("", "is no tidy table"), ("a,b\n1,2\n", "lacks the columns stage, device")]
)
def test_what_is_no_tidy_table_is_an_error(tmp_path, text, message):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(SpecError, match=message):
        read_scores(tmp_path / "table.csv")
