"""Scores synthetic volumes against the real ones of their masks: one run JSON, and a CSV with a row a volume."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from genaccel.atomic import atomic_file, file_sha256
from genaccel.command import stage_errors, stage_parser
from genaccel.data.manifest import Manifest, load_subject, read_manifest
from genaccel.device import Device, open_device
from genaccel.measurement import Run, write_run
from genaccel.metrics.features import FEATURES, FeatureNetwork
from genaccel.metrics.image import image_scores
from genaccel.metrics.results import Case, Scored, fid_result, image_results
from genaccel.metrics.samples import SampleIndex, by_subject, check_finite, load_sample, read_index
from genaccel.metrics.spec import MetricsJob, MetricsSpec
from genaccel.provenance import provenance

Features = dict[str, dict[str, list]]
"""By ``synthetic`` or ``real``, then by modality: one vector a volume."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("metrics", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the data set that was sampled")
    parser.add_argument("--samples", type=Path, required=True, help="folder of the stage `sample`")
    parser.add_argument("--run", type=Path, required=True, help="run JSON to write")
    parser.add_argument("--per-volume", type=Path, required=True, help="CSV to write, one row a volume and modality")
    args = parser.parse_args(argv)
    with stage_errors("metrics"):
        job = MetricsJob.parse(args.spec)
        manifest, index = read_manifest(args.manifest), read_index(args.samples)
        if job.sampler != index.sampler:
            raise ValueError(f"{args.samples} holds samples of {index.sampler!r}, but the settings say {job.sampler!r}")
        device = open_device(job.device, threads=args.threads)
        precision = device.set_precision("fp32")
        network = FEATURES[job.metrics.features](device.torch)
        scored, features = score(args.manifest, args.samples, manifest, index, job.metrics, network, device)
        case = sampling_case(manifest, index)
        results = image_results(scored, job.metrics, case, index.seed)
        for name in manifest.modalities:
            sets = features["synthetic"][name], features["real"][name]
            results.append(fid_result(*sets, network, case | {"modality": name}, index.split, index.seed))
        record = provenance(device, args.code, precision=precision, processes=1) | {
            "feature_network": {"name": network.name, "sha256": network.sha256, "dimension": network.dimension},
            "weights_sha256": index.weights_sha256,
            "manifest_sha256": file_sha256(args.manifest),
        }
        write_per_volume(args.per_volume, scored)
        write_run(
            args.run,
            Run(
                stage="metrics",
                model=job.model,
                variant=job.sampler,
                device=device.slug,
                spec=job.model_dump(mode="json") | {"sample_spec_sha256": index.spec_sha256},
                workload=workload(job, manifest, index),
                provenance=record,
                results=tuple(results),
            ),
        )
        print(f"metrics: {len(results)} results of {len(index.volumes)} volumes in {args.run}")


def score(
    manifest_path: Path,
    folder: Path,
    manifest: Manifest,
    index: SampleIndex,
    settings: MetricsSpec,
    network: FeatureNetwork,
    device: Device,
) -> tuple[list[Scored], Features]:
    """Image scores in the order of subject, sample and modality, and the features of all volumes."""
    samples = by_subject(index, manifest)
    scored: list[Scored] = []
    features: Features = {origin: {name: [] for name in manifest.modalities} for origin in ("synthetic", "real")}

    def see(origin: str, image: torch.Tensor) -> None:
        for name, volume in zip(manifest.modalities, image, strict=True):
            features[origin][name].append(network(volume[None, None])[0].double().cpu().numpy())

    for number, subject in enumerate(manifest.in_split(index.split), start=1):
        image, labels = load_subject(manifest_path, subject)
        check_finite(image, f"{subject.subject}: {subject.volume}")
        real = torch.from_numpy(image).to(device.torch)
        foreground = torch.from_numpy(labels.any(axis=0)).to(device.torch)
        see("real", real)
        for volume in samples[subject.subject]:
            synthetic = torch.from_numpy(load_sample(folder, volume, image.shape)).to(device.torch)
            see("synthetic", synthetic)
            for name, x, y in zip(manifest.modalities, synthetic, real, strict=True):
                scores = image_scores(x, y, foreground, settings.ssim_window, settings.ssim_sigma)
                scored.append(Scored(subject.subject, volume.sample, name, scores))
        print(f"metrics: {subject.subject} scored, {number} of {len(samples)} subjects", flush=True)
    return scored, features


def sampling_case(manifest: Manifest, index: SampleIndex) -> Case:
    """What tells these samples from others of the same model."""
    size = "x".join(map(str, manifest.shape))
    case: Case = {"sampler": index.sampler, "steps": index.steps, "split": index.split, "size": size}
    return case if index.eta is None else case | {"eta": index.eta}


def workload(job: MetricsJob, manifest: Manifest, index: SampleIndex) -> dict[str, Any]:
    """What is scored, whatever device made or scored it."""
    return {
        "model": job.model,
        "metrics": job.metrics.model_dump(mode="json"),
        "sampling": index.model_dump(mode="json", include={"sampler", "steps", "eta", "seed", "split"}),
        "volumes": [[volume.subject, volume.sample] for volume in index.volumes],
        "data": manifest.model_dump(mode="json", include={"dataset", "kind", "modalities", "channels", "shape"}),
    }


def write_per_volume(path: Path, scored: Sequence[Scored]) -> None:
    """Columns subject, sample, modality, ``<metric>_<region>``: ``inf`` PSNR of equal volumes, ``nan`` of no voxel."""
    columns = [f"{metric}_{region}" for metric, region in scored[0].scores]
    with atomic_file(path) as partial, open(partial, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["subject", "sample", "modality", *columns])
        for volume in scored:
            writer.writerow([volume.subject, volume.sample, volume.modality, *volume.scores.values()])


if __name__ == "__main__":
    main()
