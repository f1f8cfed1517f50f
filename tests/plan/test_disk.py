"""Disk that outputs take, against what is really written."""

from __future__ import annotations

import nibabel as nib
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from genaccel.config.compose import compose, job
from genaccel.data.spec import DataSpec
from genaccel.plan.dag import Job
from genaccel.plan.disk import DataSet, disk_bytes, parameters
from genaccel.train.checkpoint import KEEP


@pytest.fixture
def config():
    data = {"a": {"simulated": {"subjects": 4}, "shape": [16, 24, 32], "split": {"train": 0.5, "test": 0.5}}}
    return compose({"data": data, "models": {"m": {"data": "a", "channel_multipliers": [1, 1]}}})


def planned(config, rule: str, kind: str, **names: str) -> float:
    spec = job(config, kind, **names).canonical()
    named = {"model": "m", "dataset": "a"} | names
    return disk_bytes(Job(rule, named, spec, 1, 0, 0, 0), DataSet(config.data["a"]))


def test_prepared_volumes_take_what_safetensors_writes(config, tmp_path):
    image, labels = np.zeros((1, 16, 24, 32), np.float32), np.zeros((2, 16, 24, 32), np.uint8)
    save_file({"image": image, "labels": labels}, tmp_path / "x.safetensors")
    written = 4 * (tmp_path / "x.safetensors").stat().st_size
    assert planned(config, "data_prepare", "data", dataset="a") == pytest.approx(written, rel=0.01)


def test_training_takes_its_weights_and_one_checkpoint_more_than_it_keeps(config):
    weights = 4 * parameters(job(config, "train", model="m").model)
    assert planned(config, "train_model", "train", model="m") == pytest.approx(
        weights + (KEEP + 1) * 4 * weights, rel=0.01
    )


def test_a_checkpoint_is_four_times_the_weights(config, tmp_path):
    from genaccel.med_ddpm.unet import UNet

    spec = job(config, "train", model="m").model
    model = UNet(spec)
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state | {"ema": {name: value.clone() for name, value in model.state_dict().items()}}, tmp_path / "x.pt")
    assert (tmp_path / "x.pt").stat().st_size == pytest.approx(16 * parameters(spec), rel=0.05)


def test_samples_are_those_of_the_split_that_is_sampled(config):
    one = planned(config, "sample_volumes", "sample", model="m", sampler="ddim", steps="20", variant="tf32")
    every = config.model_copy(update={"sample": config.sample.model_copy(update={"per_mask": 3})})
    assert planned(every, "sample_volumes", "sample", model="m", sampler="ddim", steps="20", variant="tf32") == 3 * one
    # Two of the four subjects, at least their volumes on the model's grid.
    assert one > 2 * 4 * 16 * 24 * 32


def test_a_data_sets_own_grid_is_read_from_its_masks_headers(tmp_path):
    for subject in ("s1", "s2"):
        for column in ("mask", "t1"):
            nib.save(
                nib.Nifti1Image(np.zeros((10, 11, 12), np.int16), np.eye(4)), tmp_path / f"{subject}_{column}.nii.gz"
            )
    rows = ["subject\tmask\tt1", *(f"{s}\t{s}_mask.nii.gz\t{s}_t1.nii.gz" for s in ("s1", "s2"))]
    (tmp_path / "samples.tsv").write_text("\n".join(rows) + "\n")
    assert DataSet(DataSpec(samples=str(tmp_path / "samples.tsv"))).source_voxels == 10 * 11 * 12


def test_simulated_subjects_take_about_what_the_simulation_writes(tmp_path, config):
    from genaccel.data.simulate.__main__ import main

    main(["--spec", job(config, "simulate", dataset="a").canonical(), "--out", str(tmp_path / "out")])
    written = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert planned(config, "data_simulate", "simulate", dataset="a") == pytest.approx(written, rel=0.2)
