"""Every fault of a file itself, as the stage words it. `refused` compares the whole message."""

from __future__ import annotations

import gzip

import nibabel as nib
import numpy as np

COPY = "Copy or download it again."
CONVERT = "Convert it to a single .nii or .nii.gz file."


def test_a_file_cut_short_whose_header_loads_is_refused(study, refused):
    content = gzip.decompress(study.path("t1").read_bytes())
    # Stored rather than deflated, so that the cut falls where it says.
    whole = gzip.compress(content, compresslevel=0, mtime=0)
    study.path("t1").write_bytes(whole[: whole.index(content[:40]) + 1200])
    assert nib.load(study.path("t1")).shape == (8, 9, 7)
    refused("t1.nii.gz is cut short: its header announces 1,360 bytes, of which 1,200 unpack.", COPY)


def test_an_unpacked_file_cut_short_is_refused(study, refused):
    study.path("t1").write_bytes(gzip.decompress(study.path("t1").read_bytes())[:1000])
    refused("t1.nii.gz is cut short: its header announces 1,360 bytes, of which 1,000 are there.", COPY)


def test_a_file_packed_after_it_was_cut_short_is_refused(study, refused):
    study.path("t1").write_bytes(gzip.compress(gzip.decompress(study.path("t1").read_bytes())[:1000]))
    refused("t1.nii.gz is cut short: its header announces 1,360 bytes, of which 1,000 unpack.", COPY)


def test_a_file_without_its_last_bytes_is_refused(study, refused):
    study.path("t1").write_bytes(study.path("t1").read_bytes()[:-3])
    refused("t1.nii.gz is cut short: the check sum at its end is missing.", COPY)


def test_a_file_cut_short_in_its_first_bytes_is_refused(study, refused):
    study.path("t1").write_bytes(study.path("t1").read_bytes()[:12])
    refused("t1.nii.gz is cut short: only 0 bytes of it unpack.", COPY)


def test_a_file_with_one_bit_wrong_is_refused(study, refused):
    content = bytearray(study.path("t1").read_bytes())
    content[-6] ^= 1
    study.path("t1").write_bytes(content)
    refused("t1.nii.gz is damaged: its bytes do not fit gzip's check sum.", COPY)


def test_a_header_that_announces_more_than_memory_is_refused(study, refused):
    study.write("t1", study.image, dim=[3, 30000, 30000, 30000, 1, 1, 1, 1])
    refused("t1.nii.gz is cut short: its header announces 54,000,000,000,352 bytes, of which 1,360 unpack.", COPY)


def test_a_header_with_a_negative_side_is_refused(study, refused):
    study.write("t1", study.image, dim=[3, -8, 9, 7, 1, 1, 1, 1])
    refused("t1.nii.gz has a damaged header: it gives the shape -8x9x7.", COPY)


def test_a_header_with_an_unknown_type_is_refused(study, refused):
    study.write("t1", study.image, datatype=77)
    refused("t1.nii.gz has a damaged header (data code 77 not recognized).", COPY)


def test_an_empty_file_is_refused(study, refused):
    study.path("t1").write_bytes(b"")
    refused("t1.nii.gz is no NIfTI file: it is empty.", COPY)


def test_a_text_in_place_of_an_image_is_refused(study, refused):
    study.path("t1").write_bytes(b"subject\tmask\r\n" * 100)
    refused("t1.nii.gz is no NIfTI file: its 1,400 bytes lack the mark n+1 or n+2.", CONVERT)


def test_a_web_page_in_place_of_an_image_is_refused(study, refused):
    study.path("t1").write_bytes(b"<!DOCTYPE html><html>")
    refused(
        "t1.nii.gz is no NIfTI file but a web page of 21 bytes.",
        "Download it again; the server answered with a page, perhaps to log in.",
    )


def test_a_dicom_file_is_refused(study, refused):
    study.path("t1").write_bytes(bytes(128) + b"DICM" + bytes(68))
    refused(
        "t1.nii.gz is no NIfTI file but a DICOM file of 200 bytes.", "Convert its series, for example with dcm2niix."
    )


def test_half_of_a_pair_is_refused(study, refused):
    study.path("t1").write_bytes(bytes(344) + b"ni1\0" + bytes(4))
    refused("t1.nii.gz is no NIfTI file but the header of an .hdr/.img pair of 352 bytes.", CONVERT)


def test_a_freesurfer_file_is_refused(study, refused):
    study.path("t1").write_bytes(gzip.compress(b"\0\0\0\1" + bytes(396)))
    refused("t1.nii.gz is no NIfTI file but an MGH file of 400 bytes.", "Convert it, for example with mri_convert.")


def test_a_pointer_that_git_lfs_left_is_refused(study, refused):
    study.path("t1").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    refused("t1.nii.gz is no NIfTI file but a Git LFS pointer of 43 bytes.", "Fetch the file itself: git lfs pull.")


def test_complex_numbers_are_refused(study, refused):
    study.write("t1", study.image.astype(np.complex64))
    refused("t1.nii.gz stores complex64 numbers, not one real number a voxel.", "Convert it to a grey-scale volume.")


def test_colours_are_refused(study, refused):
    study.write("t1", np.zeros(study.mask.shape, dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")]))
    refused("t1.nii.gz stores colours, not one real number a voxel.", "Convert it to a grey-scale volume.")


def test_a_series_is_refused(study, refused):
    study.write("t1", np.stack([study.image] * 2, -1))
    refused("t1.nii.gz has shape 8x9x7x2, not three axes.", "Give one volume a file: split a series into its volumes.")
