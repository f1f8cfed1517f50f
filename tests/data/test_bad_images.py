"""Every fault of an image's voxels, as the stage words it. `refused` compares the whole message."""

from __future__ import annotations

import numpy as np

FINITE = "Repair the file, for example by writing 0 there if they are background."
NAN_AS_INTEGER = "Write it again as floating point and repair these voxels, for example by the background's value."


def test_a_constant_image_is_refused(study, refused):
    study.write("t1", np.full_like(study.image, 3))
    refused("t1.nii.gz is constant: all 504 voxels are 3.", "Give the image itself, or leave it out.")


def test_an_image_constant_but_for_a_few_voxels_is_refused(study, refused):
    image = np.zeros_like(study.image)
    image[0, 0, :4] = 9
    study.write("t1", image)
    refused(
        "t1.nii.gz is 0 at both its percentiles 1 and 99: only 4 of 504 voxels differ.",
        "Widen `data.percentiles`, for example to [0, 100], if the image is right.",
        percentiles=[1, 99],
    )


def test_voxels_that_are_nan_are_refused(study, refused):
    image = study.image.astype(np.float32)
    image[0, 0, :3] = np.nan
    study.write("t1", image)
    refused("t1.nii.gz holds NaN in 3 voxels and infinity in 0, of 504.", FINITE)


def test_voxels_that_are_infinite_are_refused(study, refused):
    image = study.image.astype(np.float64)
    image[0, 0, :3] = np.inf, -np.inf, np.nan
    study.write("t1", image)
    refused("t1.nii.gz holds NaN in 1 voxel and infinity in 2, of 504.", FINITE)


def test_a_mask_of_nan_alone_is_refused(study, refused):
    study.write("mask", np.full(study.mask.shape, np.nan, np.float32))
    refused("mask.nii.gz holds NaN in 504 voxels and infinity in 0, of 504.", FINITE)


def test_voxels_of_a_wrong_byte_order_are_refused(study, refused):
    image = study.image.astype(np.float64)
    image[0, 0, :2] = 1e300, -1e300
    study.write("t1", image)
    refused(
        "t1.nii.gz holds values up to 1e+300, in 2 of 504 voxels beyond single precision.",
        "Write it again; such values come of a wrong byte order or data type in the header.",
    )


def test_nan_written_as_int32_is_refused(study, refused):
    image = study.image.astype(np.int32)
    image[0, 0, :3] = np.iinfo(np.int32).min
    study.write("t1", image)
    refused(
        "t1.nii.gz stores int32 and holds -2147483648 in 3 of 504 voxels, while all others lie within 0 to 996: NaN or "
        "infinity that became an integer.",
        NAN_AS_INTEGER,
    )


def test_nan_written_as_int16_with_a_slope_is_refused(study, refused):
    image = study.image.copy()
    image[0, 0, :3] = np.iinfo(np.int16).min
    study.write("t1", image, scl_slope=0.5, scl_inter=7)
    refused(
        "t1.nii.gz stores int16 and holds -32768 in 3 of 504 voxels, while all others lie within 0 to 996: NaN or "
        "infinity that became an integer.",
        NAN_AS_INTEGER,
    )


def test_infinity_written_as_int64_is_refused(study, refused):
    image = study.image.astype(np.int64)
    image[0, 0, :2] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    study.write("t1", image)
    refused(
        "t1.nii.gz stores int64 and holds -9223372036854775808 to 9223372036854775807 in 2 of 504 voxels, while all "
        "others lie within 0 to 996: NaN or infinity that became an integer.",
        NAN_AS_INTEGER,
    )


def test_nan_written_into_a_mask_is_refused(study, refused):
    mask = study.mask.astype(np.uint32)
    mask[0, 0, 0] = 2**31
    study.write("mask", mask)
    refused(
        "mask.nii.gz stores uint32 and holds 2147483648 in 1 of 504 voxels, while all others lie within 0 to 4: NaN or "
        "infinity that became an integer.",
        NAN_AS_INTEGER,
    )


def test_nan_in_the_slope_of_integers_is_refused(study, refused):
    study.write("t1", study.image, scl_slope=np.nan, scl_inter=0)
    refused(
        "t1.nii.gz has a header that scales all voxels by slope nan and intercept 0, as writers make it that met NaN "
        "or infinity.",
        "Write it again from its original, as floating point, with NaN and infinity repaired.",
    )


def test_nan_in_the_intercept_of_integers_is_refused(study, refused):
    study.write("t1", study.image, scl_slope=1, scl_inter=np.nan)
    refused(
        "t1.nii.gz has a header that scales all voxels by slope 1 and intercept nan, as writers make it that met NaN "
        "or infinity.",
        "Write it again from its original, as floating point, with NaN and infinity repaired.",
    )
