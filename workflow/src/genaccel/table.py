"""Derives the tidy table from run JSONs: ``python -m genaccel.table --out TABLE.csv RUN.json...``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from genaccel.command import stage_errors
from genaccel.measurement import merge_runs, write_table


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m genaccel.table", description=__doc__)
    parser.add_argument("runs", nargs="+", help="run JSONs; those of other machines may be among them")
    parser.add_argument("--out", required=True, help="the table to write (CSV)")
    parser.add_argument("--code", default="", help="hash of the code, for the record")
    args = parser.parse_args(argv)
    with stage_errors("table"):
        rows = merge_runs(args.runs)
        write_table(args.out, rows)
        print(f"{args.out}: {len(rows)} rows of {len(args.runs)} runs")


if __name__ == "__main__":
    main()
