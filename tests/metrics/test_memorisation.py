import numpy as np
import pytest
import torch
from scipy import ndimage
from scipy.spatial.distance import cdist

from genaccel.metrics import memorisation
from genaccel.metrics.memorisation import nearest, thumbnail, thumbnail_shape
from genaccel.spec import SpecError


@pytest.mark.parametrize(
    ("shape", "small"),
    [
        ((20, 20, 20), (20, 20, 20)),
        ((32, 32, 32), (32, 32, 32)),
        ((33, 20, 5), (17, 10, 3)),
        ((128, 128, 128), (32, 32, 32)),
        ((192, 192, 144), (32, 32, 24)),
    ],
)
def test_a_thumbnail_has_at_most_32_voxels_a_side_and_keeps_the_aspect(shape, small):
    assert thumbnail_shape(shape) == small
    assert thumbnail(torch.zeros(shape)).shape == (np.prod(small),)


def test_a_small_volume_is_its_own_thumbnail():
    volume = torch.rand(9, 8, 7)
    assert torch.equal(thumbnail(volume), volume.flatten())


def test_a_thumbnail_averages_cubes_of_voxels_and_what_the_border_leaves_of_them():
    volume = torch.rand(64, 33, 4, dtype=torch.float64)
    small = thumbnail(volume).reshape(32, 17, 2)
    assert small.dtype == torch.float32
    assert small[3, 5, 1].item() == pytest.approx(volume[6:8, 10:12, 2:4].mean().item(), abs=1e-6)
    assert small[3, 16, 1].item() == pytest.approx(volume[6:8, 32:, 2:4].mean().item(), abs=1e-6)


@pytest.mark.parametrize("chunk_bytes", [1, 8 * 30 * 2, 2**27])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_the_nearest_is_that_of_all_distances(monkeypatch, chunk_bytes, exclude_self):
    monkeypatch.setattr(memorisation, "CHUNK_BYTES", chunk_bytes)
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((7, 30)).astype(np.float32)
    x = reference if exclude_self else rng.standard_normal((4, 30)).astype(np.float32)
    distances = cdist(x.astype(float), reference.astype(float)) / np.sqrt(30)
    if exclude_self:
        np.fill_diagonal(distances, np.inf)
    found = nearest(x, torch.from_numpy(reference), exclude_self=exclude_self)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, distances.min(axis=1), rtol=1e-12)


def test_a_copy_has_exactly_zero():
    reference = torch.rand(5, 1000) * 2 - 1
    assert nearest(reference, reference).tolist() == [0] * 5
    assert min(nearest(reference, reference, exclude_self=True).tolist()) > 0


def test_a_subject_that_is_there_twice_has_zero_also_without_itself():
    reference = torch.rand(3, 50)
    assert nearest(torch.cat([reference, reference[:1]]), torch.cat([reference, reference[:1]]), True)[0] == 0


def head(seed, shape=(40, 44, 36)):
    """Air, skull and brain, each subject a little different in shape and brightness; in [-1, 1]."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, side) for side in shape], indexing="ij"))
    bend = np.stack([ndimage.gaussian_filter(rng.standard_normal(shape), 6) for _ in range(3)])
    radius = np.sqrt(np.sum(((grid + 0.08 * bend / bend.std()) / 0.8) ** 2, axis=0))
    levels = np.array([-0.6, 0.2, -0.8, 0.9]) + rng.normal(0, 0.05, 4)
    volume = np.select([radius < 0.2, radius < 0.75, radius < 0.85, radius < 1], list(levels), -1.0)
    return torch.from_numpy(np.clip(ndimage.gaussian_filter(volume, 0.7), -1, 1).astype(np.float32))


def thumbnails(volumes):
    return torch.stack([thumbnail(volume) for volume in volumes])


@pytest.fixture(scope="module")
def training():
    return [head(seed) for seed in range(8)]


@pytest.mark.parametrize("noise", [0, 0.02, 0.05])
def test_a_copied_training_volume_is_nearer_than_any_two_real_ones(training, noise):
    real_to_real = nearest(thumbnails(training), thumbnails(training), exclude_self=True)
    copy = training[3] + noise * torch.randn(training[3].shape, generator=torch.Generator().manual_seed(0))
    assert nearest(thumbnails([copy]), thumbnails(training))[0] < 0.5 * real_to_real.min()


@pytest.mark.parametrize("seed", [100, 101, 102])
def test_a_fresh_subject_is_as_far_as_real_ones_are_from_each_other(training, seed):
    real_to_real = nearest(thumbnails(training), thumbnails(training), exclude_self=True)
    fresh = nearest(thumbnails([head(seed)]), thumbnails(training))[0]
    assert 0.8 * real_to_real.min() < fresh < 1.25 * real_to_real.max()


@pytest.mark.parametrize(("count", "exclude_self", "needed"), [(0, False, 1), (1, True, 2), (0, True, 2)])
def test_too_few_real_volumes_are_an_error(count, exclude_self, needed):
    with pytest.raises(SpecError, match=rf"compares with {needed} real volume\(s\) .* there are {count}; raise data"):
        nearest(torch.zeros(count, 8), torch.zeros(count, 8), exclude_self)


def test_leaving_out_itself_needs_the_same_volumes_on_both_sides():
    with pytest.raises(SpecError, match="2 volumes are compared with 3"):
        nearest(torch.zeros(2, 8), torch.zeros(3, 8), exclude_self=True)


def test_thumbnails_of_two_grids_are_an_error():
    with pytest.raises(SpecError, match="thumbnails of 8 with such of 27 voxels"):
        nearest(torch.zeros(2, 8), torch.zeros(2, 27))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("side", [0, 1])
def test_values_that_are_not_finite_are_an_error(bad, side):
    sets = [torch.zeros(3, 8), torch.zeros(3, 8)]
    sets[side][1, 4] = bad
    with pytest.raises(SpecError, match="1 of 3 volumes hold NaN or infinite voxels"):
        nearest(*sets)
