import json

import numpy as np
import pytest

from genaccel.data.manifest import read_manifest
from genaccel.metrics.samples import by_subject, load_sample, read_index
from genaccel.spec import SpecError


@pytest.fixture
def study(make_study):
    return make_study(subjects=2, per_mask=2)


def listed(study):
    return json.loads((study.samples / "index.json").read_text())["volumes"]


def test_samples_are_found_by_subject_whatever_their_order(study):
    study.index(volumes=listed(study)[::-1])
    found = by_subject(read_index(study.samples), read_manifest(study.manifest))
    assert {name: [v.sample for v in volumes] for name, volumes in found.items()} == {"s01": [0, 1], "s02": [0, 1]}


def test_keys_that_the_index_adds_for_the_record_are_no_fault(study):
    study.index(torch="2.13.0")
    assert read_index(study.samples).sampler == "ddim"


def test_a_volume_that_is_listed_but_missing_is_named(study):
    (study.samples / "s01-1.safetensors").unlink()
    with pytest.raises(SpecError, match=r"lists s01-1\.safetensors without a file; delete .* and run again"):
        read_index(study.samples)


def test_a_volume_that_is_there_but_not_listed_is_named(study):
    study.replace("s09-0", study.image("s01-0"))
    with pytest.raises(SpecError, match=r"s09-0\.safetensors not at all"):
        read_index(study.samples)


def test_a_volume_that_is_listed_twice_is_named(study):
    study.index(volumes=[*listed(study), listed(study)[0]])
    with pytest.raises(SpecError, match=r"s01-0\.safetensors twice"):
        read_index(study.samples)


def test_a_subject_with_fewer_samples_than_others_is_named(study):
    (study.samples / "s02-1.safetensors").unlink()
    study.index(volumes=listed(study)[:-1])
    with pytest.raises(SpecError, match=r"2 subjects in the split 'test', 1 lack samples .*: s02"):
        by_subject(read_index(study.samples), read_manifest(study.manifest))


def test_no_sample_at_all_is_an_error(study):
    for file in study.samples.glob("*.safetensors"):
        file.unlink()
    study.index(volumes=[])
    with pytest.raises(SpecError, match="s01, s02"):
        by_subject(read_index(study.samples), read_manifest(study.manifest))


def test_a_sample_of_another_split_is_named(study):
    study.replace("s00-0", study.image("s01-0"))
    study.index(volumes=[*listed(study), {"subject": "s00", "sample": 0, "volume": "s00-0.safetensors"}])
    with pytest.raises(SpecError, match=r"samples of s00, which the manifest does not have in the split 'test'"):
        by_subject(read_index(study.samples), read_manifest(study.manifest))


def test_a_split_without_subjects_is_named(study):
    study.index(split="validation")
    with pytest.raises(SpecError, match="no subject in the split 'validation'"):
        by_subject(read_index(study.samples), read_manifest(study.manifest))


@pytest.mark.parametrize("text", ["{", "[]", '{"model": "tiny"}'])
def test_what_is_no_index_is_an_error_that_names_the_file(study, text):
    (study.samples / "index.json").write_text(text)
    with pytest.raises(SpecError, match=r"index\.json"):
        read_index(study.samples)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_voxels_that_are_not_finite_are_counted(study, value):
    image = study.image("s01-0")
    shape = image.shape
    image[0, 1, 2, 3] = image[0, 2, 2, 3] = value
    study.replace("s01-0", image)
    volume = read_index(study.samples).volumes[0]
    with pytest.raises(SpecError, match=r"s01-0\.safetensors holds 2 of 1680 voxels that are NaN or infinite"):
        load_sample(study.samples, volume, shape)


def test_a_volume_of_another_shape_is_an_error(study):
    with pytest.raises(SpecError, match=r"shape \(1, 12, 14, 10\), the real image \(1, 8, 8, 8\)"):
        load_sample(study.samples, read_index(study.samples).volumes[0], (1, 8, 8, 8))


def test_a_damaged_file_is_an_error_that_names_it(study):
    (study.samples / "s01-0.safetensors").write_bytes(b"no tensors")
    with pytest.raises(SpecError, match=r"cannot read .*s01-0\.safetensors"):
        load_sample(study.samples, read_index(study.samples).volumes[0], (1, 12, 14, 10))
