"""Real MRI through the stage and back onto its mask's grid."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from genaccel.data.__main__ import main
from genaccel.data.brats import brats_table
from genaccel.data.faults import InputFault
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

    def run(which, row=None, **settings):
        row = row or {
            "subject": "s1",
            "mask": str(real_data / "whole_head" / "mask_sample_3.nii.gz"),
            "t1": str(real_data / "whole_head" / "image_sample_3.nii.gz"),
        }
        if which == "brats":
            (row,) = brats_table(real_data / "brats")
        if which != "whole_head":
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


@pytest.fixture(scope="module")
def raw_brats(real_data, tmp_path_factory):
    """The BraTS subject as published, at every other voxel: background 0, no brain, enhancing tumour as 4 or 3."""
    folder = tmp_path_factory.mktemp("raw")
    (row,) = brats_table(real_data / "brats")
    mask = read_labels(Path(row["mask"]))
    labels, affine = mask.array[::2, ::2, ::2], mask.affine @ np.diag([2, 2, 2, 1])
    files = {2021: {"subject": "s1"}, 2023: {"subject": "s1"}}
    for year in files:
        (folder / str(year)).mkdir()
        published = np.array([0, 1, 2, 4 if year == 2021 else 3, 0], np.uint8)[labels]
        files[year]["mask"] = str(folder / str(year) / "seg.nii")
        nib.save(nib.Nifti1Image(published, affine), files[year]["mask"])
    for modality in MODALITIES:
        image = read_volume(Path(row[modality])).array[::2, ::2, ::2]
        intensities = np.where(labels > 0, np.rint((image + 1) * 500) + 1, 0).astype(np.int16)
        for year in files:
            files[year][modality] = str(folder / f"{modality}.nii")
        nib.save(nib.Nifti1Image(intensities, affine), folder / f"{modality}.nii")
    return files


NO_BRAIN = (
    "      Raw BraTS 2018-2021 calls enhancing tumour 4 and has no brain: set remap: {4: 3} and derive_brain: nonzero; "
    "if this is right, give the channel another name."
)


@pytest.mark.parametrize(
    ("year", "settings", "message"),
    [
        (
            2021,
            {},
            "s1 seg.nii: channel `brain` (label 4) covers 1,014 of 152,164 non-zero voxels of the images, 0.7%: too "
            "few for a brain.\n" + NO_BRAIN,
        ),
        (
            2021,
            {"labels": {"brain": [1, 2, 4], "tumour": [4]}},
            "s1 seg.nii: channel `brain` (label 1, 2, 4) covers 7,049 of 152,164 non-zero voxels of the images, "
            "4.6%: too few for a brain.\n" + NO_BRAIN,
        ),
        (
            2021,
            {"derive_brain": "nonzero"},
            "s1 seg.nii holds label 4 in 1,014 voxels, the very label that `data.derive_brain` fills.\n"
            "      Rename it with `data.remap` (raw BraTS 2018-2021: {4: 3}) or, if it is the brain, set derive_brain: "
            "null.",
        ),
        (
            2021,
            {"labels": {"tumour_1": [1], "tumour_2": [2], "tumour_3": [3], "brain": [5]}},
            "s1 seg.nii holds label 4 in 1,014 voxels, which no channel of `data.labels` names.\n"
            "      Add it to a channel, or to `data.ignore_labels`.",
        ),
        (
            2023,
            {},
            "s1 seg.nii has no voxel of channel `brain` (label 4); it holds label 1, 2, 3.\n"
            "      Raw BraTS masks hold the tumour alone: set derive_brain: nonzero and, for 2018-2021, remap: {4: 3}; "
            "else mend `data.labels`.",
        ),
    ],
)
def test_raw_brats_mapped_wrongly_is_refused(prepare, raw_brats, year, settings, message):
    with pytest.raises(InputFault) as fault:
        prepare("raw", row=raw_brats[year], **settings)
    assert str(fault.value) == message


@pytest.mark.parametrize(("year", "remap"), [(2021, {"4": 3}), (2023, {})])
def test_raw_brats_mapped_rightly_has_the_published_labels(prepare, raw_brats, year, remap):
    path = prepare("raw", row=raw_brats[year], remap=remap, derive_brain="nonzero")
    (subject,) = read_manifest(path).subjects
    assert subject.source_label_voxels == {"tumour_1": 6, "tumour_2": 6029, "tumour_3": 1014, "brain": 145115}


def test_prepared_brats_mapped_wrongly_is_refused(prepare):
    # Its images are scaled: their background is -1, so that "non-zero" is everywhere.
    with pytest.raises(InputFault, match=r"channel `brain` \(label 2\) covers [0-9,]+ of [0-9,]+ voxels above their"):
        prepare("brats", modalities=["t1"], labels={"edema": [1], "brain": [2], "tumour": [3, 4]})
