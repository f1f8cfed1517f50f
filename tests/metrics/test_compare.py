import json
import math
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from genaccel.measurement import read_run
from genaccel.metrics import __main__ as scoring
from genaccel.metrics.compare.__main__ import main
from genaccel.metrics.compare.verdict import Difference, verdict
from genaccel.metrics.segmenter.network import write_segmenter

FEW = {"sampler": "ddim", "steps": 5}


@pytest.fixture
def compare(monkeypatch, tmp_path, octants, see):
    """Scores a study's samples and others made of them, and compares the two: ``compare(study, change)``.

    ``change`` makes the run's image of the baseline's, which are the study's own samples.
    """
    monkeypatch.setattr(scoring, "feature_network", lambda *settings: octants)

    def score(study, folder, variant):
        spec = json.dumps(study.spec | {"variant": variant})
        out = tmp_path / f"scored-{variant}"
        out.mkdir(exist_ok=True)
        scoring.main(
            [
                *("--spec", spec, "--threads", "1", "--manifest", str(study.manifest), "--samples", str(folder)),
                *("--real", str(study.real), "--segmenter", str(study.segmenter), "--run", str(out / "run.json")),
                *("--per-volume", str(out / "scores.csv"), "--features", str(out / "features.safetensors")),
            ]
        )
        return ["scores", str(out / "scores.csv")], ["features", str(out / "features.safetensors")]

    def run(study, change=lambda image: image, index=None, **spec):
        see(study)
        write_segmenter(study.segmenter, None, {})
        study.index(variant="fp32_strict")
        other = tmp_path / "fast"
        shutil.copytree(study.samples, other, dirs_exist_ok=True)
        for path in other.glob("*.safetensors"):
            image = np.clip(change(load_file(path)["image"]), -1, 1)
            save_file({"image": np.ascontiguousarray(image, np.float32)}, path)
        content = json.loads((other / "index.json").read_text()) | {"variant": "fast"}
        (other / "index.json").write_text(json.dumps(content))
        given = ["--samples", str(other), "--baseline-samples", str(study.samples)]
        for side, folder, variant in (("", other, "fast"), ("baseline-", study.samples, "fp32_strict")):
            given += [part for what, path in score(study, folder, variant) for part in (f"--{side}{what}", path)]
        if index:
            (other / "index.json").write_text(json.dumps(content | index))
        job = {"device": "cpu", "model": "tiny", "ssim_window": 5, "ssim_sigma": 0.7, "reference": None}
        job |= {"run": FEW | {"variant": "fast"}, "baseline": FEW | {"variant": "fp32_strict"}} | spec
        main(
            [
                *("--spec", json.dumps(job), "--threads", "1", "--manifest", str(study.manifest), *given),
                *("--real", str(study.real), "--run", str(tmp_path / "compared.json")),
            ]
        )
        return read_run(tmp_path / "compared.json")

    return run


def one(run, metric, **case):
    (result,) = [r for r in run.results if r.metric == metric and case.items() <= r.case.items()]
    return result


def darker(image):
    return image - 0.02


def test_a_pair_is_compared_volume_by_volume_in_every_region(make_study, compare):
    run = compare(make_study(subjects=4, modalities=("t1", "flair")), darker)
    for modality in ("t1", "flair"):
        for metric in ("paired_ssim", "paired_psnr"):
            for region in ("whole", "foreground"):
                assert len(one(run, metric, modality=modality, region=region).values) == 4
        assert len(one(run, "paired_feature_distance", modality=modality).values) == 4
    # A shift by 0.02 of the range 2 that the clip at -1 and 1 takes away in places.
    assert min(one(run, "paired_psnr", modality="t1", region="foreground").values) >= 39.9
    assert one(run, "paired_psnr", modality="t1", region="whole").unit == "dB"


def test_the_case_names_run_and_baseline_and_the_column_the_variant(make_study, compare):
    run = compare(make_study(subjects=3), darker)
    assert (run.stage, run.model, run.variant) == ("metrics", "tiny", "fast")
    named = FEW | {"baseline_sampler": "ddim", "baseline_steps": 5, "baseline_variant": "fp32_strict"}
    assert all(named.items() <= result.case.items() for result in run.results)


def test_equal_runs_differ_by_nothing_and_are_accepted(make_study, compare):
    run = compare(make_study(subjects=9, train=9))
    assert one(run, "paired_ssim", region="whole").values == (1.0,) * 9
    assert one(run, "fid_difference").values == one(run, "fid_difference_low").values == (0.0,)
    assert one(run, "kid_difference").values == (0.0,)
    assert one(run, "paired_psnr", region="whole").reason.startswith("infinite, since the two runs are equal in 9 of 9")
    accepted = one(run, "accepted")
    assert accepted.values == (1.0,)
    assert "contains 0" in accepted.reason


def test_a_run_far_from_the_real_volumes_is_not_accepted(make_study, compare):
    run = compare(make_study(subjects=12, train=13), lambda image: image + 0.5)
    assert one(run, "fid_difference").values[0] > one(run, "fid_difference_low").values[0] > 0
    assert max(one(run, "ssim_difference").values) < 0
    assert one(run, "accepted").values == (0.0,)


def test_too_few_volumes_give_no_verdict_but_their_pairs(make_study, compare):
    run = compare(make_study(subjects=3), darker)
    accepted = one(run, "accepted")
    assert accepted.status == "unsupported"
    assert accepted.reason.startswith("too few volumes for FID to be reliable: 3 masks and 3 real volumes for 8 feat")
    assert one(run, "fid_difference").status == "ok"


@pytest.mark.parametrize(
    ("index", "spec", "said"),
    [
        ({"weights_sha256": "d" * 64}, {}, "differ in weights_sha256: they are of different weights, masks or noise"),
        ({"seed": 8}, {}, "differ in seed"),
        ({}, {"baseline": FEW | {"variant": "tf32"}}, "--baseline-samples is of ddim in 5 steps with fp32_strict, but"),
    ],
)
def test_what_is_no_pair_is_an_error(make_study, compare, capsys, index, spec, said):
    with pytest.raises(SystemExit):
        compare(make_study(subjects=3), darker, index, **spec)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fid", "ssim", "accepted", "said"),
    [
        (Difference(0.001, -0.002, 0.004, 0.008), 0.0, True, "contains 0"),
        (Difference(-0.01, -0.02, -0.005, 0.008), 0.0, True, "lies below 0"),
        (Difference(0.004, 0.001, 0.007, 0.008), 0.0, True, "lies under the floor of real against real 0.0080"),
        (Difference(0.004, 0.001, 0.009, 0.008), 0.0, False, "lies above 0 and not under the floor"),
        (Difference(0.004, 0.001, 0.007, None), 0.0, False, "there is no floor"),
        (Difference(0.001, -0.002, 0.004, 0.008), -0.01, True, "within -0.01"),
        (Difference(0.001, -0.002, 0.004, 0.008), -0.0101, False, "beyond -0.01"),
        (Difference(0.001, -0.002, 0.004, 0.008), 0.5, True, "+0.5000"),
        (Difference(0.001, -0.002, 0.004, 0.008), math.nan, None, "no mask has a foreground voxel"),
        (Difference(0.001, -0.002, 0.004, 0.008, "too few"), 0.0, None, "too few"),
    ],
)
def test_the_verdict(fid, ssim, accepted, said):
    found = verdict(fid, ssim)
    assert found.accepted is accepted
    assert said in found.reason
