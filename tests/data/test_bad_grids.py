"""Every fault of where voxels lie, as the stage words it. `refused` compares the whole message."""

from __future__ import annotations

import nibabel as nib
import numpy as np

RESAMPLE = "Resample one onto the other's grid, or pair the files that belong together."


def test_image_and_mask_of_different_shape_are_refused(study, refused):
    study.write("t1", study.image[..., :6])
    refused("t1.nii.gz has shape 8x9x6 but mask.nii.gz 8x9x7.", RESAMPLE)


def test_image_and_mask_in_different_places_are_refused(study, refused):
    study.write("t1", study.image, nib.affines.from_matvec(np.eye(3), (0, 3, 4)))
    refused(
        "t1.nii.gz (RAS) and mask.nii.gz (RAS) have different affines: their voxels lie up to 5 mm apart.", RESAMPLE
    )


def test_image_and_mask_of_different_orientation_are_refused(study, refused):
    study.write("t1", study.image, np.diag([-1, 1, 1, 1]))
    refused(
        "t1.nii.gz (LAS) and mask.nii.gz (RAS) have different affines: their voxels lie up to 14 mm apart.", RESAMPLE
    )


def test_image_and_mask_of_different_spacing_are_refused(study, refused):
    study.write("t1", study.image, np.diag([1, 1, 2, 1]))
    refused(
        "t1.nii.gz (RAS) and mask.nii.gz (RAS) have different affines: their voxels lie up to 6 mm apart.", RESAMPLE
    )


def test_a_sheared_affine_is_refused(study, refused):
    sheared = np.eye(4)
    sheared[0, 1] = 0.2
    for column, array in (("mask", study.mask), ("t1", study.image)):
        study.write(column, array, sheared)
    refused(
        "mask.nii.gz has a sheared affine: two of its voxel axes stand at 78.69 degrees, not 90.",
        "Resample image and mask onto a grid with perpendicular axes.",
    )


def test_an_affine_without_volume_is_refused(study, refused):
    study.write("t1", study.image, srow_z=[0, 0, 0, 0])
    refused(
        "t1.nii.gz has an affine that gives its voxels no volume: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]].",
        "Mend the header's sform or qform.",
    )


def test_an_affine_of_nan_is_refused(study, refused):
    study.write("t1", study.image, srow_y=[0, np.nan, 0, 0])
    refused(
        "t1.nii.gz has an affine that gives its voxels no volume: [[1.0, 0.0, 0.0], [0.0, nan, 0.0], [0.0, 0.0, 1.0]].",
        "Mend the header's sform or qform.",
    )


def test_a_quaternion_that_is_no_rotation_is_refused(study, refused):
    study.write("t1", study.image, qform_code=1, sform_code=0, quatern_b=0.9, quatern_c=0.9)
    refused(
        "t1.nii.gz has a qform that is no rotation: its quaternion has length 1.273, not at most 1.",
        "Mend the header's qform, or set its sform.",
    )
