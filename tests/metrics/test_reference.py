import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from genaccel.atomic import file_sha256
from genaccel.data.manifest import load_subject, read_manifest
from genaccel.metrics.memorisation import thumbnail
from genaccel.metrics.mmd import median_bandwidth
from genaccel.metrics.reference import read_real
from genaccel.metrics.tensor_file import METADATA
from genaccel.spec import SpecError


@pytest.fixture
def study(make_study, see):
    study = make_study(subjects=3, modalities=("t1", "flair"), train=2)
    see(study)
    return study


def changed(study, **metadata):
    """The same file with other metadata."""
    real = read_real(study.real)
    text = json.dumps(real.record.model_dump(mode="json") | metadata)
    save_file(load_file(study.real), study.real, metadata={METADATA: text})


def test_it_holds_every_volume_of_every_split(study, octants):
    real, manifest = read_real(study.real), read_manifest(study.manifest)
    assert real.record.subjects == tuple(s.subject for s in manifest.subjects)
    assert real.in_split("train").sum() == 2
    assert real.in_split("test").tolist() == [s.split == "test" for s in manifest.subjects]
    for row, subject in enumerate(manifest.subjects):
        image = torch.from_numpy(load_subject(study.manifest, subject)[0])
        for channel, name in enumerate(("t1", "flair")):
            assert real.features[name][row].tolist() == octants(image[channel][None, None])[0].double().tolist()
            assert real.thumbnails[name][row].tolist() == thumbnail(image[channel]).tolist()


def test_features_are_float64_and_thumbnails_float32(study):
    real = read_real(study.real)
    assert real.features["t1"].dtype == np.float64
    assert real.features["t1"].shape == (5, 8)
    assert real.thumbnails["t1"].dtype == np.float32


def test_it_says_what_it_was_made_of(study):
    record = read_real(study.real).record
    assert record.network.model_dump() == {"name": "deepbet", "sha256": "c" * 64, "dimension": 8}
    assert record.manifest_sha256 == file_sha256(study.manifest)
    assert record.modalities == ("t1", "flair")


def test_the_bandwidth_is_fixed_from_all_real_volumes(study):
    real = read_real(study.real)
    for name in ("t1", "flair"):
        assert real.record.bandwidth[name] == median_bandwidth(real.features[name])


def test_writing_twice_gives_the_same_bytes(study, see, tmp_path):
    shutil.copy(study.real, tmp_path / "before")
    see(study)
    assert (tmp_path / "before").read_bytes() == study.real.read_bytes()


def test_a_real_volume_that_is_not_finite_is_named_and_nothing_written(make_study, see, capsys, sign):
    study = make_study(subjects=1)
    path = study.manifest.parent / "volumes/s00.safetensors"
    tensors = load_file(path)
    tensors["image"][0, 0, 0, :2] = np.nan
    save_file(tensors, path)
    sign(study.manifest)
    with pytest.raises(SystemExit):
        see(study)
    assert "s00: volumes/s00.safetensors holds 2 of 1680 voxels that are NaN or infinite" in capsys.readouterr().err
    assert not study.real.exists()


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"version": 2}, "has version 2, this program reads 1; delete it and run again"),
        ({"surprise": 1}, "surprise: unknown key"),
        ({"subjects": ["a"]}, "does not hold what its metadata says"),
        ({"modalities": ["t1"]}, "does not hold what its metadata says"),
        ({"subjects": list("abcd"), "splits": ["test"] * 4}, "holds (5, 8) features and 5 thumbnails of t1"),
    ],
)
def test_metadata_that_do_not_fit_are_an_error(study, metadata, said):
    changed(study, **metadata)
    with pytest.raises(SpecError) as error:
        read_real(study.real)
    assert said in str(error.value)
    assert str(study.real) in str(error.value)


def test_a_damaged_file_is_an_error_with_its_remedy(study):
    study.real.write_bytes(study.real.read_bytes()[:-7])
    with pytest.raises(SpecError, match=r"cannot read .*real\.safetensors.*delete it and run again"):
        read_real(study.real)


def test_a_missing_file_is_an_error_with_its_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*absent\.safetensors; run the workflow"):
        read_real(tmp_path / "absent.safetensors")


def test_another_manifest_is_an_error(study, octants):
    with pytest.raises(SpecError, match=r"was made of another manifest .* than the one that is scored"):
        read_real(study.real).check(octants, "f" * 64, study.real)
