"""Samples a synthetic volume for each mask of a split and writes it on the mask's own grid."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from genaccel.atomic import atomic_directory, file_sha256
from genaccel.command import stage_errors, stage_parser
from genaccel.data.manifest import Manifest, Subject, load_subject, read_manifest
from genaccel.device import Device, open_device
from genaccel.med_ddpm.layout import encode_condition, from_model
from genaccel.med_ddpm.network import Network, sampling_network
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.unet import UNet
from genaccel.med_ddpm.weights import load_weights
from genaccel.sample.denoise import denoiser
from genaccel.sample.noise import VolumeNoise, volume_seed
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.spec import SampleJob
from genaccel.sample.volume import is_written, volume_name, write_volume
from genaccel.spec import SpecError
from genaccel.variant import apply


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("sample", __doc__)
    parser.add_argument("--manifest", required=True, help="manifest of the data stage")
    parser.add_argument("--weights", required=True, help="weights of the train stage, or published ones")
    parser.add_argument("--out", required=True, help="folder of volumes to write")
    args = parser.parse_args(argv)
    with stage_errors("sample"):
        job = SampleJob.parse(args.spec)
        manifest = read_manifest(args.manifest)
        wanted = [(s, k) for s in _subjects(manifest, job) for k in range(job.sample.per_mask)]
        device = open_device(job.device, threads=args.threads)
        apply(job.switches, device, "sample.variants", job.variant)
        model = UNet(job.model)
        model.load_state_dict(load_weights(args.weights, job.model))
        network = sampling_network(model, job.switches, device)
        options = _options(job)
        record = {
            "model": Path(args.out).parent.name,
            "sampler": job.sampler,
            "steps": job.steps,
            "variant": job.variant,
            "eta": options.get("eta"),
            "order": options.get("order"),
            "split": job.sample.split,
            "device": device.name,
            "spec_sha256": job.sha256(),
            "weights_sha256": file_sha256(args.weights),
        }
        key = _key(record, args.code, file_sha256(args.manifest))
        with atomic_directory(args.out, key) as folder:
            todo = [(s, k) for s, k in wanted if not is_written(folder, s, k)]
            if len(todo) < len(wanted):
                print(f"sample: {len(wanted) - len(todo)} of {len(wanted)} volumes are there from an earlier attempt")
            _sample(todo, folder, job, manifest, args.manifest, network, device, record)
            volumes = [
                {"subject": s.subject, "sample": k, "volume": f"{volume_name(s, k)}.safetensors"} for s, k in wanted
            ]
            index = record | {"seed": job.sample.seed, "volumes": volumes}
            (folder / "index.json").write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")
        print(f"sample: wrote {len(wanted)} volumes to {args.out}")


def _sample(
    todo: list[tuple[Subject, int]],
    folder: Path,
    job: SampleJob,
    manifest: Manifest,
    manifest_path: str,
    network: Network,
    device: Device,
    record: dict[str, Any],
) -> None:
    """Samples the volumes in batches; each is written as soon as it is there."""
    sampler = SAMPLERS[job.sampler]
    options = _options(job)
    schedule = Schedule(job.model.timesteps).to(device.torch)
    shape = (job.model.out_channels, *job.model.tensor_shape)
    evaluations = record["steps"] * -(-len(todo) // job.sample.batch)
    with tqdm(total=evaluations, unit="step", desc="sample", mininterval=1, file=sys.stdout, ncols=100) as progress:
        for batch in _batches(todo, job.sample.batch):
            seeds = [volume_seed(job.sample.seed, s.subject, k) for s, k in batch]
            noise = VolumeNoise(seeds, shape, device.torch)
            condition = torch.stack([_condition(manifest_path, s, manifest, job) for s, _ in batch]).to(device.torch)
            denoise = denoiser(network, condition, device, progress.update)
            images = sampler(denoise=denoise, x=noise(), schedule=schedule, noise=noise, **options).cpu()
            for (subject, k), seed, image in zip(batch, seeds, images, strict=True):
                if not torch.isfinite(image).all():
                    raise SpecError(
                        f"the volume of {subject.subject} is not finite; train longer, or sample in full precision "
                        "(sample.variants: [fp32_strict])"
                    )
                volume = from_model(image, job.model.axes).numpy()
                write_volume(folder, subject, k, volume, job.model.image, record | {"seed": seed})


def _options(job: SampleJob) -> dict[str, Any]:
    """Those settings that the sampler takes."""
    given = {"steps": job.steps, "eta": job.sample.eta, "order": job.sample.order}
    return {name: given[name] for name in given.keys() & SAMPLERS.options(job.sampler)}


def _condition(manifest_path: str, subject: Subject, manifest: Manifest, job: SampleJob) -> Tensor:
    _, labels = load_subject(manifest_path, subject)
    return encode_condition(torch.from_numpy(labels), manifest.channels, job.model)


def _subjects(manifest: Manifest, job: SampleJob) -> list[Subject]:
    subjects = [s for s in manifest.subjects if s.split == job.sample.split]
    if not subjects:
        sizes = {split: sum(s.split == split for s in manifest.subjects) for split in ("train", "validation", "test")}
        raise SpecError(
            f"no subject is in the split {job.sample.split!r} (there are {sizes}); "
            "set sample.split to another, or change data.<name>.split"
        )
    return subjects


def _batches(items: list[tuple[Subject, int]], size: int) -> Iterator[list[tuple[Subject, int]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _key(record: dict[str, Any], code: str, manifest_sha256: str) -> str:
    text = json.dumps([record, code, manifest_sha256], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
