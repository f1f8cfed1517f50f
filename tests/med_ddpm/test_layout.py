"""From NIfTI's axes to the network's and back."""

from __future__ import annotations

import itertools

import nibabel as nib
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genaccel.med_ddpm.layout import encode_condition, from_model, to_model
from genaccel.spec import SpecError

AXES = [axes for letters in itertools.product("RL", "AP", "SI") for axes in itertools.permutations(letters)]


def volumes():
    sides = st.lists(st.integers(1, 4), min_size=3, max_size=5)
    return sides.map(lambda sides: np.arange(np.prod(sides)).reshape(sides))


@given(volume=volumes(), axes=st.sampled_from(AXES), tensor=st.booleans())
def test_coming_back_inverts_going_there(volume, axes, tensor):
    volume = torch.from_numpy(volume) if tensor else volume
    equal = torch.equal if tensor else np.array_equal
    assert equal(from_model(to_model(volume, axes), axes), volume)
    assert equal(to_model(from_model(volume, axes), axes), volume)


@given(volume=volumes(), axes=st.sampled_from(AXES))
def test_a_tensor_and_an_array_are_laid_out_alike(volume, axes):
    assert np.array_equal(to_model(torch.from_numpy(volume), axes).numpy(), to_model(volume, axes))


@pytest.mark.parametrize("axes", AXES)
def test_the_axes_point_where_nibabel_says(axes):
    volume = np.arange(24).reshape(2, 3, 4)
    ras = nib.orientations.axcodes2ornt("RAS")
    change = nib.orientations.ornt_transform(ras, nib.orientations.axcodes2ornt(axes))
    assert np.array_equal(to_model(volume, axes), nib.orientations.apply_orientation(volume, change))


@pytest.mark.parametrize("axes", [("S", "A"), ("S", "A", "P"), ("S", "A", "X")])
def test_axes_that_span_no_space_are_refused(axes):
    with pytest.raises(ValueError, match="use one of R/L, one of A/P and one of S/I"):
        to_model(np.zeros((2, 2, 2)), axes)


def test_a_volume_with_two_axes_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        from_model(np.zeros((2, 2)), ("S", "A", "R"))


def published_encoding(stored: np.ndarray, labels: list[int]) -> torch.Tensor:
    """The published convention, step by step: (H, W, D) labels as stored -> (C, D, W, H) in -1..1."""
    masks = np.stack([stored == label for label in labels], axis=-1).astype(np.float32)
    return torch.from_numpy(masks * 2 - 1).permute(3, 0, 1, 2).transpose(1, 3)


def encoded(ras: np.ndarray, names: list[str], labels: list[int], spec) -> torch.Tensor:
    return encode_condition(
        torch.from_numpy(np.stack([ras == label for label in labels]).astype(np.uint8)), names, spec
    )


def test_an_encoded_whole_head_mask_is_the_published_one(make_spec):
    stored = np.random.default_rng(0).integers(0, 3, (16, 12, 8))
    spec = make_spec(shape=[16, 12, 8], axes=["S", "A", "R"])
    ours = encoded(stored, ["brain", "tumour"], [1, 2], spec)
    assert torch.equal(ours, published_encoding(stored, [1, 2]))
    assert ours.shape == (2, *spec.tensor_shape) == (2, 8, 12, 16)


def test_an_encoded_brats_mask_is_the_published_one(make_spec, published):
    # Stored from right to left and from front to back, as the affine says; genaccel turns it to RAS first.
    stored = np.random.default_rng(0).integers(0, 5, (16, 12, 8))
    image = nib.as_closest_canonical(nib.Nifti1Image(stored.astype(np.int16), np.diag([-1, -1, 1, 1])))
    condition = published["brats_192x192x144"].condition
    spec = make_spec(shape=[16, 12, 8], axes=["S", "P", "L"], condition=list(condition))
    ours = encoded(np.asarray(image.dataobj), list(condition), [1, 2, 3, 4], spec)
    assert torch.equal(ours, published_encoding(stored, [1, 2, 3, 4]))


@pytest.mark.real_data
def test_a_real_encoded_mask_is_the_published_one(real_data, make_spec):
    image = nib.load(real_data / "whole_head" / "mask_sample_3.nii.gz")
    stored = np.asarray(image.dataobj).squeeze()
    assert nib.aff2axcodes(image.affine) == ("R", "A", "S")
    spec = make_spec(shape=list(stored.shape), axes=["S", "A", "R"])
    ours = encoded(stored, ["brain", "tumour"], [1, 2], spec)
    assert torch.equal(ours, published_encoding(stored, [1, 2]))
    assert (ours > 0).any()


def test_channels_come_in_the_networks_order_and_others_are_left_out(make_spec):
    labels = torch.zeros(3, 8, 4, 4, dtype=torch.uint8)
    labels[0], labels[2, 0] = 1, 1
    spec = make_spec(shape=[8, 4, 4], condition=["tumour", "brain"])
    ours = encode_condition(labels, ["brain", "ventricle", "tumour"], spec)
    assert ours.shape == (2, *spec.tensor_shape)
    assert torch.equal(ours[1], torch.ones(spec.tensor_shape))
    assert torch.equal(ours[0], to_model(labels[2], spec.axes).float() * 2 - 1)


def test_a_channel_that_is_not_stored_is_named_with_the_nearest(make_spec):
    with pytest.raises(SpecError, match=r"no channel 'tumour'; did you mean `tumor`\?"):
        encode_condition(torch.zeros(2, 4, 4, 4, dtype=torch.uint8), ["brain", "tumor"], make_spec())


def test_labels_given_for_masks_are_refused_with_their_number(make_spec):
    labels = torch.zeros(2, 4, 4, 4, dtype=torch.uint8)
    labels[0, 0] = 2
    with pytest.raises(SpecError, match="values above 1 in 16 voxels"):
        encode_condition(labels, ["brain", "tumour"], make_spec())


def test_masks_without_a_name_each_are_refused(make_spec):
    with pytest.raises(SpecError, match=r"\(3, 4, 4, 4\) for 2 channels"):
        encode_condition(torch.zeros(3, 4, 4, 4, dtype=torch.uint8), ["brain", "tumour"], make_spec())
