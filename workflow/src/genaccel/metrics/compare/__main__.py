"""Compares a run's volumes with those of a baseline run of the same model, masks, seeds and noise: one run JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genaccel.atomic import file_sha256
from genaccel.command import stage_errors, stage_parser
from genaccel.data.manifest import Manifest, read_manifest
from genaccel.device import open_device
from genaccel.measurement import Result, Run, write_run
from genaccel.metrics.compare.distances import Sets, difference_results, fid_difference, kid_difference
from genaccel.metrics.compare.pairs import (
    feature_pairs,
    image_pairs,
    pair_results,
    ssim_change_result,
    ssim_changes,
)
from genaccel.metrics.compare.verdict import Verdict, verdict
from genaccel.metrics.reference import RealVolumes, read_real
from genaccel.metrics.sample_features import SampleFeatures, read_sample_features
from genaccel.metrics.samples import Case, SampleIndex, read_index, sampling_case
from genaccel.metrics.spec import CompareJob, RunName
from genaccel.provenance import provenance
from genaccel.spec import SpecError
from genaccel.variant import STRICT


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("metrics.compare", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the data set that was sampled")
    parser.add_argument("--real", type=Path, required=True, help="what `genaccel.metrics.real` wrote of the data set")
    for side, what in (("", "the run"), ("baseline-", "its baseline")):
        parser.add_argument(f"--{side}samples", type=Path, required=True, help=f"folder of the stage `sample`: {what}")
        parser.add_argument(f"--{side}scores", type=Path, required=True, help=f"scores a volume (CSV) of {what}")
        parser.add_argument(f"--{side}features", type=Path, required=True, help=f"features (safetensors) of {what}")
    parser.add_argument("--run", type=Path, required=True, help="run JSON to write")
    args = parser.parse_args(argv)
    with stage_errors("metrics"):
        job, manifest = CompareJob.parse(args.spec), read_manifest(args.manifest)
        index, other = read_index(args.samples), read_index(args.baseline_samples)
        check_pair(job, index, other)
        real = read_real(args.real)
        run, baseline = read_sample_features(args.features), read_sample_features(args.baseline_features)
        check_features(run, index, real, args.features)
        check_features(baseline, other, real, args.baseline_features)
        device = open_device(job.device, threads=args.threads)
        precision = device.apply(STRICT)
        case = pair_case(manifest, index, other)
        folders = (args.samples, args.baseline_samples)
        values = image_pairs(job, args.manifest, manifest, index, folders, device.torch)
        results = pair_results(values, job, case, index.seed)
        reference = job.reference or index.split
        for name in manifest.modalities:
            changes = ssim_changes(args.scores, args.baseline_scores, name, index)
            sets = Sets(
                *(found.features[name] for found in (run, baseline)),
                run.record.subjects,
                real,
                name,
                reference,
                index.seed,
            )
            results += modality_results(sets, changes, case | {"modality": name})
        write_run(
            args.run,
            Run(
                stage="metrics",
                model=job.model,
                variant=job.run.variant,
                device=device.slug,
                spec=job.model_dump(mode="json") | {"sample_spec_sha256": [index.spec_sha256, other.spec_sha256]},
                workload=workload(job, manifest, index, other, real),
                provenance=provenance(device, args.code, precision=precision, processes=1)
                | {
                    "feature_network": real.record.network.model_dump(mode="json"),
                    "real_sha256": file_sha256(args.real),
                    "weights_sha256": index.weights_sha256,
                    "manifest_sha256": file_sha256(args.manifest),
                },
                results=tuple(results),
            ),
        )
        for result in results:
            if result.metric == "accepted":
                print(f"metrics: accepted {result.values or result.status}: {result.reason}")


def check_pair(job: CompareJob, index: SampleIndex, other: SampleIndex) -> None:
    """Raises SpecError where the folders are not the job's two runs, or not of the same weights, masks and noise."""
    for wanted, found, option in ((job.run, index, "--samples"), (job.baseline, other, "--baseline-samples")):
        name = RunName(sampler=found.sampler, steps=found.steps, variant=found.variant)
        if name != wanted:
            raise SpecError(f"{option} is of {_text(name)}, but the settings say {_text(wanted)}; pass that folder")
    for what in ("weights_sha256", "seed", "split", "volumes"):
        if getattr(index, what) != getattr(other, what):
            raise SpecError(
                f"{_text(job.run)} and its baseline {_text(job.baseline)} differ in {what}: they are of different "
                "weights, masks or noise, and no pairs; sample both again from one config"
            )


def check_features(found: SampleFeatures, index: SampleIndex, real: RealVolumes, path: Path) -> None:
    """Raises SpecError where the features are not those of the folder's volumes, or of another network."""
    rows = tuple(zip(found.record.subjects, found.record.samples, strict=True))
    if rows != tuple((v.subject, v.sample) for v in index.volumes) or found.record.network != real.record.network:
        raise SpecError(
            f"{path} holds features of other volumes than the folder's, or by another network than the real volumes'; "
            "score the samples again (python -m genaccel.metrics)"
        )


def pair_case(manifest: Manifest, index: SampleIndex, other: SampleIndex) -> Case:
    """The run's case, and which baseline it is compared with."""
    case = sampling_case(manifest, index)
    named = {"sampler": other.sampler, "steps": other.steps, "variant": other.variant}
    return case | {f"baseline_{key}": value for key, value in named.items()}


def modality_results(sets: Sets, changes: Sequence[float], case: Case) -> list[Result]:
    """Features, distances of the sets, change of SSIM, and the verdict, of one modality."""
    network, n, seed = sets.real.record.network, len(sets.run), sets.seed
    cell = case | {"features": network.name, "network": network.sha256[:12], "dimension": network.dimension}
    pairs = tuple(feature_pairs(sets.run, sets.baseline))
    results = [Result(metric="paired_feature_distance", unit="1", case=cell, values=pairs, seed=seed)]
    cell |= {"reference": sets.reference, "n_reference": int(sets.chosen.sum())}
    fid = fid_difference(sets)
    results += difference_results("fid_difference", fid, cell, n, seed)
    results += difference_results("kid_difference", kid_difference(sets), cell, n, seed)
    results.append(ssim_change_result(changes, case, seed))
    return [*results, verdict_result(verdict(fid, float(np.mean(changes))), cell, n, seed)]


def verdict_result(found: Verdict, case: Case, n: int, seed: int) -> Result:
    """1 or 0; ``unsupported`` where nothing can be said. The reason in any case."""
    common: dict[str, Any] = {"metric": "accepted", "unit": "1", "case": case, "n": n, "seed": seed}
    if found.accepted is None:
        return Result(status="unsupported", reason=found.reason, **common)
    return Result(values=(float(found.accepted),), reason=found.reason, **common)


def workload(
    job: CompareJob, manifest: Manifest, index: SampleIndex, other: SampleIndex, real: RealVolumes
) -> dict[str, Any]:
    """What is compared, on whatever device and in whatever variants."""
    sampling = {"sampler", "steps", "eta", "order", "seed", "split"}
    return {
        "model": job.model,
        "ssim": [job.ssim_window, job.ssim_sigma],
        "reference": job.reference or index.split,
        "features": real.record.network.model_dump(mode="json"),
        "run": index.model_dump(mode="json", include=sampling),
        "baseline": other.model_dump(mode="json", include=sampling),
        "volumes": [[volume.subject, volume.sample] for volume in index.volumes],
        "data": manifest.model_dump(mode="json", include={"dataset", "kind", "modalities", "channels", "shape"}),
    }


def _text(run: RunName) -> str:
    return f"{run.sampler} in {run.steps} steps with {run.variant}"


if __name__ == "__main__":
    main()
