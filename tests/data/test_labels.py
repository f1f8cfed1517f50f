"""From label numbers to channels."""

from __future__ import annotations

import numpy as np
import pytest

from genaccel.data.faults import InputFault
from genaccel.data.labels import check_brain, count_voxels, derive_brain, named_labels, split_channels
from genaccel.data.spec import DataSpec

BRATS = {"tumour_1": [1], "tumour_2": [2], "tumour_3": [3], "brain": [4]}


def spec(**settings) -> DataSpec:
    return DataSpec.build(settings)


def mask(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)[:, None, None]


def flat(array: np.ndarray) -> list:
    return array[..., 0, 0].tolist()


def test_channels_come_in_the_order_of_the_labels():
    channels = split_channels(mask(0, 1, 2, 4), spec(labels=BRATS).labels)
    assert channels.dtype == np.uint8
    assert flat(channels) == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_a_label_may_belong_to_several_channels():
    labels = spec(labels={"brain": [1, 2], "tumour": [2]}).labels
    assert flat(split_channels(mask(0, 1, 2), labels)) == [[0, 1, 1], [0, 0, 1]]
    assert count_voxels(mask(0, 1, 2), labels) == {"brain": 2, "tumour": 1}


def test_remap_renames_before_anything_else():
    assert flat(named_labels(mask(0, 1, 4), spec(labels=BRATS, remap={4: 3}, derive_brain="nonzero"))) == [0, 1, 3]


def test_remap_can_swap_two_labels():
    assert flat(named_labels(mask(0, 1, 2, 2), spec(remap={1: 2, 2: 1}))) == [0, 2, 1, 1]


def test_a_label_that_nothing_names_is_refused_word_for_word():
    numbers = mask(*[1] * 10, *[5] * 118)
    with pytest.raises(InputFault) as fault:
        named_labels(numbers, spec(), "mask.nii.gz")
    assert f"data: {fault.value.of('BraTS-0042')}" == (
        "data: BraTS-0042 mask.nii.gz holds label 5 in 118 voxels, which no channel of `data.labels` names.\n"
        "      Add it to a channel, or to `data.ignore_labels`."
    )


def test_a_remapped_label_that_nothing_names_says_what_it_was():
    with pytest.raises(InputFault, match=r"label 9 \(4 before `data\.remap`\) in 1 voxel,"):
        named_labels(mask(1, 4), spec(remap={4: 9}))


def test_a_negative_label_is_refused():
    with pytest.raises(InputFault, match="label -1 in 2 voxels"):
        named_labels(mask(1, -1, -1), spec())


def test_an_image_in_place_of_the_mask_gives_a_short_message():
    with pytest.raises(InputFault, match="and 88 more, which"):
        named_labels(mask(*range(101)), spec())


def test_ignored_labels_become_background():
    assert flat(named_labels(mask(0, 1, 9), spec(ignore_labels=[9]))) == [0, 1, 0]


def test_an_empty_mask_is_refused():
    with pytest.raises(InputFault, match=r"m\.nii is empty: none of its 3 voxels holds a label"):
        named_labels(mask(0, 0, 9), spec(ignore_labels=[9]), "m.nii")


def test_the_brain_is_where_any_modality_is_not_zero_and_no_tumour_is():
    labels = spec(labels=BRATS).labels
    numbers, image = mask(0, 0, 1, 3, 0, 2), mask(0, 7, 7, 7, -7, 0)
    assert flat(derive_brain(numbers, image != 0, labels)) == [0, 4, 1, 3, 4, 2]


def test_a_brain_channel_of_several_labels_is_filled_with_the_first():
    labels = spec(labels={"brain": [4, 1], "tumour_1": [1]}).labels
    derived = derive_brain(mask(0, 0, 1), mask(0, 1, 1) != 0, labels)
    assert flat(derived) == [0, 4, 1]
    assert flat(split_channels(derived, labels)) == [[0, 1, 1], [0, 0, 1]]


def test_raw_enhancing_tumour_is_not_taken_for_the_brain():
    with pytest.raises(InputFault, match=r"holds label 4 in 2 voxels, the very label that `data\.derive_brain` fills"):
        derive_brain(mask(0, 1, 4, 4), mask(0, 1, 1, 1) != 0, spec(labels=BRATS).labels)


def test_scaled_images_cannot_show_the_brain():
    # Scaled to [-1, 1] the background is -1, so that everything is "non-zero".
    with pytest.raises(InputFault, match="only 0 of 200 voxels are 0 in every modality"):
        derive_brain(mask(*[0] * 200), mask(*[-1] * 200) != 0, spec(labels=BRATS).labels)


def noisy_head(brain: float, head: float) -> tuple[np.ndarray, np.ndarray]:
    """A label map with the given share of brain, and an image whose background is noise without zeros."""
    image = np.random.default_rng(0).uniform(1, 20, 1000)
    image[: int(1000 * head)] += 300
    return (np.arange(1000) < 1000 * brain).astype(np.int32), image


@pytest.mark.parametrize(("brain", "passes"), [(0.12, True), (0.02, False)])
def test_noise_around_a_whole_head_does_not_count_as_head(brain, passes):
    # A brain of 12 % of all voxels is a third of the head, though a small share of what is not 0.
    labels, image = noisy_head(brain, head=0.35)
    arguments = labels, image != 0, image > image.mean(), {"brain": (1,)}
    if passes:
        check_brain(*arguments)
    else:
        with pytest.raises(InputFault, match=r"covers 20 of 350 voxels above their image's mean, 5\.7%"):
            check_brain(*arguments)


@pytest.mark.parametrize(("voxels", "passes"), [(20, True), (19, False)])
def test_a_brain_fills_a_fifth_of_a_stripped_image_or_more(voxels, passes):
    labels = (np.arange(300) < voxels).astype(np.int32)
    foreground = np.arange(300) < 100
    arguments = labels, foreground, foreground, {"brain": (1,)}
    if passes:
        check_brain(*arguments)
    else:
        with pytest.raises(InputFault, match="covers 19 of 100 non-zero voxels of the images"):
            check_brain(*arguments)


def test_a_mask_without_a_channel_brain_is_not_checked():
    everywhere = np.ones(10, dtype=bool)
    check_brain(mask(*[0] * 9, 1), everywhere, everywhere, {"lesion": (1,)})
