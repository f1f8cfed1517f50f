import json

import pytest
import torch
from safetensors import safe_open

from genaccel.data.manifest import read_manifest, write_manifest
from genaccel.device import open_device
from genaccel.metrics.adherence import dice, load_segmenter
from genaccel.metrics.segmenter import __main__ as command
from genaccel.metrics.segmenter.network import Segmenter, SegmenterNetwork, halvings
from genaccel.metrics.segmenter.patches import cut, patch_shape, vary
from genaccel.metrics.segmenter.training import channel_weights, train
from genaccel.metrics.spec import SegmenterJob, SegmenterSpec
from genaccel.spec import SpecError

CPU = torch.device("cpu")
SMALL = {"steps": 4, "channels": 2, "batch": 2}


@pytest.fixture
def run(tmp_path):
    """The command on a study: ``run(study, name, **settings)`` gives the file that it wrote."""

    def call(study, name="segmenter", **changes):
        out = tmp_path / f"{name}.safetensors"
        spec = json.dumps({"device": "cpu", "dataset": "fake", "segmenter": SMALL | changes})
        command.main(
            ["--spec", spec, "--code", "x@0", "--threads", "1", "--manifest", str(study.manifest), "--out", str(out)]
        )
        return out

    return call


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((8, 8, 8), 2), ((20, 20, 20), 2), ((32, 32, 48), 3), ((64, 64, 64), 4), ((128, 128, 128), 4)],
)
def test_larger_grids_are_halved_more_often(shape, expected):
    assert halvings(shape) == expected


@pytest.mark.parametrize("shape", [(8, 8, 8), (9, 13, 11), (20, 20, 20), (33, 17, 8), (64, 66, 63)])
def test_any_grid_keeps_its_shape(shape):
    network = SegmenterNetwork(modalities=2, channels=3, width=2, depth=halvings(shape))
    with torch.no_grad():
        assert network(torch.zeros(1, 2, *shape)).shape == (1, 3, *shape)


def test_padding_lies_around_the_grid():
    network = SegmenterNetwork(modalities=1, channels=1, width=2, depth=2)
    network.unet = torch.nn.Identity()
    image = torch.rand(1, 1, 9, 6, 8)
    assert torch.equal(network(image), image)


def balls(seed, side=12):
    """Bright nested balls, the inner brighter: an image, and the outer ball, which holds the inner, as channels."""
    generator = torch.Generator().manual_seed(seed)
    centre = side / 2 + torch.rand(3, generator=generator) * 2 - 1
    grid = torch.stack(torch.meshgrid(*[torch.arange(side) + 0.5] * 3, indexing="ij"), dim=-1)
    radius = (grid - centre).norm(dim=-1)
    mask = torch.stack([radius < side / 3, radius < side / 6])
    return (mask.sum(0) * 0.8 - 0.9 + 0.05 * torch.randn(radius.shape, generator=generator))[None], mask.float()


def learn(volumes, **changes):
    spec = SegmenterSpec.build({"steps": 80, "channels": 4} | changes)
    device = open_device("cpu", threads=1)
    device.seed(spec.seed)
    network = SegmenterNetwork(1, 2, spec.channels, 2)
    train(network, volumes, torch.tensor([2.0, 6.0]), spec, device)
    return Segmenter(network, {"modalities": ["t1"], "channels": ["outer", "inner"]}, CPU)


@pytest.fixture(scope="module")
def learned():
    return learn([lambda seed=seed: balls(seed) for seed in range(4)])


def test_it_finds_overlapping_masks_in_volumes_that_it_has_not_seen(learned):
    image, mask = balls(100)
    outer, inner = (dice(*pair) for pair in zip(learned(image), mask, strict=True))
    assert outer > 0.9
    assert inner > 0.7


def test_a_mirrored_image_gets_the_mirrored_mask(learned):
    image, _ = balls(101)
    assert torch.equal(learned(image.flip(1)), learned(image).flip(1))


def test_it_reads_a_darker_and_noisier_volume(learned):
    image, mask = balls(102)
    worse = 0.9 * image + 0.05 + 0.1 * torch.randn(image.shape, generator=torch.Generator().manual_seed(0))
    assert dice(learned(worse)[0], mask[0]) > 0.85


def test_it_does_not_find_a_mask_that_is_not_there(learned):
    image, mask = balls(103)
    assert dice(learned(image)[0], mask[0].roll(6, dims=0)) < 0.5


def test_an_image_of_other_modalities_is_an_error(learned):
    with pytest.raises(SpecError, match=r"trained on the modalities t1 of .*shape \(2, 8, 8, 8\)"):
        learned(torch.zeros(2, 8, 8, 8))


def test_a_loss_that_is_not_finite_stops(capsys):
    with pytest.raises(SpecError, match=r"loss is nan at step 1; lower metrics.segmenter.learning_rate"):
        learn([lambda: (torch.full((1, 8, 8, 8), torch.nan), torch.zeros(2, 8, 8, 8))], steps=2)


def test_variation_mirrors_image_and_mask_together_and_is_decided_by_its_generators():
    image, mask = balls(0)
    seen = set()
    for seed in range(12):
        varied = [vary(image, mask, *(torch.Generator().manual_seed(seed) for _ in range(2))) for _ in range(2)]
        assert torch.equal(varied[0][0], varied[1][0])
        mirrored = torch.equal(varied[0][1], mask.flip(1))
        assert mirrored or torch.equal(varied[0][1], mask)
        # The inside stays brighter than the outside wherever the mask went.
        inside = varied[0][1][0] > 0
        assert varied[0][0][0][inside].mean() > varied[0][0][0][~inside].mean() + 0.5
        seen.add(mirrored)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("shape", "multiple", "expected"),
    [
        ((8, 8, 8), 4, (8, 8, 8)),
        ((20, 20, 20), 4, (12, 12, 12)),
        ((9, 33, 17), 4, (8, 20, 12)),
        ((5, 8, 8), 4, (4, 8, 8)),
        ((128, 128, 128), 16, (80, 80, 80)),
        ((192, 192, 144), 16, (128, 128, 96)),
    ],
)
def test_patches_are_a_share_of_the_grid(shape, multiple, expected):
    assert patch_shape(shape, multiple) == expected


@pytest.mark.parametrize("voxel", [(0, 0, 0), (4, 6, 2), (8, 11, 6)])
def test_every_patch_holds_its_channel_also_at_the_border(voxel):
    image, mask = torch.rand(2, 9, 12, 7), torch.zeros(1, 9, 12, 7)
    mask[0][voxel] = 1
    starts = set()
    for seed in range(20):
        part, found = cut(image, mask, (4, 8, 7), torch.Generator().manual_seed(seed))
        assert part.shape == (2, 4, 8, 7)
        assert found.sum() == 1
        assert torch.equal(part[:, found[0] > 0].flatten(), image[(slice(None), *voxel)])
        starts.add(tuple(found.nonzero()[0].tolist()))
    assert len(starts) > 1 or voxel != (4, 6, 2)


def test_a_small_channel_is_in_as_many_patches_as_a_large_one():
    mask = torch.zeros(2, 24, 24, 24)
    mask[0] = 1
    mask[1, 3, 3, 3] = 1
    patches = [cut(mask[:1], mask, (8, 8, 8), torch.Generator().manual_seed(seed))[1][1] for seed in range(60)]
    assert sum(bool(patch.any()) for patch in patches) > 20


def test_a_volume_without_any_mask_is_cut_anywhere():
    image, mask = torch.rand(1, 9, 9, 9), torch.zeros(2, 9, 9, 9)
    parts = [cut(image, mask, (4, 4, 4), torch.Generator().manual_seed(seed))[0] for seed in range(5)]
    assert len({part.sum().item() for part in parts}) > 1


@pytest.mark.parametrize(("side", "batch", "threads"), [(8, 1, 1), (20, 2, 1), (32, 2, 3), (128, 2, 125)])
def test_small_patches_get_few_threads(make_study, side, batch, threads):
    manifest = read_manifest(make_study().manifest).model_copy(update={"shape": (side,) * 3})
    job = SegmenterJob.build({"device": "cpu", "dataset": "fake", "segmenter": {"batch": batch}})
    assert command.useful_threads(job, manifest) == threads


def test_rare_channels_weigh_more(make_study):
    brain, tumour = channel_weights(read_manifest(make_study().manifest)).tolist()
    assert 1 < brain < tumour


def test_the_file_says_what_it_is_of_and_how_well_it_does(make_study, run):
    out = run(make_study(modalities=("t1", "flair")))
    segmenter = load_segmenter(out, CPU)
    assert (segmenter.modalities, segmenter.channels) == (("t1", "flair"), ("brain", "tumour"))
    assert all(0 <= score <= 1 for score in segmenter.train_dice.values())
    assert segmenter(torch.zeros(2, 12, 14, 10)).shape == (2, 12, 14, 10)
    with safe_open(out, framework="pt") as file:
        metadata = json.loads(file.metadata()["segmenter"])
    assert metadata["spec"]["segmenter"]["steps"] == 4
    assert len(metadata["manifest_sha256"]) == 64


def test_one_seed_gives_one_file_and_another_seed_another(make_study, run):
    study = make_study()
    first, again, other = run(study, "a"), run(study, "b"), run(study, "c", seed=1)
    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes() != other.read_bytes()


def test_it_prints_loss_and_dice(make_study, run, capsys):
    run(make_study())
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("segmenter: step 1 of 4, loss ")
    assert printed[-1].startswith("segmenter: Dice over 1 training volumes: brain 0.")


def test_no_steps_write_a_file_that_says_off(make_study, run, capsys):
    assert load_segmenter(run(make_study(), steps=0), CPU) is None
    assert "segmenter: off (metrics.segmenter.steps is 0)" in capsys.readouterr().out


def without_training_split(study):
    manifest = read_manifest(study.manifest)
    write_manifest(study.manifest, manifest.model_copy(update={"subjects": manifest.in_split("test")}))
    return study


def test_an_empty_training_split_is_an_error_that_says_what_to_set(make_study, run, capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        run(without_training_split(make_study(subjects=2)))
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("metrics: the segmenter learns from the training split, which is empty among 2 subjects")
    assert "raise data.fake.split.train, or set metrics.segmenter.steps: 0" in error
    assert not (tmp_path / "segmenter.safetensors").exists()


def test_an_empty_training_split_does_not_matter_where_it_is_off(make_study, run):
    assert load_segmenter(run(without_training_split(make_study(subjects=2)), steps=0), CPU) is None
