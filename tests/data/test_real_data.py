"""Real MRI through the stage and back onto its mask's grid."""

from __future__ import annotations

import nibabel as nib
import numpy as np
import pytest

from genaccel.data.__main__ import main
from genaccel.data.brats import brats_table
from genaccel.data.grid import to_source
from genaccel.data.manifest import load_subject, read_manifest
from genaccel.data.nifti import read_labels, read_volume
from genaccel.data.spec import DataJob, DataSpec

pytestmark = pytest.mark.real_data
MODALITIES = ("t1", "t1ce", "t2", "flair")
BRATS = {"tumour_1": [1], "tumour_2": [2], "tumour_3": [3], "brain": [4]}


@pytest.fixture
def prepare(real_data, write_table, tmp_path):
    """Runs the stage on the whole-head or the BraTS subject; its manifest's path."""

    def run(which, **settings):
        row = {
            "subject": "s1",
            "mask": str(real_data / "whole_head" / "mask_sample_3.nii.gz"),
            "t1": str(real_data / "whole_head" / "image_sample_3.nii.gz"),
        }
        if which == "brats":
            (row,) = brats_table(real_data / "brats")
            settings = {"modalities": list(MODALITIES), "labels": BRATS} | settings
        samples = write_table(tuple(row), tuple(row.values()))
        job = DataJob(dataset="x", data=DataSpec.build({"samples": "x", "shape": [48, 48, 32]} | settings))
        out = ["--manifest", str(tmp_path / "m.json"), "--volumes", str(tmp_path / "volumes")]
        main(["--spec", job.canonical(), "--samples", str(samples), *out])
        return tmp_path / "m.json"

    return run


def test_a_whole_head_goes_through_on_a_grid_that_is_no_cube(prepare, real_data):
    path = prepare("whole_head")
    (subject,) = read_manifest(path).subjects
    image, labels = load_subject(path, subject)
    assert (image.shape, labels.shape) == ((1, 48, 48, 32), (2, 48, 48, 32))
    assert (image.min(), image.max()) == (-1, pytest.approx(1, abs=0.2))
    assert subject.source_label_voxels == {"brain": 1152632, "tumour": 1145}
    assert all(subject.label_voxels.values())
    assert subject.grid.source_shape == (128, 128, 128)


def test_a_whole_head_comes_back_exactly_where_its_voxels_are_kept(prepare, real_data):
    path = prepare("whole_head", fit="crop_pad", shape=[128, 112, 144], percentiles=[0, 100])
    (subject,) = read_manifest(path).subjects
    image, _ = load_subject(path, subject)
    back = to_source(image[0], subject.grid, fill=-1)
    source = read_volume(real_data / "whole_head" / "image_sample_3.nii.gz").array
    assert back.shape == source.shape
    assert np.allclose(back[:, 8:-8], source[:, 8:-8], atol=1e-6)
    assert (back[:, :8] == -1).all()


def test_a_brats_subject_keeps_its_four_modalities_and_labels(prepare, real_data):
    path = prepare("brats", fit="crop_pad", shape=[192, 192, 144])
    manifest = read_manifest(path)
    (subject,) = manifest.subjects
    image, labels = load_subject(path, subject)
    assert (manifest.modalities, image.shape, labels.shape) == (MODALITIES, (4, 192, 192, 144), (4, 192, 192, 144))
    mask = read_labels(real_data / "brats" / "BraTS2021_01306_seg.nii.gz")
    assert subject.sources["mask"].orientation == mask.orientation == "LPS"
    for channel, voxels in zip(manifest.channels, labels, strict=True):
        assert np.array_equal(to_source(voxels, subject.grid, fill=0, order=0), mask.array == BRATS[channel][0])


def test_a_volume_on_the_masks_grid_overlays_the_mask(prepare, real_data, tmp_path):
    # What the small grid calls brain must be brain again where a viewer puts it.
    path = prepare("brats")
    manifest = read_manifest(path)
    (subject,) = manifest.subjects
    _, labels = load_subject(path, subject)
    back = to_source(labels[manifest.channels.index("brain")], subject.grid, fill=0, order=0)
    nib.save(nib.Nifti1Image(back, np.array(subject.grid.source_affine)), tmp_path / "back.nii.gz")
    written, mask = nib.load(tmp_path / "back.nii.gz"), nib.load(real_data / "brats" / "BraTS2021_01306_seg.nii.gz")
    assert written.shape == mask.shape
    assert np.array_equal(written.affine, mask.affine)
    brain = np.asarray(mask.dataobj) == 4
    assert 2 * (brain & (back > 0)).sum() / (brain.sum() + back.sum()) > 0.85
