import csv
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from genaccel.data.manifest import load_subject, read_manifest
from genaccel.measurement import read_run, tidy_rows
from genaccel.metrics import __main__ as command
from genaccel.metrics.samples import read_index


class FakeNetwork:
    """Means of the volume's octants in place of deepbet."""

    name, dimension, sha256 = "deepbet", 8, "c" * 64

    def __call__(self, volumes):
        return torch.nn.functional.adaptive_avg_pool3d(volumes, 2).flatten(1)


@pytest.fixture
def score(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "FEATURES", {"deepbet": lambda device: FakeNetwork()})

    def run(study, **changes):
        spec = json.dumps(study.spec | changes)
        paths = ["--manifest", str(study.manifest), "--samples", str(study.samples)]
        out = ["--run", str(tmp_path / "run.json"), "--per-volume", str(tmp_path / "volumes.csv")]
        command.main(["--spec", spec, "--code", "metrics@0", "--threads", "1", *paths, *out])
        with open(tmp_path / "volumes.csv", newline="") as file:
            return read_run(tmp_path / "run.json"), list(csv.DictReader(file))

    return run


def real_of(study, name):
    """Image, mask channels and file of a real volume."""
    (subject,) = [s for s in read_manifest(study.manifest).subjects if s.subject == name]
    return *load_subject(study.manifest, subject), study.manifest.parent / subject.volume


def one(run, metric, **case):
    (result,) = [r for r in run.results if r.metric == metric and case.items() <= r.case.items()]
    return result


def test_every_modality_and_region_has_every_metric(make_study, score):
    run, _ = score(make_study(subjects=2, modalities=("t1", "flair")))
    cells = {(r.metric, r.case["modality"], r.case.get("region")) for r in run.results}
    image = {(m, c, r) for m in ("mse", "psnr", "ssim") for c in ("t1", "flair") for r in ("whole", "foreground")}
    assert cells == image | {("fid", "t1", None), ("fid", "flair", None)}


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
    made = {"sampler": "ddim", "steps": 5, "eta": 0, "split": "test", "size": "12x14x10", "modality": "t1"}
    assert one(run, "ssim", region="whole").case == made | {
        "region": "whole",
        "data_range": 2,
        "window": 5,
        "sigma": 0.7,
    }
    assert (run.stage, run.model, run.variant, run.device, run.n_devices) == ("metrics", "tiny", "ddim", "cpu", 1)
    assert one(run, "mse", region="whole").seed == 7


def test_fid_states_its_network_sizes_and_reference_and_that_it_is_unreliable(make_study, score):
    run, _ = score(make_study(subjects=3, per_mask=2))
    fid = one(run, "fid")
    stated = {"features": "deepbet", "network": "c" * 12, "dimension": 8, "reference": "test", "n_reference": 3}
    assert (stated | {"reliable": "no"}).items() <= fid.case.items()
    assert fid.n == 6
    assert run.provenance["feature_network"]["sha256"] == "c" * 64


def test_fid_of_enough_volumes_is_not_called_unreliable(make_study, score):
    run, _ = score(make_study(subjects=8, shape=(10, 12, 9)))
    assert one(run, "fid").case["reliable"] == "yes"


def test_fid_of_one_volume_is_unsupported_with_its_reason(make_study, score):
    run, _ = score(make_study(subjects=1))
    fid = one(run, "fid")
    assert fid.status == "unsupported"
    assert fid.reason == "FID needs two volumes a side at least; there are 1 synthetic and 1 real"
    assert one(run, "ssim", region="whole").status == "ok"


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


@pytest.mark.parametrize("change", [{"steps": 6}, {"eta": 0.5}, {"seed": 8}])
def test_other_sampling_is_another_workload(make_study, score, change):
    study = make_study(subjects=2)
    before, _ = score(study)
    study.index(**change)
    assert score(study)[0].workload_sha256 != before.workload_sha256


def test_the_runs_table_has_a_row_a_volume(make_study, score):
    run, _ = score(make_study(subjects=3))
    rows = [row for row in tidy_rows(run) if row["metric"] == "ssim"]
    assert [row["repeat"] for row in rows] == [0, 1, 2, 0, 1, 2]


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


def test_samples_of_another_sampler_are_an_error(make_study, score, capsys):
    error = fails(score, make_study(), capsys, sampler="ddpm")
    assert "holds samples of 'ddim', but the settings say 'ddpm'" in error


def test_a_window_larger_than_the_volumes_is_an_error(make_study, score, capsys):
    settings = {"ssim_window": 11, "ssim_sigma": 1.5, "features": "deepbet"}
    assert "set metrics.ssim_window to 9 or less" in fails(score, make_study(), capsys, metrics=settings)


def test_an_error_leaves_no_output(make_study, score, capsys, tmp_path):
    study = make_study()
    (study.samples / "s01-0.safetensors").unlink()
    fails(score, study, capsys)
    assert not (tmp_path / "run.json").exists()
    assert not (tmp_path / "volumes.csv").exists()


def test_with_the_network_of_the_default_settings(make_study, tmp_path):
    study = make_study(subjects=2)
    paths = ["--manifest", str(study.manifest), "--samples", str(study.samples)]
    out = ["--run", str(tmp_path / "run.json"), "--per-volume", str(tmp_path / "volumes.csv")]
    command.main(["--spec", json.dumps(study.spec), "--threads", "1", *paths, *out])
    fid = one(read_run(tmp_path / "run.json"), "fid")
    assert fid.case["dimension"] == 240
    assert fid.values[0] > 0
