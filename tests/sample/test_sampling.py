"""Sampling from its command line: volumes that depend on subject and seed alone, on the masks' own grids."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from genaccel.atomic import file_sha256
from genaccel.data.grid import plan_grid
from genaccel.data.manifest import Manifest, Subject, write_manifest
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.med_ddpm.weights import save_weights
from genaccel.sample.__main__ import main
from genaccel.sample.noise import VolumeNoise, volume_seed
from genaccel.sample.spec import SampleJob
from genaccel.variants import VARIANTS

SHAPE = (8, 4, 8)
# A mask stored in LPS order with voxels of three sizes, so that any swapped axis shows.
AFFINE = np.array([[-2.0, 0, 0, 10], [0, -3.0, 0, 20], [0, 0, 4.0, -30], [0, 0, 0, 1]])
MASK_SHAPE = (12, 6, 10)


@pytest.fixture(scope="module")
def model() -> MedDDPMSpec:
    return MedDDPMSpec.build(
        {
            "channel_multipliers": [1, 1],
            "timesteps": 6,
            "shape": SHAPE,
            "image": ["t1", "t2"],
            "condition": ["brain"],
            "axes": ["S", "P", "L"],
        }
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, model):
    """Manifest of three test subjects, and weights whose output is not all zero."""
    folder = tmp_path_factory.mktemp("inputs")
    generator = np.random.default_rng(0)
    subjects = []
    for name in ("a", "b", "c"):
        labels = generator.integers(0, 2, (1, *SHAPE)).astype(np.uint8)
        save_file({"image": np.zeros((2, *SHAPE), np.float32), "labels": labels}, folder / f"{name}.safetensors")
        subjects.append(
            Subject(
                subject=name,
                split="test",
                volume=f"{name}.safetensors",
                volume_sha256=file_sha256(folder / f"{name}.safetensors"),
                sources={},
                grid=plan_grid(MASK_SHAPE, AFFINE, SHAPE, "resample"),
                label_voxels={"brain": 1},
                source_label_voxels={"brain": 1},
            )
        )
    manifest = Manifest(
        dataset="d",
        kind="simulated",
        modalities=("t1", "t2"),
        channels=("brain",),
        shape=SHAPE,
        subjects=tuple(subjects),
    )
    write_manifest(folder / "manifest.json", manifest)
    torch.manual_seed(0)
    network = UNet(model)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    save_weights(folder / "weights.safetensors", network.state_dict(), {})
    return folder


@pytest.fixture
def sample(model, inputs, tmp_path):
    """Runs the stage and returns its folder."""

    def run(out: str = "out", code: str = "", **settings) -> Path:
        sampler, variant = settings.pop("sampler", "ddim"), settings.pop("variant", "fp32_strict")
        steps = model.timesteps if sampler == "ddpm" else settings.pop("steps", 3)
        spec = {"samplers": [sampler], "steps": None} | settings
        job = SampleJob.build(
            {
                "device": "cpu",
                "model": model.model_dump(mode="json"),
                "sampler": sampler,
                "steps": steps,
                "variant": variant,
                "switches": VARIANTS[variant].model_dump(),
                "sample": spec,
            }
        )
        main(
            [
                *("--spec", job.canonical(), "--threads", "1", "--manifest", str(inputs / "manifest.json")),
                *("--weights", str(inputs / "weights.safetensors"), "--out", str(tmp_path / out), "--code", code),
            ]
        )
        return tmp_path / out

    return run


def volumes(folder: Path) -> dict[str, np.ndarray]:
    return {path.stem: load_file(path)["image"] for path in sorted(folder.glob("*.safetensors"))}


@pytest.mark.parametrize("sampler", ["ddim", "ddpm"])
@pytest.mark.parametrize("batch", [2, 3, 7])
def test_a_volume_does_not_depend_on_its_batch(sample, sampler, batch):
    alone, together = (volumes(sample(f"{n}", sampler=sampler, batch=n, per_mask=2, eta=0.5)) for n in (1, batch))
    assert list(alone) == ["a-0", "a-1", "b-0", "b-1", "c-0", "c-1"]
    assert all(np.array_equal(alone[name], together[name]) for name in alone)


def test_samples_of_one_mask_differ_and_more_of_them_change_no_earlier_one(sample):
    one, two = volumes(sample("one")), volumes(sample("two", per_mask=2))
    assert np.array_equal(one["a-0"], two["a-0"])
    assert not np.array_equal(two["a-0"], two["a-1"])


@pytest.mark.parametrize("change", [{"seed": 1}, {"steps": 2}, {"sampler": "ddpm"}, {"variant": "bf16"}])
def test_other_settings_give_other_volumes(sample, change):
    first, second = volumes(sample("first")), volumes(sample("second", **change))
    assert not np.array_equal(first["a-0"], second["a-0"])


def test_the_nifti_lies_on_the_masks_own_grid(sample):
    folder = sample()
    for modality in ("t1", "t2"):
        image = nib.load(folder / f"a-0_{modality}.nii.gz")
        assert image.shape == MASK_SHAPE
        assert nib.aff2axcodes(image.affine) == ("L", "P", "S")
        np.testing.assert_array_equal(image.affine, AFFINE)
        assert image.get_data_dtype() == np.float32


def test_the_side_car_says_what_made_the_volume(sample, inputs):
    folder = sample(seed=3)
    side_car = json.loads((folder / "b-0.json").read_text())
    assert side_car["subject"] == "b"
    assert side_car["seed"] == volume_seed(3, "b", 0)
    assert (side_car["sampler"], side_car["steps"], side_car["variant"]) == ("ddim", 3, "fp32_strict")
    assert side_car["weights_sha256"] == file_sha256(inputs / "weights.safetensors")
    index = json.loads((folder / "index.json").read_text())
    assert [v["volume"] for v in index["volumes"]] == ["a-0.safetensors", "b-0.safetensors", "c-0.safetensors"]


def test_volumes_of_a_killed_attempt_are_kept_and_the_rest_is_sampled(sample, monkeypatch, capsys):
    whole = volumes(sample("whole"))
    from genaccel.sample import __main__ as stage

    real, written = stage.write_volume, []

    def killed_after_two(*arguments):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(real(*arguments))

    monkeypatch.setattr(stage, "write_volume", killed_after_two)
    with pytest.raises(KeyboardInterrupt):
        sample("cut", batch=1)
    monkeypatch.setattr(stage, "write_volume", real)
    cut = volumes(sample("cut", batch=1))
    assert "2 of 3 volumes are there from an earlier attempt" in capsys.readouterr().out
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)


def test_other_code_or_settings_take_nothing_from_a_killed_attempt(sample, monkeypatch, capsys):
    from genaccel.sample import __main__ as stage

    real = stage.write_volume

    def killed(folder, subject, *rest):
        real(folder, subject, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, "write_volume", killed)
    with pytest.raises(KeyboardInterrupt):
        sample("cut", batch=1)
    monkeypatch.setattr(stage, "write_volume", real)
    sample("cut", batch=1, code="edited")
    assert "earlier attempt" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": "train"}, r"no subject is in the split 'train' .*set sample.split to another"),
        ({"variant": "tf32"}, "sample.variants: tf32: a CPU has no TF32 tensor cores; choose another variant"),
    ],
)
def test_a_fault_says_what_to_do(sample, capsys, settings, message):
    import re

    with pytest.raises(SystemExit) as stopped:
        sample(**settings)
    assert stopped.value.code == 1
    assert re.search(f"sample: .*{message}", capsys.readouterr().err)


def test_noise_belongs_to_the_volume():
    pair = VolumeNoise([volume_seed(0, "a", 0), volume_seed(0, "b", 0)], (1, 2, 2, 2), torch.device("cpu"))
    alone = VolumeNoise([volume_seed(0, "b", 0)], (1, 2, 2, 2), torch.device("cpu"))
    for _ in range(3):
        assert torch.equal(pair()[1], alone()[0])
