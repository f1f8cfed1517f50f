import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from monai.metrics.meandice import compute_dice
from safetensors.torch import save_file

from genaccel.metrics.adherence import dice, load_segmenter
from genaccel.metrics.segmenter.network import SegmenterNetwork, write_segmenter
from genaccel.spec import SpecError

CPU = torch.device("cpu")
METADATA = {"modalities": ["t1"], "channels": ["brain"], "depth": 2, "spec": {"segmenter": {"channels": 2}}}


def mask(*voxels, side=4):
    volume = torch.zeros(side**3, dtype=torch.bool)
    volume[list(voxels)] = True
    return volume.reshape(side, side, side)


@pytest.mark.parametrize(
    ("predicted", "target", "expected"),
    [
        (mask(1, 2), mask(1, 2), 1),
        (mask(1, 2), mask(3), 0),
        (mask(1, 2, 3), mask(2, 3, 4), 2 / 3),
        (mask(1, 2, 3), mask(1), 1 / 2),
        (mask(), mask(1), 0),
    ],
)
def test_dice_of_known_masks(predicted, target, expected):
    assert dice(predicted, target) == pytest.approx(expected)


@pytest.mark.parametrize("predicted", [mask(), mask(1)])
def test_dice_against_an_empty_mask_is_not_a_number(predicted):
    assert math.isnan(dice(predicted, mask()))


@given(
    predicted=st.lists(st.booleans(), min_size=27, max_size=27),
    target=st.lists(st.booleans(), min_size=27, max_size=27),
)
def test_dice_is_symmetric_and_equals_monais(predicted, target):
    predicted, target = (torch.tensor(values).reshape(3, 3, 3) for values in (predicted, target))
    expected = float(compute_dice(predicted[None, None], target[None, None], ignore_empty=True))
    if target.any():
        assert dice(predicted, target) == pytest.approx(expected)
    if target.any() and predicted.any():
        assert dice(predicted, target) == pytest.approx(dice(target, predicted))


def test_masks_may_be_bytes():
    assert dice(mask(1, 2), mask(1, 2).to(torch.uint8)) == 1


def test_masks_of_two_shapes_are_an_error():
    with pytest.raises(ValueError, match=r"one shape, not \(4, 4, 4\) with \(3, 3, 3\)"):
        dice(mask(), mask(side=3))


def test_a_file_that_says_off_gives_no_segmenter(tmp_path):
    write_segmenter(tmp_path / "off.safetensors", None, METADATA)
    assert load_segmenter(tmp_path / "off.safetensors", CPU) is None


def test_a_written_network_predicts_as_before(tmp_path):
    torch.manual_seed(0)
    network = SegmenterNetwork(1, 1, 2, 2).eval()
    write_segmenter(tmp_path / "net.safetensors", network, METADATA)
    segmenter = load_segmenter(tmp_path / "net.safetensors", CPU)
    image = torch.rand(1, 9, 8, 10) * 2 - 1
    with torch.no_grad():
        logits = network(image[None])[0] + network(image.flip(1)[None])[0].flip(1)
    assert torch.equal(segmenter(image), logits > 0)
    assert (segmenter.modalities, segmenter.channels) == (("t1",), ("brain",))


def test_a_missing_file_is_an_error_that_says_what_to_run(tmp_path):
    with pytest.raises(SpecError, match=r"cannot read the segmenter .*none.safetensors.*delete it and run again"):
        load_segmenter(tmp_path / "none.safetensors", CPU)


def test_a_truncated_file_is_an_error(tmp_path):
    path = tmp_path / "net.safetensors"
    write_segmenter(path, SegmenterNetwork(1, 1, 2, 2), METADATA)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SpecError, match="cannot read the segmenter"):
        load_segmenter(path, CPU)


def test_another_programs_safetensors_are_an_error(tmp_path):
    save_file({"image": torch.zeros(2)}, tmp_path / "x.safetensors")
    with pytest.raises(SpecError, match="is no segmenter, though a safetensors file"):
        load_segmenter(tmp_path / "x.safetensors", CPU)


def test_tensors_of_another_network_are_an_error(tmp_path):
    write_segmenter(tmp_path / "net.safetensors", SegmenterNetwork(1, 2, 2, 2), METADATA)
    with pytest.raises(SpecError, match="does not hold the tensors of the segmenter's network"):
        load_segmenter(tmp_path / "net.safetensors", CPU)
