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


def test_a_series_is_refused(write_nifti):
    with pytest.raises(InputFault, match=r"x\.nii\.gz has shape 3x4x5x2, not three axes"):
        read_volume(write_nifti("x.nii.gz", np.stack([ARRAY, ARRAY], -1)))


def test_voxels_that_are_not_finite_are_counted(write_nifti):
    broken = ARRAY.astype(np.float32)
    broken[0, 0, :3], broken[1, 1, 1] = np.nan, np.inf
    with pytest.raises(InputFault, match="holds NaN in 3 voxels and infinity in 1, of 60"):
        read_volume(write_nifti("x.nii.gz", broken))


@pytest.mark.parametrize("keep", [200, 700])
@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_a_file_cut_short_is_refused(write_nifti, name, keep):
    noise = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(np.float32)
    path = write_nifti(name, noise)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputFault, match=r"cut short or damaged|no NIfTI file"):
        read_volume(path)


@pytest.mark.parametrize("where", ["voxels", "check sum"])
def test_a_damaged_byte_is_noticed(write_nifti, where):
    noise = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(np.float32)
    path = write_nifti("x.nii.gz", noise)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if where == "voxels" else -6] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputFault, match="cut short or damaged"):
        read_volume(path)


@pytest.mark.parametrize("content", [b"", b"subject\tmask\n" * 100, gzip.compress(b"text" * 500)])
def test_a_file_of_another_type_is_refused(tmp_path, content):
    path = tmp_path / "x.nii.gz"
    path.write_bytes(content)
    with pytest.raises(InputFault, match=r"x\.nii\.gz is no NIfTI file"):
        read_volume(path)


def test_colours_are_refused(write_nifti):
    rgb = np.zeros((3, 4, 5), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    with pytest.raises(InputFault, match="stores colours, not one real number a voxel"):
        read_volume(write_nifti("x.nii.gz", rgb))


def test_complex_numbers_are_refused(write_nifti):
    with pytest.raises(InputFault, match="stores complex64 numbers"):
        read_volume(write_nifti("x.nii.gz", ARRAY.astype(np.complex64)))


def test_a_sheared_affine_is_refused(write_nifti):
    sheared = np.eye(4)
    sheared[0, 1] = 0.2
    with pytest.raises(InputFault, match=r"sheared affine: two of its voxel axes stand at 78\.69 degrees"):
        read_volume(write_nifti("x.nii.gz", ARRAY, sheared))


def test_a_rotated_affine_is_accepted(write_nifti):
    rotated = np.eye(4)
    rotated[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    assert np.allclose(read_volume(write_nifti("x.nii.gz", ARRAY, rotated)).affine, rotated)


def test_an_affine_without_volume_is_refused(write_nifti):
    path = write_nifti("x.nii.gz", ARRAY)
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[312:328] = bytes(16)  # srow_z
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(InputFault, match="gives its voxels no volume"):
        read_volume(path)


def test_integer_labels_with_a_slope_near_one_are_rounded(write_nifti):
    labels = (ARRAY % 5).astype(np.int16)
    path = write_nifti("mask.nii.gz", labels)
    with_slope(path, 0.99998, 0)
    assert np.array_equal(read_labels(path).array, labels)


def test_float_labels_become_integers(write_nifti):
    volume = read_labels(write_nifti("mask.nii.gz", (ARRAY % 5).astype(np.float64)))
    assert volume.array.dtype == np.int32


def test_labels_between_whole_numbers_are_refused(write_nifti):
    labels = (ARRAY % 5).astype(np.float32)
    labels[0, 0, :2] = 1.5
    with pytest.raises(InputFault, match=r"no whole number in 2 voxels, but for example 1\.5"):
        read_labels(write_nifti("mask.nii.gz", labels))


def test_image_and_mask_of_different_shape_are_refused(write_nifti):
    image, mask = (read_volume(write_nifti(f"{n}.nii.gz", a)) for n, a in (("t1", ARRAY), ("mask", ARRAY[:, :3])))
    with pytest.raises(InputFault, match=r"t1\.nii\.gz has shape 3x4x5 but mask\.nii\.gz 3x3x5"):
        check_same_grid(image, mask)


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
