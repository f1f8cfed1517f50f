import csv
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from genaccel.data.manifest import load_subject, read_manifest
from genaccel.measurement import read_run, tidy_rows
from genaccel.metrics import __main__ as command
from genaccel.metrics import real, scoring
from genaccel.metrics.features import volume_features
from genaccel.metrics.memorisation import nearest, thumbnail
from genaccel.metrics.reference import NetworkRecord
from genaccel.metrics.sample_features import read_sample_features
from genaccel.metrics.samples import read_index
from genaccel.metrics.segmenter.network import write_segmenter


class Thresholds:
    """Finds brain above -1 and tumour above 0.5 in the first modality, in place of a trained segmenter."""

    channels, train_dice = ("brain", "tumour"), {}

    def __init__(self, modalities=("t1",)):
        self.modalities = modalities

    def __call__(self, image):
        return torch.stack([image[0] != 0, image[0] > 0.5])


@pytest.fixture
def score(monkeypatch, tmp_path, octants, see):
    monkeypatch.setattr(command, "feature_network", lambda *settings: octants)

    def run(study, segmenter=None, **changes):
        see(study)
        write_segmenter(study.segmenter, None, {})
        if segmenter:
            monkeypatch.setattr(command, "load_segmenter", lambda *arguments: segmenter)
        command.main(arguments(study, tmp_path, **changes))
        with open(tmp_path / "volumes.csv", newline="") as file:
            return read_run(tmp_path / "run.json"), list(csv.DictReader(file))

    return run


def arguments(study, folder, **changes):
    spec = json.dumps(study.spec | changes)
    paths = ["--manifest", str(study.manifest), "--samples", str(study.samples)]
    paths += ["--real", str(study.real), "--segmenter", str(study.segmenter)]
    out = ["--run", str(folder / "run.json"), "--per-volume", str(folder / "volumes.csv")]
    out += ["--features", str(folder / "features.safetensors")]
    return ["--spec", spec, "--code", "metrics@0", "--threads", "1", *paths, *out]


def real_of(study, name):
    """Image, mask channels and file of a real volume."""
    (subject,) = [s for s in read_manifest(study.manifest).subjects if s.subject == name]
    return *load_subject(study.manifest, subject), study.manifest.parent / subject.volume


def one(run, metric, **case):
    (result,) = [r for r in run.results if r.metric == metric and case.items() <= r.case.items()]
    return result


IMAGE = ("mse", "psnr", "ssim")
DISTANCES = [f"{metric}{part}" for metric in ("fid", "kid", "mmd") for part in ("", "_low", "_high", "_floor")]


def test_every_modality_has_every_metric(make_study, score):
    run, _ = score(make_study(subjects=2, modalities=("t1", "flair")))
    cells = {(r.metric, r.case["modality"], r.case.get("region")) for r in run.results}
    wanted = {(m, r) for m in IMAGE for r in ("whole", "foreground")} | {(m, None) for m in DISTANCES}
    wanted |= {(m, "whole") for m in ("ms_ssim", "ms_ssim_diversity", "ms_ssim_diversity_real")}
    wanted |= {("nearest_train", None), ("nearest_train_real", None)}
    assert cells == {(metric, modality, region) for metric, region in wanted for modality in ("t1", "flair")}


def test_the_table_takes_every_result(make_study, score):
    run, _ = score(make_study(subjects=3, per_mask=2), segmenter=Thresholds())
    rows = list(tidy_rows(run))
    assert {row["metric"] for row in rows} >= {*DISTANCES, "dice", "dice_real"}


def test_values_are_in_the_order_of_the_volumes(make_study, score):
    study = make_study(subjects=2, per_mask=2)
    run, volumes = score(study)
    order = [(v.subject, str(v.sample)) for v in read_index(study.samples).volumes]
    assert [(v["subject"], v["sample"]) for v in volumes] == order
    assert [float(v["mse_whole"]) for v in volumes] == list(one(run, "mse", region="whole").values)


def test_a_volume_is_scored_against_its_own_subject(make_study, score):
    study = make_study(subjects=3)
    images = {name: study.image(name) for name in ("s01-0", "s02-0")}
    right, _ = score(study)
    study.replace("s01-0", images["s02-0"])
    study.replace("s02-0", images["s01-0"])
    swapped, _ = score(study)
    for region in ("whole", "foreground"):
        before, after = one(right, "mse", region=region).values, one(swapped, "mse", region=region).values
        assert after[0] > before[0]
        assert after[1] > before[1]
        assert after[2] == before[2]


def test_a_case_states_how_the_volumes_were_made_and_scored(make_study, score):
    run, _ = score(make_study())
    made = {"sampler": "ddim", "steps": 5, "eta": 0, "split": "test", "size": "12x14x10", "per_mask": 1}
    made |= {"modality": "t1"}
    assert one(run, "ssim", region="whole").case == made | {
        "region": "whole",
        "data_range": 2,
        "window": 5,
        "sigma": 0.7,
    }
    assert (run.stage, run.model, run.variant, run.device, run.n_devices) == ("metrics", "tiny", "tf32", "cpu", 1)
    assert one(run, "mse", region="whole").seed == 7


def test_distances_state_their_network_sizes_and_reference(make_study, score):
    run, _ = score(make_study(subjects=3, per_mask=2))
    stated = {"features": "deepbet", "network": "c" * 12, "dimension": 8, "reference": "test", "n_reference": 3}
    for metric in ("fid", "kid", "mmd"):
        assert (stated | {"per_mask": 2}).items() <= one(run, metric).case.items()
        assert one(run, metric).n == 6
    assert one(run, "fid").case["reliable"] == "no"
    assert run.provenance["feature_network"] == {"name": "deepbet", "sha256": "c" * 64, "dimension": 8}
    assert run.provenance["mmd_bandwidth"]["t1"] == one(run, "mmd").case["bandwidth"]


@pytest.mark.parametrize("metric", ["fid", "kid", "mmd"])
def test_what_belongs_to_a_distance_has_its_case(make_study, score, metric):
    run, _ = score(make_study(subjects=4))
    assert one(run, metric).case == one(run, f"{metric}_low").case == one(run, f"{metric}_floor").case
    (value,), (low,), (high,) = (one(run, f"{metric}{part}").values for part in ("", "_low", "_high"))
    assert low <= value <= high


def test_the_reference_can_be_another_split(make_study, score):
    study = make_study(subjects=2, train=4)
    other = study.spec["metrics"] | {"reference": "train"}
    run, _ = score(study, metrics=other)
    assert one(run, "fid").case["reference"] == "train"
    assert one(run, "fid").case["n_reference"] == 4
    assert one(run, "fid").values != one(score(study)[0], "fid").values


def test_fid_of_enough_volumes_is_not_called_unreliable(make_study, score):
    run, _ = score(make_study(subjects=8, shape=(10, 12, 9)))
    assert one(run, "fid").case["reliable"] == "yes"


@pytest.mark.parametrize("metric", DISTANCES)
def test_a_distance_of_one_volume_is_unsupported_with_its_reason(make_study, score, metric):
    run, _ = score(make_study(subjects=1))
    assert one(run, metric).status == "unsupported"
    assert one(run, metric).reason == "a distance needs two volumes a side at least; there are 1 synthetic and 1 real"
    assert one(run, "ssim", region="whole").status == "ok"


def test_kid_of_one_mask_is_unsupported_with_its_reason(make_study, score):
    study = make_study(subjects=1, per_mask=3, train=3)
    run, _ = score(study, metrics=study.spec["metrics"] | {"reference": "train"})
    assert one(run, "kid").reason == "KID needs samples of two masks at least; the 3 synthetic volumes are of one"
    assert one(run, "fid").status == "ok"
    assert one(run, "fid_low").reason.endswith("three subjects a side at least; there are 1 synthetic and 3 real")


def test_diversity_of_one_mask_is_unsupported_with_its_reason(make_study, score):
    run, _ = score(make_study(subjects=1))
    assert one(run, "ms_ssim_diversity").reason == "diversity needs samples of two masks at least; there is one"


def test_diversity_has_a_value_a_pair_of_masks(make_study, score):
    study = make_study(subjects=3, per_mask=2)
    study.replace("s03-0", study.image("s01-0"))
    run, _ = score(study)
    values = one(run, "ms_ssim_diversity").values
    assert len(values) == len(one(run, "ms_ssim_diversity_real").values) == 3
    assert values[1] == pytest.approx(1)
    assert values[0] == pytest.approx(values[2], abs=1e-6)


def test_a_memorised_volume_is_nearer_to_the_training_split_than_real_ones(make_study, score):
    study = make_study(subjects=3, train=2)
    study.replace("s02-0", real_of(study, "s00")[0])
    run, volumes = score(study)
    distances = one(run, "nearest_train").values
    assert distances[1] == 0 == float(volumes[1]["nearest_train"])
    assert min(distances[0], distances[2]) > 0
    held_out = one(run, "nearest_train_real")
    assert held_out.case["real"] == "held_out"
    train = torch.stack([thumbnail(torch.from_numpy(real_of(study, name)[0][0])) for name in ("s00", "t01")])
    x = torch.stack([thumbnail(torch.from_numpy(real_of(study, f"s{i:02d}")[0][0])) for i in (1, 2, 3)])
    assert held_out.values == pytest.approx(nearest(x, train).tolist())


def test_dice_is_one_value_an_image_and_channel_beside_that_of_the_real_image(make_study, score):
    study = make_study(subjects=2, modalities=("t1", "flair"))
    study.replace("s01-0", real_of(study, "s01")[0])
    run, volumes = score(study, segmenter=Thresholds(("t1", "flair")))
    brain = one(run, "dice", channel="brain")
    assert "modality" not in brain.case
    assert len(brain.values) == 2
    for channel in ("brain", "tumour"):
        assert one(run, "dice", channel=channel).values[0] == one(run, "dice_real", channel=channel).values[0]
    assert [float(v["dice_brain"]) for v in volumes] == [v for v in brain.values for _ in range(2)]


def test_without_a_segmenter_there_is_no_dice(make_study, score):
    run, volumes = score(make_study(subjects=2))
    assert not [r for r in run.results if r.metric.startswith("dice")]
    assert not [column for column in volumes[0] if column.startswith("dice")]


def test_dice_of_a_channel_that_is_nowhere_is_unsupported(make_study, score, sign):
    study = make_study(subjects=2)
    for name in ("s01", "s02"):
        image, labels, path = real_of(study, name)
        labels[1] = 0
        save_file({"image": image * 0.1, "labels": labels}, path)
        study.replace(f"{name}-0", image * 0.1)
    sign(study.manifest)
    run, _ = score(study, segmenter=Thresholds())
    assert one(run, "dice", channel="tumour").reason.startswith("no voxel of tumour in any of the 2 masks")
    assert one(run, "dice", channel="brain").status == "ok"


def test_psnr_of_a_volume_equal_to_the_real_one_is_unsupported_and_names_it(make_study, score):
    study = make_study(subjects=2)
    study.replace("s02-0", real_of(study, "s02")[0])
    run, volumes = score(study)
    psnr = one(run, "psnr", region="whole")
    assert psnr.status == "unsupported"
    assert psnr.reason == "infinite, since synthetic equals real: s02-0 of 2 volumes"
    assert one(run, "ssim", region="whole").values[1] == 1
    assert volumes[1]["psnr_whole"] == "inf"


def test_a_mask_without_foreground_is_unsupported_there_alone(make_study, score, sign):
    study = make_study(subjects=2)
    image, labels, path = real_of(study, "s01")
    save_file({"image": image, "labels": np.zeros_like(labels)}, path)
    sign(study.manifest)
    run, _ = score(study)
    assert one(run, "mse", region="whole").status == "ok"
    assert one(run, "mse", region="foreground").reason == "no foreground voxel in the mask: s01-0 of 2 volumes"


def test_equal_work_on_another_device_is_one_workload(make_study, score):
    study = make_study(subjects=2)
    here, _ = score(study)
    study.index(spec_sha256="d" * 64)
    there, _ = score(study, device="auto")
    assert here.workload_sha256 == there.workload_sha256
    assert here.spec_sha256 != there.spec_sha256


@pytest.mark.parametrize("change", [{"eta": 0.5}, {"seed": 8}, {"order": 2}])
def test_other_sampling_is_another_workload(make_study, score, change):
    study = make_study(subjects=2)
    before, _ = score(study)
    study.index(**change)
    assert score(study)[0].workload_sha256 != before.workload_sha256


def test_the_runs_table_has_a_row_a_volume(make_study, score):
    run, _ = score(make_study(subjects=3))
    rows = [row for row in tidy_rows(run) if row["metric"] == "ssim"]
    assert [row["repeat"] for row in rows] == [0, 1, 2, 0, 1, 2]


def test_the_features_are_kept_in_the_order_of_the_volumes(make_study, score, tmp_path):
    study = make_study(subjects=2, per_mask=2, modalities=("t1", "flair"))
    score(study)
    kept = read_sample_features(tmp_path / "features.safetensors")
    order = [(v.subject, v.sample) for v in read_index(study.samples).volumes]
    assert list(zip(kept.record.subjects, kept.record.samples, strict=True)) == order
    assert {name: rows.shape for name, rows in kept.features.items()} == {"t1": (4, 8), "flair": (4, 8)}


def test_scoring_twice_gives_the_same_values(make_study, score):
    study = make_study(subjects=2)
    assert score(study)[0].results == score(study)[0].results


def fails(score, study, capsys, **changes):
    with pytest.raises(SystemExit) as stop:
        score(study, **changes)
    assert stop.value.code == 1
    return capsys.readouterr().err


def test_a_real_volume_with_nan_is_an_error_that_counts_them(make_study, score, capsys, sign):
    study = make_study(subjects=2)
    image, labels, path = real_of(study, "s01")
    image[0, 0, 0, :3] = np.nan
    save_file({"image": image, "labels": labels}, path)
    sign(study.manifest)
    error = fails(score, study, capsys)
    assert error.startswith("metrics: s01: volumes/s01.safetensors holds 3 of 1680 voxels that are NaN or infinite")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sampler": "ddpm"}, "holds samples of sampler 'ddim', but the settings say 'ddpm'"),
        ({"steps": 9}, "holds samples of steps 5, but the settings say 9"),
        ({"variant": "fast"}, "holds samples of variant 'tf32', but the settings say 'fast'"),
    ],
)
def test_samples_made_otherwise_are_an_error(make_study, score, capsys, change, said):
    assert said in fails(score, make_study(), capsys, **change)


def test_a_segmenter_of_other_modalities_is_an_error(make_study, score, capsys):
    error = fails(score, make_study(), capsys, segmenter=Thresholds(("flair",)))
    assert "maps flair to brain, tumour, but the manifest has t1 and brain, tumour" in error


def test_real_features_of_another_network_are_an_error(make_study, score, capsys, monkeypatch):
    monkeypatch.setattr(real, "NetworkRecord", lambda **f: NetworkRecord(**f | {"sha256": "e" * 64}))
    error = fails(score, make_study(), capsys)
    assert "holds features of deepbet (eeeeeeeeeeee), but metrics.features says deepbet (cccccccccccc)" in error


def test_features_that_are_not_finite_are_an_error_that_names_the_volume(make_study, score, capsys, monkeypatch):
    study, nan = make_study(), lambda volumes: torch.full((1, 8), torch.nan)
    nan.name = "deepbet"
    monkeypatch.setattr(scoring, "volume_features", lambda _, volume, where: volume_features(nan, volume, where))
    assert "s01-0.safetensors: 8 of its 8 features by deepbet are not finite" in fails(score, study, capsys)


def test_a_window_larger_than_the_volumes_is_an_error(make_study, score, capsys):
    settings = {"ssim_window": 11, "ssim_sigma": 1.5}
    assert "set metrics.ssim_window to 9 or less" in fails(score, make_study(), capsys, metrics=settings)


def test_an_error_leaves_no_output(make_study, score, capsys, tmp_path):
    study = make_study()
    (study.samples / "s01-0.safetensors").unlink()
    fails(score, study, capsys)
    assert not (tmp_path / "run.json").exists()
    assert not (tmp_path / "volumes.csv").exists()


def test_with_the_network_of_the_default_settings(make_study, tmp_path):
    study = make_study(subjects=2)
    spec = json.dumps({"device": "cpu", "dataset": "fake", "features": {}})
    real.main(["--spec", spec, "--threads", "1", "--manifest", str(study.manifest), "--out", str(study.real)])
    write_segmenter(study.segmenter, None, {})
    command.main(arguments(study, tmp_path))
    fid = one(read_run(tmp_path / "run.json"), "fid")
    assert fid.case["dimension"] == 240
    assert fid.values[0] > 0
