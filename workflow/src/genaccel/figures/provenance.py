"""Writes a page about where the measurements came from: code, settings, software, machine, weights of every run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from genaccel.command import stage_errors
from genaccel.figures.page import Cell, facts, folded, paragraph, section, table, write_page
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import figure_parser
from genaccel.measurement import Run, read_run

UNKNOWN = Cell("not recorded", "muted")
SHORT = 12  # letters of a hash in the table; the whole one is below it


def main(argv: Sequence[str] | None = None) -> None:
    parser: argparse.ArgumentParser = figure_parser("provenance", __doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run JSONs of measuring stages")
    args = parser.parse_args(argv)
    with stage_errors("figures.provenance"):
        job = FigureJob.parse(args.spec)
        runs = sorted((read_run(path) for path in args.runs), key=_order)
        write_page(args.out, f"Where the measurements of {job.title} came from", *page(runs))


def page(runs: Sequence[Run]) -> Iterator[str]:
    """What all runs share, once; what tells them apart, in a table; all that each recorded, to open."""
    rows = [_facts(run) for run in runs]
    same = {name: cell for name, cell in rows[0].items() if len(runs) > 1 and all(row[name] == cell for row in rows)}
    differ = [name for name in rows[0] if name not in same]
    if unsure := [name for name, run in zip(map(_name, runs), runs, strict=True) if run.provenance.get("dirty")]:
        text = "Measured with changes that no commit holds, so that the commit alone does not give them back: "
        yield paragraph(text + ", ".join(unsure) + ".", "warning")
    if same:
        yield section(f"The same for all {len(runs)} runs", facts(same))
    if differ:
        cells = ([Cell(_name(run)), *(row[name] for name in differ)] for run, row in zip(runs, rows, strict=True))
        yield section("Of each run", table(("run", *differ), cells))
    yield section("All that was recorded", *(folded(_name(run), facts(dict(_everything(run)))) for run in runs))


def _facts(run: Run) -> dict[str, Cell]:
    record = run.provenance
    network = record.get("feature_network") or {}
    return {
        "device": Cell(f"{_get(record, 'device', 'name') or run.device}, {run.n_devices} used"),
        "torch": _plain(record.get("torch_build") or _get(record, "packages", "torch")),
        "commit": _commit(record),
        "code": _plain(record.get("code")),
        "precision": _plain(", ".join(f"{key} {value}" for key, value in (record.get("precision") or {}).items())),
        "date": _plain(record.get("date")),
        "settings": _hash(run.spec_sha256),
        "workload": _hash(run.workload_sha256),
        "feature network": Cell(f"{network['name']} {network['sha256'][:SHORT]}", "code") if network else UNKNOWN,
        "weights": _hash(record.get("weights_sha256")),
        "data": _hash(record.get("manifest_sha256")),
        "environment": _hash(record.get("lock_sha256") or record.get("environment_sha256")),
        "SLURM job": _plain(_get(record, "slurm", "SLURM_JOB_ID")),
    }


def _commit(record: Mapping[str, Any]) -> Cell:
    if not record.get("commit"):
        return Cell("unknown: not run from a git checkout", "muted")
    commit = record["commit"][:SHORT]
    return Cell(f"{commit} and uncommitted changes", "warning") if record.get("dirty") else Cell(commit, "code")


def _plain(value: object) -> Cell:
    return UNKNOWN if value in (None, "") else Cell(str(value))


def _hash(value: str | None) -> Cell:
    return Cell(value[:SHORT], "code") if value else UNKNOWN


def _get(record: Mapping[str, Any], *path: str) -> Any:
    for key in path:
        record = (record or {}).get(key)
    return record


def _everything(run: Run) -> Iterator[tuple[str, Cell]]:
    content = run.model_dump(mode="json", exclude={"results"})
    content |= {"spec_sha256": run.spec_sha256, "workload_sha256": run.workload_sha256}
    yield from ((name, Cell(text, "code")) for name, text in _flat("", content))


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _flat(f"{prefix}.{key}" if prefix else key, value[key])
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value)


def _name(run: Run) -> str:
    named = [run.stage, run.model]
    if run.stage != "metrics":
        return " ".join([*named, run.variant])
    sampled = [run.spec.get("run", run.spec), *filter(None, [run.spec.get("baseline")])]
    # Before there were variants the column held the sampler.
    return " ".join([*named, " against ".join(_sampling(one, run.variant) for one in sampled)])


def _sampling(sampled: Mapping[str, Any], column: str) -> str:
    steps = f"{sampled['steps']} steps" if sampled.get("steps") else ""
    return " ".join(filter(None, (sampled.get("sampler", column), steps, sampled.get("variant", ""))))


def _order(run: Run) -> tuple[Any, ...]:
    sampled = run.spec.get("run", run.spec)
    compared = "baseline" in run.spec
    place = (sampled.get("sampler", ""), sampled.get("steps") or 0, run.variant)
    return run.stage != "train", run.stage, run.model, compared, *place, run.run_id


if __name__ == "__main__":
    main()
