import hashlib

import pytest
import torch

from genaccel.metrics.features import FEATURES
from genaccel.metrics.features._medicalnet import Layout, build, prepare
from genaccel.spec import SpecError

CPU = torch.device("cpu")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def opened(path, name="medicalnet_10"):
    return FEATURES[name](CPU, str(path), sha256(path))


@pytest.fixture
def saved(tmp_path):
    def write(content):
        torch.save(content, tmp_path / "weights.pth")
        return tmp_path / "weights.pth"

    return write


@pytest.fixture(scope="module")
def state(published):
    return torch.load(published("medicalnet_10"), weights_only=True)["state_dict"]


@pytest.mark.parametrize(
    ("name", "dimension"), [("medicalnet_10", 512), ("medicalnet_18", 512), ("medicalnet_50", 2048)]
)
def test_features_are_the_channels_of_the_last_stage(published, name, dimension):
    network = opened(published(name), name)
    network.side = 16
    assert network.dimension == dimension
    assert network(torch.rand(2, 1, 10, 12, 9) * 2 - 1).shape == (2, dimension)


def test_its_hash_is_that_of_the_file(published):
    assert opened(published("medicalnet_10")).sha256 == sha256(published("medicalnet_10"))


@pytest.mark.parametrize("layout", [Layout("basic", (1, 1, 1, 1), "B"), Layout("basic", (2, 2, 2, 2), "A")])
def test_the_last_three_stages_see_an_eighth_of_the_grid(layout):
    network, sizes = build(layout).eval(), []
    for name in ("layer1", "layer2", "layer3", "layer4"):
        getattr(network, name).register_forward_hook(lambda module, given, out: sizes.append(out.shape[-1]))
    with torch.no_grad():
        network(torch.zeros(1, 1, 32, 32, 32))
    assert sizes == [8, 4, 4, 4]


def test_the_kernels_of_the_last_stages_are_dilated():
    network = build(Layout("bottleneck", (3, 4, 6, 3), "B"))
    dilations = {
        name: {m.dilation[0] for m in getattr(network, name).modules() if getattr(m, "kernel_size", 0) == (3, 3, 3)}
        for name in ("layer1", "layer2", "layer3", "layer4")
    }
    assert dilations == {"layer1": {1}, "layer2": {1}, "layer3": {2}, "layer4": {4}}


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize("prefix", ["module.", ""])
def test_every_layout_of_the_file_gives_one_network(published, saved, state, wrapped, prefix):
    content = {prefix + key.removeprefix("module."): tensor for key, tensor in state.items()}
    network = opened(saved({"state_dict": content} if wrapped else content))
    own = opened(published("medicalnet_10"))
    network.side = own.side = 16
    x = torch.rand(1, 1, 16, 16, 16)
    assert torch.equal(network(x), own(x))


def test_the_head_of_another_task_is_left_out(saved, state):
    assert opened(saved({"state_dict": state | {"module.conv_seg.0.weight": torch.zeros(3)}})).dimension == 512


def test_no_file_says_which_to_set_and_where_it_is():
    with pytest.raises(SpecError, match=r"set metrics\.features\.weights to it; resnet_10_23dataset\.pth .*MedicalNet"):
        FEATURES["medicalnet_10"](CPU, None, None)


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path):
    with pytest.raises(
        SpecError, match=r"no .*absent\.pth.*correct metrics\.features\.weights; resnet_18_23.*https://"
    ):
        FEATURES["medicalnet_18"](CPU, str(tmp_path / "absent.pth"), "0" * 64)


def test_without_a_hash_the_files_own_is_shown(published):
    path = published("medicalnet_10")
    with pytest.raises(SpecError, match=rf"metrics\.features\.weights_sha256 is not set; .* has {sha256(path)}"):
        FEATURES["medicalnet_10"](CPU, str(path), None)


def test_another_file_than_the_hash_says_is_an_error_with_both(published):
    path = published("medicalnet_10")
    said = rf"has SHA-256 {sha256(path)}, but metrics\.features\.weights_sha256 says {'0' * 64}; .*https://"
    with pytest.raises(SpecError, match=said):
        FEATURES["medicalnet_10"](CPU, str(path), "0" * 64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: {k: v for k, v in s.items() if k != "module.conv1.weight"}, "lacks 1 of "),
        (lambda s: s | {"module.fc.weight": torch.zeros(2)}, "tensors, such as fc.weight"),
        (
            lambda s: s | {"module.conv1.weight": torch.zeros(64, 3, 7, 7, 7)},
            "has in another shape 1 of ",
        ),
        (lambda s: s | {"module.bn1.weight": torch.full((64,), torch.nan)}, "holds values that are not finite"),
        (lambda s: {"a": 1}, "holds no state dict of tensors"),
    ],
)
def test_other_contents_are_an_error_that_names_them(saved, state, change, said):
    with pytest.raises(SpecError) as error:
        opened(saved({"state_dict": change(state)}))
    assert said in str(error.value)
    assert "metrics.features." in str(error.value)


def test_the_file_of_another_depth_is_an_error_that_names_the_setting(published):
    with pytest.raises(SpecError, match=r"does not fit medicalnet_10: it lacks 15 of .*metrics\.features\.network"):
        opened(published("medicalnet_18"))


def test_a_damaged_file_is_an_error(tmp_path):
    (tmp_path / "weights.pth").write_bytes(b"not a checkpoint")
    with pytest.raises(SpecError, match=r"is no PyTorch file of tensors alone .*fetch it again"):
        opened(tmp_path / "weights.pth")


def test_scale_and_offset_of_the_intensities_do_not_matter():
    volume = torch.rand(1, 1, 16, 16, 16) * 2 - 1
    torch.testing.assert_close(prepare(volume, 16), prepare(0.3 * volume - 0.2, 16), rtol=1e-4, atol=1e-4)


def test_a_constant_volume_becomes_zero():
    assert prepare(torch.full((1, 1, 8, 8, 8), 0.4), 8).abs().max() < 0.01
