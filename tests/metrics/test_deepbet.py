from importlib import metadata

import pytest
import torch

from genaccel.metrics.features import FEATURES
from genaccel.metrics.features.deepbet import prepare
from genaccel.spec import SpecError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network():
    """Seeing 64 voxels a side instead of 128: an eighth of the time."""
    network = FEATURES["deepbet"](CPU)
    network.side = 64
    return network


def test_its_stages_are_those_of_the_packages_own_network(network):
    (path,) = [f.locate() for f in metadata.files("deepbet") if f.as_posix().endswith("models/model.pt")]
    traced = torch.jit.load(str(path), map_location=CPU).eval()
    activation = getattr(traced.conv, "2")
    x = torch.rand(1, 1, 64, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        h = traced.init(activation, x)
        for stage, ours in zip(("down0", "down1", "down2", "down3"), network.stages(x), strict=True):
            h = getattr(traced, stage)(activation, h)
            torch.testing.assert_close(ours, h, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(32, 32, 32), (48, 48, 32), (9, 40, 21)])
def test_every_grid_gives_its_dimension_of_finite_features(network, shape):
    features = network(torch.rand(2, 1, *shape) * 2 - 1)
    assert features.shape == (2, network.dimension) == (2, 240)
    assert features.isfinite().all()


def test_a_volume_is_seen_by_itself_in_a_batch(network):
    batch = torch.rand(3, 1, 32, 32, 32, generator=torch.Generator().manual_seed(1)) * 2 - 1
    torch.testing.assert_close(network(batch)[1:2], network(batch[1:2]), rtol=1e-4, atol=1e-5)


def test_a_constant_volume_has_finite_features(network):
    assert network(torch.zeros(1, 1, 16, 16, 16)).isfinite().all()


def test_a_cube_in_a_flat_volume_stays_a_cube():
    volume = torch.full((1, 1, 20, 20, 10), -1.0)
    volume[..., 5:15, 5:15, 0:10] = 1.0
    inside = prepare(volume, side=40) > 0.449
    extents = [int(inside.any(dim=other).sum()) for other in ((0, 1, 3, 4), (0, 1, 2, 4), (0, 1, 2, 3))]
    assert len(set(extents)) == 1


def test_scale_and_offset_of_the_intensities_do_not_matter():
    volume = torch.rand(1, 1, 16, 16, 16) * 2 - 1
    torch.testing.assert_close(prepare(volume, 16), prepare(0.3 * volume - 0.2, 16), rtol=1e-4, atol=1e-4)


def test_its_weights_are_those_of_deepbet_1_0_2(network):
    assert network.sha256 == "de8ee7c69654d0dd3935dc4a5d84571d8ecf4637a6bfc01df399c4c2bc86e0fd"


def test_a_missing_package_says_what_to_install(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(SpecError, match=r"needs the package deepbet.*pip install"):
        FEATURES["deepbet"](CPU)


def test_a_package_without_its_network_is_named(monkeypatch):
    monkeypatch.setattr(metadata, "files", lambda name: [])
    with pytest.raises(SpecError, match=r"deepbet lacks data/models/model\.pt"):
        FEATURES["deepbet"](CPU)
