import itertools

import pandas
import pytest

from genaccel.figures.intervals import of_mean, of_pairs
from genaccel.figures.scores import SCORES, read_scores
from genaccel.figures.summary import SUMMARY, summarise
from genaccel.measurement import Result
from genaccel.spec import SpecError


def one(make_table, *results):
    (row,) = summarise(read_scores(make_table({"tiny": list(results)}))).to_dict("records")
    return row


def test_a_score_is_summarised_over_its_volumes(make_table, image):
    row = one(make_table, image(values=(0.5, 0.6, 0.7)))
    assert (row["mean"], row["sd"], row["median"]) == pytest.approx((0.6, 0.1, 0.6))
    assert (row["q25"], row["q75"]) == pytest.approx((0.55, 0.65))
    assert (row["n"], row["subjects"], row["unit"], row["better"]) == (3, 3, "1", "higher")
    assert (row["low"], row["high"]) == pytest.approx(of_mean([0.5, 0.6, 0.7]))
    assert (row["model"], row["sampler"], row["steps"], row["size"]) == ("tiny", "ddim", "25", "32x32x32")
    assert row["settings"] == "sigma=1.5; window=7"


def test_one_volume_has_neither_spread_nor_interval(make_table, image):
    row = one(make_table, image(values=(0.5,)))
    assert row["mean"] == 0.5
    assert pandas.isna([row[key] for key in ("sd", "q25", "q75", "low", "high")]).all()


def test_samples_of_one_mask_count_as_one_subject(make_table, image):
    row = one(make_table, image(values=(0.5, 0.5, 0.6, 0.6, 0.7, 0.7), per_mask=2))
    assert (row["n"], row["subjects"]) == (6, 3)
    assert (row["low"], row["high"]) == pytest.approx(of_mean([0.5, 0.6, 0.7]))


def test_where_a_volume_of_a_mask_has_no_value_there_is_no_interval_and_the_reason(make_table, image):
    dice = Result(metric="dice", unit="1", case=image(per_mask=2).case | {"channel": "tumour"}, values=(0.5, 0.6))
    summary = summarise(read_scores(make_table({"tiny": [image("mse", (1, 2, 3, 4), per_mask=2), dice]})))
    (row,) = summary[summary["metric"] == "dice"].to_dict("records")
    assert pandas.isna(row["low"])
    assert row["note"] == "no interval: some volumes have no value, and the table does not say which"


@pytest.mark.parametrize("metric", [metric for metric, score in SCORES.items() if score.of == "set"])
def test_the_interval_of_a_set_is_the_one_that_was_measured_and_the_floor_stands_beside_it(
    make_table, distance, metric
):
    row = one(make_table, *distance(metric, 2.0, low=1.5, high=2.5, floor=(0.2, 0.4), reliable="yes"))
    assert (row["mean"], row["low"], row["high"], row["n"]) == (2.0, 1.5, 2.5, 4)
    assert row["floor"] == pytest.approx(0.3)
    assert 0.2 < row["floor_low"] < row["floor_high"] < 0.4
    assert pandas.isna(row["sd"])


def test_an_interval_that_could_not_be_measured_has_its_reason(make_table, distance):
    low = distance("kid", 2.0, reliable="yes")[0].model_dump(mode="json", exclude={"values", "metric"})
    low = Result.build(low | {"metric": "kid_low", "status": "unsupported", "reason": "needs four subjects"})
    high = low.model_copy(update={"metric": "kid_high"})
    assert (
        one(make_table, *distance("kid", 2.0, reliable="yes"), low, high)["note"] == "no interval: needs four subjects"
    )


def test_companions_are_those_of_the_same_samples(make_table, distance):
    results = [
        result for steps in (5, 50) for result in distance("fid", steps, low=steps - 1, high=steps + 1, steps=steps)
    ]
    summary = summarise(read_scores(make_table({"tiny": results})))
    assert summary[["mean", "low", "high"]].to_numpy().tolist() == [[5, 4, 6], [50, 49, 51]]


def test_pairs_have_the_interval_of_pairs_and_what_real_volumes_have(make_table, image):
    values = tuple(abs(x - y) for x, y in itertools.combinations((0.1, 0.2, 0.4, 0.8, 0.9), 2))
    case = image().case
    synthetic = Result(metric="ms_ssim_diversity", unit="1", case=case, values=values)
    real = Result(metric="ms_ssim_diversity_real", unit="1", case=case, values=(0.4, 0.6))
    row = one(make_table, synthetic, real)
    assert (row["low"], row["high"]) == pytest.approx(of_pairs(values))
    assert (row["n"], row["better"], row["real"]) == (10, "lower", 0.5)


def test_which_real_volumes_stand_beside_a_distance_is_kept(make_table, image):
    case = {key: value for key, value in image().case.items() if key not in ("region", "window", "sigma")}
    near = Result(metric="nearest_train", unit="1", case=case, values=(0.1, 0.2))
    real = Result(metric="nearest_train_real", unit="1", case=case | {"real": "held_out"}, values=(0.3, 0.5))
    row = one(make_table, near, real)
    assert (row["real"], row["real_is"], row["better"]) == (0.4, "real=held_out", "as real")


@pytest.mark.parametrize(("metric", "better"), [("ssim", "higher"), ("psnr", "higher"), ("mse", "lower")])
def test_every_score_has_its_direction(make_table, image, metric, better):
    assert one(make_table, image(metric))["better"] == better


def test_scores_stand_in_one_order(make_table, image, distance):
    results = [*distance("fid", 1.0), image("mse"), image("psnr"), image("ssim", region="foreground"), image("ssim")]
    summary = summarise(read_scores(make_table({"tiny": results})))
    order = [("ssim", "whole"), ("ssim", "foreground"), ("psnr", "whole"), ("mse", "whole"), ("fid", "")]
    assert list(zip(summary["metric"], summary["region"], strict=True)) == order
    assert tuple(summary.columns) == SUMMARY


@pytest.mark.parametrize("case", [{"reliable": "no"}, {}])
def test_a_fid_not_known_to_be_reliable_has_a_warning(make_table, distance, case):
    warning = one(make_table, *distance("fid", 1.0, **case))["warning"]
    assert warning == "unreliable: 4 synthetic and 3 real volumes for 240 features"


@pytest.mark.parametrize(("metric", "case"), [("fid", {"reliable": "yes"}), ("kid", {}), ("mmd", {})])
def test_a_reliable_distance_has_none(make_table, distance, metric, case):
    assert one(make_table, *distance(metric, 1.0, **case))["warning"] == ""


def test_a_row_from_before_there_were_variants_has_its_sampler_in_the_column(make_table, image):
    rows = summarise(read_scores(make_table({"tiny": [image()]}, variant="ddim")))
    assert rows["variant"].tolist() == [""]
    assert summarise(read_scores(make_table({"tiny": [image()]})))["variant"].tolist() == ["fp32_strict"]


def test_rows_of_other_stages_are_left_out(make_table, image):
    with pytest.raises(SpecError, match="holds no scores among its 0 rows of `metrics`"):
        read_scores(make_table({"tiny": [image()]}, stage="train"))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", r"x\.csv is no tidy table"), ("stage,metric\nmetrics,ssim\n", r"x\.csv lacks the columns device")],
)
def test_a_file_that_is_no_tidy_table_is_an_error(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(SpecError, match=message):
        read_scores(tmp_path / "x.csv")
