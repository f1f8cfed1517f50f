"""Reading NIfTI: what is honoured, and what is refused."""

from __future__ import annotations

import gzip
import struct

import nibabel as nib
import numpy as np
import pytest

from genaccel.data.faults import InputFault
from genaccel.data.nifti import check_same_grid, read_labels, read_volume

ARRAY = np.arange(60, dtype=np.int16).reshape(3, 4, 5)


def with_slope(path, slope: float, inter: float) -> None:
    """Sets the header's scaling without touching the stored integers."""
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[112:120] = struct.pack("<2f", slope, inter)
    path.write_bytes(gzip.compress(bytes(content)))


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_every_storage_reads_the_same(write_nifti, name, version, dtype):
    volume = read_volume(write_nifti(name, ARRAY.astype(dtype), version=version))
    assert volume.shape == (3, 4, 5)
    assert np.array_equal(volume.array, ARRAY)


def test_slope_and_intercept_are_honoured(write_nifti):
    path = write_nifti("x.nii.gz", ARRAY)
    with_slope(path, 0.5, -3)
    assert np.allclose(read_volume(path).array, ARRAY * 0.5 - 3)


def test_a_fourth_axis_of_one_voxel_is_dropped(write_nifti):
    volume = read_volume(write_nifti("x.nii.gz", ARRAY[..., None, None]))
    assert np.array_equal(volume.array, ARRAY)


def test_a_path_with_spaces_reads(write_nifti):
    assert read_volume(write_nifti("a folder/an image.nii.gz", ARRAY)).shape == (3, 4, 5)


def test_compression_is_told_by_content_not_by_name(write_nifti, tmp_path):
    packed = write_nifti("x.nii.gz", ARRAY)
    packed.rename(tmp_path / "y.nii")
    assert np.array_equal(read_volume(tmp_path / "y.nii").array, ARRAY)


def test_spacing_and_orientation_follow_the_affine(write_nifti):
    affine = np.array([[0, 0, 3, 0], [-1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 1.0]])
    volume = read_volume(write_nifti("x.nii.gz", ARRAY, affine))
    assert (volume.spacing, volume.orientation) == ((1, 2, 3), "PSR")


def test_a_header_without_orientation_is_marked(write_nifti):
    path = write_nifti("x.nii.gz", ARRAY)
    assert read_volume(path).oriented
    image = nib.load(path)
    image.header["sform_code"] = image.header["qform_code"] = 0
    path.write_bytes(gzip.compress(image.header.binaryblock + b"\0" * 4 + ARRAY.tobytes(order="F")))
    assert not read_volume(path).oriented


def test_a_rotated_affine_is_accepted(write_nifti):
    rotated = np.eye(4)
    rotated[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    assert np.allclose(read_volume(write_nifti("x.nii.gz", ARRAY, rotated)).affine, rotated)


@pytest.mark.parametrize(("slope", "inter"), [(0.99998, 0), (1.00002, 0), (0.9995, 2e-4), (0, 0), (np.nan, np.nan)])
@pytest.mark.parametrize("largest", [4, 2035, 60_000])
def test_a_slope_that_is_one_but_for_rounding_leaves_labels_as_stored(write_nifti, slope, inter, largest):
    # 60,000 x 0.99998 would round to 59,999.
    labels = (ARRAY % 5 * (largest // 4)).astype(np.int32)
    path = write_nifti("mask.nii.gz", labels)
    with_slope(path, slope, inter)
    assert np.array_equal(read_labels(path).array, labels)


@pytest.mark.parametrize("largest", [2, 3, 4, 9])
def test_labels_that_a_writer_spread_over_bytes_come_back(write_nifti, tmp_path, largest):
    # nibabel does so where an image of floats has a header of uint8: 1 comes back as 1.0039.
    labels = (ARRAY % (largest + 1)).astype(np.float64)
    image = nib.Nifti1Image(labels, np.eye(4))
    image.set_data_dtype(np.uint8)
    nib.save(image, tmp_path / "mask.nii.gz")
    assert not np.array_equal(read_volume(tmp_path / "mask.nii.gz").array, labels)
    assert np.array_equal(read_labels(tmp_path / "mask.nii.gz").array, labels)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("low", [0.0, 500.0])
def test_integers_that_use_their_whole_range_are_no_lost_nan(tmp_path, dtype, low):
    # As nibabel stores floats in integers: background at the lowest, the rest far above it.
    values = np.where(ARRAY < 30, 0, low + ARRAY).astype(np.float64)
    image = nib.Nifti1Image(values, np.eye(4))
    image.set_data_dtype(dtype)
    nib.save(image, tmp_path / "t1.nii.gz")
    assert np.allclose(read_volume(tmp_path / "t1.nii.gz").array, values, atol=5)


def test_nan_that_a_writer_made_zero_cannot_be_told_from_background(tmp_path):
    # A limit of any reader, stated: the file holds no trace of it.
    values = ARRAY.astype(np.float64)
    values[0, 0, :3] = np.nan
    image = nib.Nifti1Image(values, np.eye(4))
    image.set_data_dtype(np.int16)
    nib.save(image, tmp_path / "t1.nii.gz")
    assert np.allclose(read_volume(tmp_path / "t1.nii.gz").array[0, 0, :3], 0, atol=1e-3)


def test_the_codes_of_qform_and_sform_are_kept(write_nifti):
    path = write_nifti("x.nii.gz", ARRAY)
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[252:256] = struct.pack("<2h", 1, 4)
    path.write_bytes(gzip.compress(bytes(content)))
    assert read_volume(path).codes == (1, 4)


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError, IsADirectoryError])
def test_a_file_that_is_closed_to_its_reader_is_a_fault_of_the_subject(tmp_path, monkeypatch, error):
    def fail(path):
        raise error(1, "why")

    monkeypatch.setattr("pathlib.Path.read_bytes", fail)
    with pytest.raises(InputFault) as fault:
        read_volume(tmp_path / "x.nii.gz")
    assert str(fault.value) == (
        f"x.nii.gz cannot be read (why: {tmp_path}/x.nii.gz).\n      Mend its path or its permissions."
    )


def test_float_labels_become_integers(write_nifti):
    volume = read_labels(write_nifti("mask.nii.gz", (ARRAY % 5).astype(np.float64)))
    assert volume.array.dtype == np.int32


@pytest.mark.parametrize(("shift", "same"), [(0.01, True), (0.2, False)])
def test_image_and_mask_must_lie_in_one_place(write_nifti, shift, same):
    moved = np.eye(4)
    moved[1, 3] = shift
    image, mask = read_volume(write_nifti("t1.nii.gz", ARRAY, moved)), read_volume(write_nifti("mask.nii.gz", ARRAY))
    if same:
        check_same_grid(image, mask)
    else:
        with pytest.raises(InputFault, match=r"different affines: their voxels lie up to 0\.2 mm apart"):
            check_same_grid(image, mask)
