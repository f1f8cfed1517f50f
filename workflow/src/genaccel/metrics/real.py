"""Features and thumbnails of all real volumes of a data set, once, for the scores of all samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from genaccel.atomic import file_sha256
from genaccel.command import stage_errors, stage_parser
from genaccel.data.manifest import Manifest, load_subject, read_manifest
from genaccel.device import Device, open_device
from genaccel.metrics.features import FeatureNetwork, feature_network, volume_features
from genaccel.metrics.memorisation import thumbnail
from genaccel.metrics.mmd import median_bandwidth
from genaccel.metrics.reference import NetworkRecord, RealRecord, RealVolumes, write_real
from genaccel.metrics.samples import check_finite
from genaccel.metrics.spec import RealJob
from genaccel.spec import SpecError
from genaccel.variant import STRICT


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("metrics.real", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the data set")
    parser.add_argument("--out", type=Path, required=True, help="safetensors file to write")
    args = parser.parse_args(argv)
    with stage_errors("metrics"):
        job = RealJob.parse(args.spec)
        manifest = read_manifest(args.manifest)
        if not manifest.subjects:
            raise SpecError(f"{args.manifest} holds no subject; there is nothing to compare samples with")
        device = open_device(job.device, threads=args.threads)
        device.apply(STRICT)
        network = feature_network(job.features, device.torch)
        write_real(args.out, real_volumes(args.manifest, manifest, network, device))
        print(f"metrics: features of {len(manifest.subjects)} real subjects in {args.out}")


def real_volumes(manifest_path: Path, manifest: Manifest, network: FeatureNetwork, device: Device) -> RealVolumes:
    """Looks at every volume of every split, in the order of the manifest."""
    features: dict[str, list] = {name: [] for name in manifest.modalities}
    thumbnails: dict[str, list] = {name: [] for name in manifest.modalities}
    for number, subject in enumerate(manifest.subjects, start=1):
        image, _ = load_subject(manifest_path, subject)
        where = f"{subject.subject}: {subject.volume}"
        check_finite(image, where)
        for name, volume in zip(manifest.modalities, torch.from_numpy(image).to(device.torch), strict=True):
            features[name].append(volume_features(network, volume, where))
            thumbnails[name].append(thumbnail(volume).numpy())
        print(f"metrics: {subject.subject} seen, {number} of {len(manifest.subjects)} real subjects", flush=True)
    stacked = {name: np.stack(rows) for name, rows in features.items()}
    record = RealRecord(
        network=NetworkRecord(name=network.name, sha256=network.sha256, dimension=network.dimension),
        manifest_sha256=file_sha256(manifest_path),
        modalities=manifest.modalities,
        subjects=tuple(subject.subject for subject in manifest.subjects),
        splits=tuple(subject.split for subject in manifest.subjects),
        bandwidth={name: median_bandwidth(rows) for name, rows in stacked.items()},
    )
    return RealVolumes(record, stacked, {name: np.stack(rows) for name, rows in thumbnails.items()})


if __name__ == "__main__":
    main()
