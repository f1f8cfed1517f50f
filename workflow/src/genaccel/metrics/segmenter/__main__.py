"""Trains the segmenter of mask adherence on the real volumes of the training split."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from genaccel.atomic import file_sha256
from genaccel.command import cpu_threads, stage_errors, stage_parser
from genaccel.data.manifest import Manifest, read_manifest
from genaccel.device import open_device
from genaccel.metrics.adherence import dice
from genaccel.metrics.segmenter.network import Segmenter, SegmenterNetwork, halvings, write_segmenter
from genaccel.metrics.segmenter.patches import Pair, patch_shape, training_split
from genaccel.metrics.segmenter.training import channel_weights, train
from genaccel.metrics.spec import SegmenterJob
from genaccel.variant import STRICT

VOXELS_A_THREAD = 8192


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("metrics.segmenter", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the data set")
    parser.add_argument("--out", type=Path, required=True, help="weights to write (.safetensors)")
    args = parser.parse_args(argv)
    with stage_errors("metrics"):
        job = SegmenterJob.parse(args.spec)
        manifest = read_manifest(args.manifest)
        metadata = describe(job, manifest, args.manifest)
        if job.segmenter.steps == 0:
            write_segmenter(args.out, None, metadata)
            print(f"segmenter: off (metrics.segmenter.steps is 0), which {args.out} says")
            return
        volumes = training_split(args.manifest, manifest)
        device = open_device(job.device, threads=min(cpu_threads(args.threads), useful_threads(job, manifest)))
        device.apply(STRICT)
        device.seed(job.segmenter.seed)
        network = SegmenterNetwork(
            len(manifest.modalities), len(manifest.channels), job.segmenter.channels, metadata["depth"]
        ).to(device.torch)
        train(network, volumes, channel_weights(manifest), job.segmenter, device)
        scores = train_dice(Segmenter(network, metadata, device.torch), volumes)
        write_segmenter(args.out, network, metadata | {"train_dice": scores, "device": device.name})
        found = ", ".join(f"{name} {'-' if score is None else f'{score:.3f}'}" for name, score in scores.items())
        print(f"segmenter: Dice over {len(volumes)} training volumes: {found}; wrote {args.out}")


def describe(job: SegmenterJob, manifest: Manifest, path: Path) -> dict:
    """What the file says of the network, beside its weights."""
    return {
        "spec": job.model_dump(mode="json"),
        "spec_sha256": job.sha256(),
        "manifest_sha256": file_sha256(path),
        "modalities": manifest.modalities,
        "channels": manifest.channels,
        "depth": halvings(manifest.shape),
    }


def useful_threads(job: SegmenterJob, manifest: Manifest) -> int:
    """CPU threads that a step has work for: on small patches they wait for each other most of the time."""
    patch = patch_shape(manifest.shape, 2 ** halvings(manifest.shape))
    return max(1, job.segmenter.batch * math.prod(patch) // VOXELS_A_THREAD)


def train_dice(segmenter: Segmenter, volumes: Sequence[Callable[[], Pair]]) -> dict[str, float | None]:
    """Mean Dice of every mask channel over volumes; None where the channel is empty in all of them."""
    found: dict[str, list[float]] = {name: [] for name in segmenter.channels}
    for read in volumes:
        image, mask = read()
        for name, predicted, target in zip(segmenter.channels, segmenter(image).cpu(), mask, strict=True):
            found[name].append(dice(predicted, target))
    kept = {name: [score for score in scores if not math.isnan(score)] for name, scores in found.items()}
    return {name: statistics.fmean(scores) if scores else None for name, scores in kept.items()}


if __name__ == "__main__":
    main()
