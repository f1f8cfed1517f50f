"""Derives the tidy table from run JSONs: ``python -m genaccel.table --out TABLE.csv RUN.json...``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from genaccel.atomic import atomic_file
from genaccel.command import stage_errors
from genaccel.measurement import merge_runs, read_run, write_table
from genaccel.versions import unlike


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m genaccel.table", description=__doc__)
    parser.add_argument("runs", nargs="+", help="run JSONs; those of other machines may be among them")
    parser.add_argument("--out", required=True, help="the table to write (CSV)")
    parser.add_argument("--stage", help="take runs of this stage alone")
    parser.add_argument("--warnings", type=Path, help="text to write: versions and work in which the runs differ")
    parser.add_argument("--code", default="", help="hash of the code, for the record")
    args = parser.parse_args(argv)
    with stage_errors("table"):
        runs = {path: run for path in args.runs if (run := read_run(path)).stage == (args.stage or run.stage)}
        rows = merge_runs(runs)
        write_table(args.out, rows)
        lines = unlike(runs.values())
        for line in lines:
            print(f"table: warning: {line}", file=sys.stderr)
        if args.warnings:
            with atomic_file(args.warnings) as partial:
                partial.write_text("".join(f"{line}\n" for line in lines))
        print(f"{args.out}: {len(rows)} rows of {len(runs)} runs")


if __name__ == "__main__":
    main()
