"""Scores synthetic volumes against real ones: one run JSON, and a CSV with a row a volume."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genaccel.atomic import atomic_file, file_sha256
from genaccel.command import stage_errors, stage_parser
from genaccel.data.manifest import Manifest, read_manifest
from genaccel.device import open_device
from genaccel.measurement import Run, write_run
from genaccel.metrics.adherence import load_segmenter
from genaccel.metrics.distances import distance_results
from genaccel.metrics.diversity import diversity
from genaccel.metrics.features import feature_network
from genaccel.metrics.reference import RealVolumes, read_real
from genaccel.metrics.results import dice_results, diversity_results, nearest_real_results, volume_results
from genaccel.metrics.sample_features import SampleFeatures, SampleRecord, write_sample_features
from genaccel.metrics.samples import SampleIndex, read_index, sampling_case
from genaccel.metrics.scoring import Scorer, Scoring
from genaccel.metrics.segmenter.network import Segmenter
from genaccel.metrics.spec import MetricsJob
from genaccel.provenance import provenance
from genaccel.spec import SpecError
from genaccel.variant import STRICT


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("metrics", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the data set that was sampled")
    parser.add_argument("--samples", type=Path, required=True, help="folder of the stage `sample`")
    parser.add_argument("--real", type=Path, required=True, help="what `genaccel.metrics.real` wrote of the data set")
    parser.add_argument("--segmenter", type=Path, required=True, help="what `genaccel.metrics.segmenter` wrote of it")
    parser.add_argument("--run", type=Path, required=True, help="run JSON to write")
    parser.add_argument("--per-volume", type=Path, required=True, help="CSV to write, one row a volume and modality")
    parser.add_argument("--features", type=Path, required=True, help="the volumes' features to write (safetensors)")
    args = parser.parse_args(argv)
    with stage_errors("metrics"):
        job = MetricsJob.parse(args.spec)
        manifest, index = read_manifest(args.manifest), read_index(args.samples)
        check_index(job, index, args.samples)
        device = open_device(job.device, threads=args.threads)
        precision = device.apply(STRICT)
        network = feature_network(job.metrics.features, device.torch)
        real = read_real(args.real)
        real.check(network, file_sha256(args.manifest), args.real)
        segmenter = load_segmenter(args.segmenter, device.torch)
        check_segmenter(segmenter, manifest, args.segmenter)
        scorer = Scorer(job.metrics, network, segmenter, real, device.torch)
        scoring = scorer(args.manifest, manifest, args.samples, index)
        case, shape, seed = sampling_case(manifest, index), manifest.shape, index.seed
        reference = job.metrics.reference or index.split
        pairs = diversity(args.manifest, manifest, args.samples, index, job.metrics, device.torch)
        results = volume_results(scoring.volumes, job.metrics, shape, case, seed)
        results += nearest_real_results(real, shape, case, seed)
        results += dice_results("dice", scoring.dice, case, seed)
        results += dice_results("dice_real", scoring.dice_real, case, seed)
        results += diversity_results(pairs, job.metrics, shape, case, seed)
        for name, features in scoring.features.items():
            results += distance_results(features, scoring.subjects, real, name, reference, case, seed)
        record = provenance(device, args.code, precision=precision, processes=1) | {
            "feature_network": real.record.network.model_dump(mode="json"),
            "mmd_bandwidth": real.record.bandwidth,
            "segmenter": None if segmenter is None else {"train_dice": segmenter.train_dice},
            "segmenter_sha256": file_sha256(args.segmenter),
            "real_sha256": file_sha256(args.real),
            "weights_sha256": index.weights_sha256,
            "manifest_sha256": file_sha256(args.manifest),
        }
        write_per_volume(args.per_volume, scoring)
        write_sample_features(args.features, sample_features(scoring, index, real))
        write_run(
            args.run,
            Run(
                stage="metrics",
                model=job.model,
                variant=job.variant,
                device=device.slug,
                spec=job.model_dump(mode="json") | {"sample_spec_sha256": index.spec_sha256},
                workload=workload(job, manifest, index, real),
                provenance=record,
                results=tuple(results),
            ),
        )
        print(f"metrics: {len(results)} results of {len(index.volumes)} volumes in {args.run}")


def check_index(job: MetricsJob, index: SampleIndex, folder: Path) -> None:
    """Raises SpecError where the folder's volumes were sampled otherwise than the job says."""
    for name in ("sampler", "steps", "variant"):
        settings, found = getattr(job, name), getattr(index, name)
        if settings != found:
            raise SpecError(
                f"{folder} holds samples of {name} {found!r}, but the settings say {settings!r}; pass the folder of "
                "this sampler, number of steps and variant, or sample again"
            )


def check_segmenter(segmenter: Segmenter | None, manifest: Manifest, path: Path) -> None:
    """Raises SpecError where it was trained on other modalities or for other mask channels."""
    if segmenter is None:
        return
    found, wanted = (segmenter.modalities, segmenter.channels), (manifest.modalities, manifest.channels)
    if found != wanted:
        raise SpecError(
            f"the segmenter {path} maps {', '.join(found[0])} to {', '.join(found[1])}, but the manifest has "
            f"{', '.join(wanted[0])} and {', '.join(wanted[1])}; delete it and run again"
        )


def workload(job: MetricsJob, manifest: Manifest, index: SampleIndex, real: RealVolumes) -> dict[str, Any]:
    """What is scored, whatever device made or scored it, and wherever the feature network's file lies."""
    return {
        "model": job.model,
        "metrics": job.metrics.model_dump(mode="json", exclude={"features"}),
        "features": real.record.network.model_dump(mode="json"),
        "sampling": index.model_dump(mode="json", include={"sampler", "steps", "eta", "order", "seed", "split"}),
        "volumes": [[volume.subject, volume.sample] for volume in index.volumes],
        "data": manifest.model_dump(mode="json", include={"dataset", "kind", "modalities", "channels", "shape"}),
    }


def sample_features(scoring: Scoring, index: SampleIndex, real: RealVolumes) -> SampleFeatures:
    record = SampleRecord(
        network=real.record.network,
        sample_spec_sha256=index.spec_sha256,
        weights_sha256=index.weights_sha256,
        subjects=tuple(scoring.subjects),
        samples=tuple(volume.sample for volume in scoring.volumes[:: len(scoring.features)]),
        modalities=tuple(scoring.features),
    )
    return SampleFeatures(record, scoring.features)


def write_per_volume(path: Path, scoring: Scoring) -> None:
    """Columns subject, sample, modality, ``<metric>_<region>``, ``nearest_train`` and ``dice_<channel>``.

    ``inf`` is the PSNR of equal volumes, ``nan`` the score of no voxel. Dice is one of all modalities.
    """
    columns = ["_".join(filter(None, key)) for key in scoring.volumes[0].scores]
    modalities = len(scoring.features)
    with atomic_file(path) as partial, open(partial, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["subject", "sample", "modality", *columns, *(f"dice_{channel}" for channel in scoring.dice)])
        for row, volume in enumerate(scoring.volumes):
            dice = [values[row // modalities] for values in scoring.dice.values()]
            writer.writerow([volume.subject, volume.sample, volume.modality, *volume.scores.values(), *dice])


if __name__ == "__main__":
    main()
