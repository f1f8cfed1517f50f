"""What the manifest keeps, and how it is read back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from genaccel.data.grid import plan_grid
from genaccel.data.manifest import Intensity, Manifest, Source, Subject, load_subject, read_manifest, write_manifest

SHAPE = (3, 4, 5)


@pytest.fixture
def manifest() -> Manifest:
    source = Source(path="m.nii", sha256="00", shape=SHAPE, spacing=(1, 1, 1.5), orientation="LPS")
    image = Intensity(p_low=0, p_high=9.5, min=0, max=10, mean=0.1, std=1 / 3)
    subject = Subject(
        subject="s1",
        split="test",
        volume="volumes/s1.safetensors",
        volume_sha256="00",
        sources={"mask": source, "t1": source.model_copy(update={"intensity": image})},
        grid=plan_grid(SHAPE, np.diag([-1, -1, 1.5, 1]), SHAPE, "crop_pad"),
        label_voxels={"brain": 3},
        source_label_voxels={"brain": 3},
    )
    return Manifest(dataset="x", kind="real", modalities=("t1",), channels=("brain",), shape=SHAPE, subjects=(subject,))


@pytest.fixture
def on_disk(manifest, tmp_path):
    write_manifest(tmp_path / "manifest.json", manifest)
    (tmp_path / "volumes").mkdir()
    return tmp_path / "manifest.json"


def save(folder, image_shape=(1, *SHAPE), **tensors) -> None:
    default = {"image": np.ones(image_shape, np.float32), "labels": np.ones((1, *SHAPE), np.uint8)}
    save_file(default | tensors, folder / "volumes" / "s1.safetensors")


def test_a_manifest_reads_back_as_it_was(manifest, on_disk):
    assert read_manifest(on_disk) == manifest


def test_one_manifest_gives_one_text(manifest, on_disk):
    before = on_disk.read_bytes()
    write_manifest(on_disk, read_manifest(on_disk))
    assert on_disk.read_bytes() == before


def signed(on_disk, sign):
    """The manifest's subject once the hash of its volume is right."""
    sign(on_disk)
    return read_manifest(on_disk).subjects[0]


def test_volumes_are_found_from_the_manifests_folder(on_disk, tmp_path, monkeypatch, sign):
    save(tmp_path)
    monkeypatch.chdir("/")
    image, labels = load_subject(on_disk, signed(on_disk, sign))
    assert (image.shape, image.dtype, labels.shape, labels.dtype) == ((1, *SHAPE), np.float32, (1, *SHAPE), np.uint8)


def test_subjects_of_a_split(manifest):
    assert [len(manifest.in_split(split)) for split in ("train", "validation", "test")] == [0, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"version": 0}, "has version 0, this program reads 1"), ({"colour": 1}, "colour: unknown key")],
)
def test_another_format_is_refused(on_disk, change, message):
    on_disk.write_text(json.dumps(json.loads(on_disk.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        read_manifest(on_disk)


@pytest.mark.parametrize("text", ["subject\tmask", "[]", ""])
def test_what_is_no_manifest_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match="delete it and run again"):
        read_manifest(tmp_path / "x.json")


def test_a_missing_volume_names_its_subject(manifest, on_disk):
    with pytest.raises(ValueError, match=r"s1: cannot read .*s1\.safetensors"):
        load_subject(on_disk, manifest.subjects[0])


def test_what_is_no_volume_is_refused(on_disk, tmp_path, sign):
    (tmp_path / "volumes" / "s1.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(ValueError, match="s1: cannot read"):
        load_subject(on_disk, signed(on_disk, sign))


def test_a_volume_that_was_changed_is_refused_with_what_to_do(on_disk, tmp_path, sign):
    save(tmp_path)
    subject = signed(on_disk, sign)
    save(tmp_path, image=np.zeros((1, *SHAPE), np.float32))
    with pytest.raises(
        ValueError, match=r"s1: .* was changed since it was written; delete .*manifest\.json and run again"
    ):
        load_subject(on_disk, subject)


def test_a_volume_of_another_grid_is_refused(on_disk, tmp_path, sign):
    save(tmp_path, image_shape=(1, 4, 4, 4))
    with pytest.raises(ValueError, match=r"holds shapes \(1, 4, 4, 4\)"):
        load_subject(on_disk, signed(on_disk, sign))
