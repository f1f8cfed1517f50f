"""Gathers the losses of one variant's trainings by seed, and compares them with the baseline's: one run JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from genaccel.command import stage_errors, stage_parser
from genaccel.measurement import Result, Run, read_run, write_run
from genaccel.spec import SpecError
from genaccel.train.smoothing import WINDOW, apart
from genaccel.train.spec import CurvesJob

Losses = dict[int, list[float]]
"""Of every step, by seed."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("train.curves", __doc__)
    for side, whose in (("", "the variant's"), ("baseline-", "the baseline's; none for the baseline itself")):
        for what, kind in (("runs", "run JSONs"), ("losses", "losses (CSV), in the same order")):
            how = {"type": Path, "nargs": "*", "required": not side, "default": []}
            parser.add_argument(f"--{side}{what}", help=f"{kind} of {whose} trainings", **how)
    parser.add_argument("--out", type=Path, required=True, help="run JSON to write")
    args = parser.parse_args(argv)
    with stage_errors("train"):
        job = CurvesJob.parse(args.spec)
        runs = [read_run(path) for path in args.runs]
        base_runs = [read_run(path) for path in args.baseline_runs]
        work = check_alike([*runs, *base_runs])
        losses = losses_by_seed(runs, args.losses)
        case = {key: value for result in runs[0].results[:1] for key, value in result.case.items()}
        results = list(loss_results(losses, case))
        if base_runs:
            results += comparison(losses, losses_by_seed(base_runs, args.baseline_losses), case, job)
        write_run(
            args.out,
            Run(
                stage="train",
                model=job.study,
                variant=job.variant,
                device=runs[0].device,
                n_devices=runs[0].n_devices,
                spec=job.model_dump(mode="json") | {"window": WINDOW},
                workload=work | {"window": WINDOW},
                # Nothing was run here: machine and software are those of the trainings.
                provenance=runs[0].provenance | {"code": args.code, "runs": [run.run_id for run in runs + base_runs]},
                results=tuple(results),
            ),
        )
        print(f"train: losses of {len(losses)} seeds of {job.variant} in {args.out}")


def check_alike(runs: Sequence[Run]) -> dict[str, Any]:
    """What the trainings have in common: their work but for the seed.

    Raises:
        SpecError: they have no more in common, or ran on different devices.
    """
    works = []
    for run in runs:
        work = json.loads(json.dumps(run.workload))
        work["train"].pop("seed", None)
        works.append(work)
    other = [run.model for run, work in zip(runs, works, strict=True) if work != works[0]]
    if other or len({run.device for run in runs}) > 1:
        raise SpecError(
            f"the trainings of {', '.join(other) or 'these models'} differ from that of {runs[0].model} in more than "
            "seed and variant; their curves do not compare"
        )
    return works[0]


def losses_by_seed(runs: Sequence[Run], paths: Sequence[Path]) -> Losses:
    found: Losses = {}
    for run, path in zip(runs, paths, strict=True):
        seed = run.spec["train"]["seed"]
        if seed in found:
            raise SpecError(f"{path} is of seed {seed}, as another training of this variant; give each its own")
        with open(path, newline="") as file:
            found[seed] = [float(row["loss"]) for row in csv.DictReader(file)]
    return found


def loss_results(losses: Losses, case: Mapping[str, Any]) -> Iterator[Result]:
    """A result a seed, with a value a step."""
    for seed in sorted(losses):
        cell = {**case, "seed": seed}
        yield Result(metric="training_loss", unit="1", case=cell, values=tuple(losses[seed]), seed=seed)


def comparison(losses: Losses, baseline: Losses, case: Mapping[str, Any], job: CurvesJob) -> Iterator[Result]:
    """Mean smoothed difference a seed, the baseline's between-seed range, and whether the one lies within the other."""
    found = apart(losses, baseline)
    cell = {**case, "baseline": job.baseline, "window": WINDOW}
    n = len(losses)
    yield Result(metric="loss_difference", unit="1", case=cell, values=found.by_seed, n=n)
    yield Result(metric="loss_seed_range", unit="1", case=cell, values=(found.seed_range,), n=n)
    reason = (
        f"mean smoothed difference {found.mean:+.5f}, {'within' if found.within else 'beyond'} the between-seed range "
        f"{found.seed_range:.5f} of {job.baseline}"
    )
    yield Result(metric="within_seed_range", unit="1", case=cell, values=(float(found.within),), n=n, reason=reason)


if __name__ == "__main__":
    main()
