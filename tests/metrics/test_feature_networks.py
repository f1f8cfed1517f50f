"""What every feature network of the registry must do."""

import hashlib

import numpy as np
import pytest
import torch
from scipy import ndimage

from genaccel.metrics.features import FEATURES, feature_network, needs_weights, volume_features
from genaccel.metrics.fid import frechet_distance
from genaccel.metrics.spec import FeatureSpec

SIDE = 32
AMOUNTS = {"blur": (0.8, 1.5, 3.0), "noise": (0.1, 0.3, 0.8), "warp": (0.7, 1.5, 3.0)}


def head(seed):
    """An ellipsoidal skull, brain and ventricles, each a little different, in [-1, 1]."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, SIDE)] * 3, indexing="ij"))
    grid = grid + 5 * np.stack([ndimage.gaussian_filter(rng.standard_normal((SIDE,) * 3), 4) for _ in range(3)])
    radius = np.sqrt(np.sum((grid / np.array([0.7, 0.9, 0.75]).reshape(3, 1, 1, 1)) ** 2, axis=0))
    volume = np.select([radius < 0.2, radius < 0.75, radius < 0.85, radius < 1], [-0.6, 0.2, -0.8, 0.9], -1.0)
    return ndimage.gaussian_filter(volume, 0.7).astype(np.float32)


def harm(volume, kind, amount):
    rng = np.random.default_rng(9)
    if kind == "blur":
        return ndimage.gaussian_filter(volume, amount)
    if kind == "noise":
        return np.clip(volume + amount * rng.standard_normal(volume.shape), -1, 1)
    shift = np.stack([ndimage.gaussian_filter(rng.standard_normal(volume.shape), 3) for _ in range(3)])
    return ndimage.map_coordinates(
        volume, np.indices(volume.shape) + amount * shift / shift.std(), order=1, mode="nearest"
    )


@pytest.fixture(scope="module", params=FEATURES.names())
def network(request, published):
    """On a coarser grid than in use, for speed. One whose file the user brings has random weights."""
    settings = {"network": request.param}
    if needs_weights(request.param):
        path = published(request.param)
        settings |= {"weights": str(path), "weights_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    opened = feature_network(FeatureSpec.build(settings), torch.device("cpu"))
    opened.side = 64 if request.param == "deepbet" else 24
    return opened


@pytest.fixture(scope="module")
def heads():
    return [head(seed) for seed in range(4)]


def features(network, volumes):
    return network(torch.tensor(np.stack(volumes), dtype=torch.float32)[:, None]).double().numpy()


@pytest.fixture(scope="module")
def real(network, heads):
    return features(network, heads)


@pytest.mark.parametrize("kind", AMOUNTS)
def test_fid_grows_with(network, heads, real, kind):
    harmed = [features(network, [harm(v, kind, amount) for v in heads]) for amount in AMOUNTS[kind]]
    distances = [frechet_distance(x, real).value for x in harmed]
    assert 0 < distances[0] < distances[1] < distances[2]


def test_a_volume_is_seen_by_itself_in_its_dimension(network, heads, real):
    alone = volume_features(network, torch.tensor(heads[1]), "head")
    assert alone.shape == (network.dimension,)
    np.testing.assert_allclose(alone, real[1], rtol=1e-3, atol=1e-4)


def test_its_name_is_the_registrys(network, request):
    assert network.name in request.node.name
