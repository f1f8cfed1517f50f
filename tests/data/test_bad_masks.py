"""Every fault of a mask, as the stage words it. `refused` compares the whole message."""

from __future__ import annotations

import numpy as np

RAW = "Raw BraTS masks hold the tumour alone: set derive_brain: nonzero and, for 2018-2021, remap: {4: 3}; else mend "
NO_BRAIN = (
    "Raw BraTS 2018-2021 calls enhancing tumour 4 and has no brain: set remap: {4: 3} and derive_brain: nonzero; "
    "if this is right, give the channel another name."
)
# The mask as BraTS 2018-2021 publishes it: enhancing tumour is 4, and there is no brain.
RAW_2021 = np.array([0, 1, 2, 4, 0], np.uint8)


def test_raw_brats_2021_as_if_4_were_the_brain_is_refused(study, refused):
    study.write("mask", RAW_2021[study.mask])
    refused(
        "mask.nii.gz: channel `brain` (label 4) covers 2 of 150 non-zero voxels of the images, 1.3%: too few for a "
        "brain.",
        NO_BRAIN,
    )


def test_raw_brats_2021_beside_an_image_without_zeros_is_refused(study, refused):
    study.write("mask", RAW_2021[study.mask])
    study.write("t1", study.image / 500.0 - 1 + (study.mask > 0))
    refused(
        "mask.nii.gz: channel `brain` (label 4) covers 2 of 150 voxels above their image's mean, 1.3%: too few for a "
        "brain.",
        NO_BRAIN,
    )


def test_raw_brats_as_if_the_whole_tumour_were_the_brain_is_refused(study, refused):
    study.write("mask", np.where(study.mask == 4, 0, study.mask))
    refused(
        "mask.nii.gz: channel `brain` (label 1, 2, 3, 4) covers 8 of 150 non-zero voxels of the images, 5.3%: too few "
        "for a brain.",
        NO_BRAIN,
        labels={"brain": [1, 2, 3, 4]},
    )


def test_raw_brats_2023_without_a_brain_label_is_refused(study, refused):
    study.write("mask", np.where(study.mask == 4, 0, study.mask))
    refused("mask.nii.gz has no voxel of channel `brain` (label 4); it holds label 1, 2, 3.", RAW + "`data.labels`.")


def test_a_brain_that_the_mask_has_already_is_refused(study, refused):
    for subject in "acd":
        study.write("mask", np.where(study.mask == 4, 0, study.mask), subject=subject)
    refused(
        "mask.nii.gz holds label 4 in 142 voxels, the very label that `data.derive_brain` fills.",
        "Rename it with `data.remap` (raw BraTS 2018-2021: {4: 3}) or, if it is the brain, set derive_brain: null.",
        derive_brain="nonzero",
    )


def test_a_label_that_no_entry_names_is_refused(study, refused):
    study.mask[0, 0, :3] = 5
    study.write("mask", study.mask)
    refused(
        "mask.nii.gz holds label 5 in 3 voxels, which no channel of `data.labels` names.",
        "Add it to a channel, or to `data.ignore_labels`.",
    )


def test_several_labels_that_no_entry_names_are_refused(study, refused):
    mask = study.mask.astype(np.int16)
    mask[0, 0, :4] = [-1, 7, 7, 8]
    study.write("mask", mask)
    refused(
        "mask.nii.gz holds label -1 in 1 voxel, label 7 in 2 voxels, label 9 (8 before `data.remap`) in 1 voxel, which "
        "no channel of `data.labels` names.",
        "Add it to a channel, or to `data.ignore_labels`.",
        remap={"8": 9},
    )


def test_an_empty_mask_is_refused(study, refused):
    study.write("mask", np.zeros_like(study.mask))
    refused(
        "mask.nii.gz is empty: none of its 504 voxels holds a label of `data.labels`.",
        "Give the subject's segmentation, or leave the subject out.",
    )


def test_a_mask_of_ignored_labels_alone_is_refused(study, refused):
    study.write("mask", np.where(study.mask > 0, 9, 0).astype(np.uint8))
    refused(
        "mask.nii.gz is empty: none of its 504 voxels holds a label of `data.labels`.",
        "Give the subject's segmentation, or leave the subject out.",
        ignore_labels=[9],
    )


def test_a_mask_that_the_grid_cuts_off_is_refused(study, refused):
    edge = np.zeros_like(study.mask)
    edge[:2, :, :] = 4
    edge[0, 0, :6] = 0
    study.write("mask", edge)
    study.write("t1", (edge > 0) * np.arange(504, dtype=np.int16).reshape(8, 9, 7))
    refused(
        "mask.nii.gz is empty on the model's grid: it leaves none of 120 labelled voxels.",
        "Enlarge `data.shape`, or set fit: resample, which keeps the whole field of view.",
        shape=[4, 9, 7],
    )


def test_labels_between_whole_numbers_are_refused(study, refused):
    mask = study.mask.astype(np.float32)
    mask[0, 0, :2] = 1.5
    study.write("mask", mask)
    refused(
        "mask.nii.gz is no label map: it holds no whole number in 2 voxels, but for example 1.5.",
        "Give the segmentation itself; if it was resampled, do that again with nearest neighbours.",
    )


def test_labels_that_a_slope_bends_are_refused(study, refused):
    study.write("mask", np.where(study.mask == 4, 0, study.mask), scl_slope=0.7)
    refused(
        "mask.nii.gz is no label map: it holds no whole number in 8 voxels, but for example 0.7 (stored as uint8 times "
        "0.7).",
        "Give the segmentation itself; if it was resampled, do that again with nearest neighbours, and save it as "
        "integers without a slope.",
    )


def test_labels_too_large_to_be_any_are_refused(study, refused):
    study.write("mask", study.mask * 1e9 - (study.mask == 4) * 1e9)
    refused("mask.nii.gz holds values up to 3e+09.", "Give a label map.")
