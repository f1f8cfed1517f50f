"""The composed config: what it refuses, what it hands to jobs, what is generated from it."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest
import yaml

from genaccel.config.compose import (
    Config,
    check_files,
    check_splits,
    comparisons,
    compose,
    conduct_job,
    data_job,
    medddpm,
    sample_job,
    sample_runs,
    train_job,
)
from genaccel.config.files import write_generated
from genaccel.spec import SpecError

MODEL = {"models": {"m": {}}}


def model(**settings):
    return {"models": {"m": settings}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"trian": {}}, "trian: unknown key; did you mean `train`?"),
        ({"train": {"stpes": 3}}, "train.stpes: unknown key; did you mean `steps`?"),
        (
            {"train": {"learning_rate": "1e-4"}},
            "train.learning_rate: '1e-4' is text, not a number; YAML reads 1e-4 as text",
        ),
        ({"train": {"steps": -1}}, "train.steps: input should be greater than or equal to 0, not -1"),
        ({"train": {"variant": "tf23"}}, "train.variant: unknown variant 'tf23'; did you mean `tf32`?"),
        ({"sample": {"variants": ["fats"]}}, "sample.variants: unknown variant 'fats'; did you mean `fast`?"),
        ({"sample": {"variants": ["bf16", "bf16"]}}, "names a variant twice"),
        ({"sample": {"variants_of": {"ddmp": ["fast"]}}}, "unknown sampler 'ddmp'; did you mean `ddpm`?"),
        ({"sample": {"variants_of": {"dpm_solver_pp": []}}}, "variants_of leaves no run over"),
        (
            {"variants": {"mine": {"like": "fast", "kernel": "stock"}}},
            "variants.mine.kernel: unknown key; did you",
        ),
        ({"variants": {"mine": {"matmul": "ieee"}}}, "variants.mine.convolution: missing; give it a value"),
        ({"variants": {"mine": {"like": "fats"}}}, "variants.mine.like: unknown variant 'fats'; did you mean `fast`?"),
        ({"variants": {"fast": {"like": "tf32"}}}, "variants.fast: this name ships with genaccel"),
        (
            {"variants": {"mine": {"like": "bf16", "grad_scaler": True}}},
            "variants.mine: grad_scaler with autocast",
        ),
        ({"metrics": {"baselines": [{"variant": "fp32"}]}}, "metrics.baselines.0.variant: unknown variant 'fp32'"),
        (
            {"train": {"variant": "fast", "processes": 2}},
            "train.processes: training with fused kernels needs 1, not 2; change it, or train with a variant with",
        ),
        (
            {"variants": {"mine": {"like": "bf16", "cuda_graphs": True}}, "train": {"variant": "mine"}},
            "train.variant: mine records CUDA graphs of PyTorch's own kernels, which only sampling and measuring do",
        ),
        ({"train": {"steps": 0}}, "train.steps: 0 leaves models.med_ddpm untrained"),
        ({"sample": {"samplers": ["dddim"]}}, "sample.samplers: unknown sampler 'dddim'; did you mean `ddim`?"),
        ({"sample": {"samplers": ["ddim", "ddim"]}}, "names a sampler twice"),
        ({"sample": {"steps": [5, 5]}}, "names a number twice"),
        ({"sample": {"steps": 20}}, "sample.steps: 20 is a single value where a list belongs; write [20]"),
        ({"sample": {"steps": [251]}}, "sample.steps: 251 exceeds the 250 steps of models.med_ddpm.timesteps"),
        (
            {"metrics": {"features": {"network": "deepbat"}}},
            "metrics.features.network: unknown feature network 'deepbat'; did you mean `deepbet`?",
        ),
        ({"metrics": {"ssim_window": 8}}, "metrics.ssim_window: 8 is even; use an odd side such as 9"),
        ({"metrics": {"ssim_window": 33}}, "exceeds the shortest side of data.simulated.shape [20, 20, 20]"),
        ({"device": "cdua"}, "device: unknown value 'cdua'; did you mean `cuda`?"),
        ({"study": "a/b"}, "study: 'a/b' cannot name a folder"),
        ({"data": {"a b": {}}}, "data: 'a b' cannot name a folder"),
        ({"data": {}}, "data: "),
        ({"study": "reference"}, "study: results/reference belongs to the committed measurements"),
        ({"data": {"simulated": {}, "mine": {}}}, "data.mine: no model learns from it; set models.<name>.data to mine"),
        ({"train": {"learning_rate": float("inf")}}, "train.learning_rate: "),
        ({"data": {"simulated": {"remap": {0: 1}}}}, "data.simulated.remap"),
        (model(channel_multipliers=[]), "models.m.channel_multipliers: "),
        ({"data": {"simulated": {"split": {"train": 0.5}}}}, "the shares must add up to 1"),
        (
            model(base_channels=48),
            "models.m: base_channels x multiplier = 48 x 1 = 48 channels, which GroupNorm's 32 groups do not divide",
        ),
        (model(data="simulate"), "models.m.data: no data set 'simulate'; did you mean `simulated`?"),
        (model(condition=["brain"]), "models.m.condition: ['brain'] is no order of the channels ['brain', 'tumour']"),
        (model(axes=["S", "A", "P"]), "axes: ['S', 'A', 'P'] name one direction twice"),
        (model(attention_downsampling=3), "no level has downsampling 3; valid: [1, 2, 4]"),
        (model(train={"stpes": 3}), "models.m.train.stpes: unknown key; did you mean `steps`?"),
        (model(sample={"steps": [0]}), "models.m.sample.steps.0: input should be greater than or equal to 1, not 0"),
        (
            {"data": {"simulated": {"shape": [40, 32, 32]}}} | model(channel_multipliers=[1, 1, 2, 3, 4]),
            "the side of 40 voxels along R cannot be halved 4 times, as 5 levels need; use a multiple of 16",
        ),
    ],
)
def test_a_fault_is_caught_while_parsing_with_its_key_and_remedy(raw, message):
    with pytest.raises(SpecError) as error:
        compose(raw)
    assert message in str(error.value)


def test_the_default_file_is_the_defaults(root):
    assert compose(yaml.safe_load((root / "config/config.yaml").read_text())) == Config()


def test_generated_files_have_not_drifted(root, capsys):
    assert write_generated(check=True, root=root) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["config/config.yaml", "config/paper.yaml", "tests/config/tiny.yaml", "tests/config/brats.yaml"]
)
def test_the_schema_admits_every_config(root, name):
    schema = json.loads((root / "workflow/schemas/config.schema.json").read_text())
    jsonschema.validate(yaml.safe_load((root / name).read_text()), schema)


def test_the_schema_is_closed(root):
    schema = json.loads((root / "workflow/schemas/config.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"trian": {}}, schema)


def test_the_papers_models_are_the_published_ones(root):
    config = compose(yaml.safe_load((root / "config/paper.yaml").read_text()))
    whole_head, brats = medddpm(config, "whole_head"), medddpm(config, "brats")
    assert (whole_head.shape, whole_head.in_channels, whole_head.out_channels) == ((128, 128, 128), 3, 1)
    assert (whole_head.attention_level, whole_head.condition) == (8, ("brain", "tumour"))
    assert (brats.shape, brats.in_channels, brats.out_channels) == ((192, 192, 144), 8, 4)
    assert (brats.attention_level, brats.num_res_blocks) == (12, 2)
    assert brats.tensor_shape == (144, 192, 192)
    assert train_job(config, "brats").train.steps == 100_000


@pytest.mark.parametrize(
    "name",
    [
        "config/config",
        "config/paper",
        "config/h200",
        "config/samplers",
        "config/speed",
        "config/quality",
        "config/paired",
        "config/curves",
        "tests/config/tiny",
        "tests/config/brats",
        "tests/config/whole_head",
    ],
)
def test_each_resolved_config_is_what_was_frozen(root, name):
    """A changed default shows here, so that it never retrains a model unseen. To accept: tests/config/freeze.py."""
    resolved = compose(yaml.safe_load((root / f"{name}.yaml").read_text())).model_dump(mode="json")
    frozen = root / "tests/config/resolved" / f"{name.split('/')[-1]}.json"
    assert resolved == json.loads(frozen.read_text())


def test_a_model_differs_only_where_it_says_so():
    config = compose({"train": {"batch": 3, "ema": {"start": 7}}} | model(train={"steps": 5, "ema": {"decay": 0.9}}))
    train = train_job(config, "m").train
    assert (train.steps, train.batch, train.ema.decay, train.ema.start) == (5, 3, 0.9, 7)


def test_how_checkpoints_are_written_is_no_part_of_what_training_makes():
    often = compose({"train": {"checkpoint": {"steps": 1}, "accept_checkpoint": "abc"}})
    assert train_job(often, "med_ddpm") == train_job(compose({}), "med_ddpm")
    assert conduct_job(often, "med_ddpm").checkpoint.steps == 1


def test_samplers_run_at_every_number_of_steps_and_ddpm_at_all_of_its_schedule():
    config = compose({"sample": {"samplers": ["ddim", "ddpm"], "steps": [5, 9]}})
    strict = ("fp32_strict",)
    assert sample_runs(config, "med_ddpm") == [("ddim", 5, *strict), ("ddim", 9, *strict), ("ddpm", 250, *strict)]
    every = compose({"sample": {"samplers": ["ddim"], "steps": None}})
    assert sample_runs(every, "med_ddpm") == [("ddim", 250, *strict)]


QUALITY = {
    "sample": {
        "samplers": ["dpm_solver_pp", "ddpm"],
        "variants": ["fp32_strict", "tf32", "fast"],
        "variants_of": {"ddpm": ["fast"]},
    },
    "metrics": {"baselines": [{"variant": "fp32_strict"}, {"sampler": "ddpm"}]},
}


def test_a_costly_sampler_can_run_in_fewer_variants():
    few = [("dpm_solver_pp", 20, name) for name in ("fp32_strict", "tf32", "fast")]
    assert sample_runs(compose(QUALITY), "med_ddpm") == [*few, ("ddpm", 250, "fast")]


def test_runs_are_compared_with_each_baseline_that_is_sampled_and_is_another_run():
    strict, tf32, fast, every = sample_runs(compose(QUALITY), "med_ddpm")
    assert comparisons(compose(QUALITY), "med_ddpm") == [(tf32, strict), (fast, strict), (fast, every)]


def test_redefining_a_variant_concerns_its_own_jobs_alone():
    def study(benchmark: bool):
        mine = {"like": "bf16", "cudnn_benchmark": benchmark}
        return compose({"variants": {"mine": mine}, "sample": {"variants": ["bf16", "mine"]}})

    for name, same in (("bf16", True), ("mine", False)):
        one, other = (sample_job(study(on), "med_ddpm", "dpm_solver_pp", 20, name) for on in (True, False))
        assert (one == other) is same
    assert train_job(study(True), "med_ddpm") == train_job(study(False), "med_ddpm")


@pytest.mark.parametrize(
    ("sampler", "key"), [("ddim", "eta"), ("dpm_solver_pp", "eta"), ("ddpm", None), ("deis", "order")]
)
def test_eta_and_order_matter_only_to_samplers_that_take_them(sampler, key):
    before = sample_job(compose({"sample": {"samplers": ["ddim"], "steps": [5]}}), "med_ddpm", sampler, 5, "tf32")
    for name, value in (("eta", 0.5), ("order", 1)):
        config = compose({"sample": {"samplers": [sampler, "ipndm"], "steps": [5, 6], name: value}})
        assert (sample_job(config, "med_ddpm", sampler, 5, "tf32") != before) is (name == key)


def test_a_sample_table_counts_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = compose({"data": {"simulated": {"samples": "t.tsv"}}})
    for name in ("m", "t", "m2", "t2"):
        (tmp_path / name).touch()
    (tmp_path / "t.tsv").write_text("subject\tmask\tt1\na\tm\tt\n")
    before = data_job(config, "simulated")
    for name in ("t.tsv", "m", "t"):
        (tmp_path / name).touch()
    assert data_job(config, "simulated") == before
    (tmp_path / "t.tsv").write_text("subject\tmask\tt1\na\tm\tt\nb\tm2\tt2\n")
    assert data_job(config, "simulated") != before


def test_a_replaced_image_counts_though_its_time_stamp_is_old(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = compose({"data": {"simulated": {"samples": "t.tsv"}}})
    (tmp_path / "t.tsv").write_text("subject\tmask\tt1\na\tm\tt\n")
    for name in ("m", "t"):
        (tmp_path / name).touch()
    before = data_job(config, "simulated")
    (tmp_path / "t").write_text("other")
    os.utime(tmp_path / "t", (0, 0))
    assert data_job(config, "simulated") != before


@pytest.mark.parametrize(
    ("raw", "split"),
    [
        ({"data": {"simulated": {"split": {"train": 0, "test": 1}}}}, "train"),
        ({"sample": {"split": "validation"}}, "validation"),
        ({"data": {"simulated": {"simulated": {"subjects": 1}}}}, "test"),
        ({"data": {"simulated": {"samples": "t.tsv"}}, "sample": {"split": "train"}}, "train"),
    ],
)
def test_an_empty_split_is_found_before_anything_runs(tmp_path, monkeypatch, raw, split):
    monkeypatch.chdir(tmp_path)
    for name in ("m", "t"):
        (tmp_path / name).touch()
    (tmp_path / "t.tsv").write_text("subject\tmask\tt1\tsplit\na\tm\tt\ttest\n")
    with pytest.raises(
        SpecError, match=f"none of the .* subjects is in the split `{split}`, which models.med_ddpm needs"
    ):
        check_splits(compose(raw))


def test_weights_used_as_they_are_need_no_training_split_but_for_the_segmenter():
    raw = {"data": {"simulated": {"split": {"train": 0, "test": 1}}}, "train": {"steps": 0, "weights": "w"}}
    with pytest.raises(SpecError, match=r"in the split `train`.*change metrics\.segmenter\.steps \(0 leaves"):
        check_splits(compose(raw))
    check_splits(compose(raw | {"metrics": {"segmenter": {"steps": 0}}}))


def test_the_reference_of_the_distances_needs_subjects():
    with pytest.raises(SpecError, match=r"in the split `validation`.*column `split`, or change metrics\.reference"):
        check_splits(compose({"metrics": {"reference": "validation"}}))


def test_ddpm_alone_asks_for_no_number_of_steps():
    short = {"models": {"m": {"timesteps": 10}}}
    assert sample_runs(compose(short | {"sample": {"samplers": ["ddpm"]}}), "m") == [("ddpm", 10, "fp32_strict")]
    with pytest.raises(SpecError, match=r"sample\.steps: 20 exceeds the 10 steps"):
        compose(short)


@pytest.mark.parametrize("name", ["a=b", "a;b", "$x$", "<b>", "", "a b"])
def test_a_mask_channel_has_a_plain_name(name):
    with pytest.raises(SpecError, match=r"is no such text; use letters, digits, `_` and `-`"):
        compose({"data": {"simulated": {"labels": {name: [1]}}}})


def test_replaced_weights_train_anew_whatever_their_time_stamp(tmp_path):
    weights = tmp_path / "w.pt"
    raw = {"train": {"steps": 0, "weights": str(weights)}}
    seen = set()
    for content in (b"a" * 5_000_000, b"a" * 4_999_999 + b"b", b"a" * 5_000_001):
        weights.write_bytes(content)
        os.utime(weights, (0, 0))
        seen.add(train_job(compose(raw), "med_ddpm").canonical())
    assert len(seen) == 3


def test_a_feature_networks_file_without_its_hash_is_shown_the_hash(tmp_path):
    (tmp_path / "net.pth").write_bytes(b"x")
    features = {"network": "medicalnet_10", "weights": str(tmp_path / "net.pth")}
    with pytest.raises(SpecError, match=r"weights_sha256: not set; .*net\.pth has 2d711642b726b044"):
        check_files(compose({"metrics": {"features": features}}))


def test_a_missing_sample_table_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"no sample table t\.tsv; make one: .*genaccel\.data\.brats"):
        data_job(compose({"data": {"simulated": {"samples": "t.tsv"}}}), "simulated")
