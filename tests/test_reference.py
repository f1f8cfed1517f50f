"""The committed measurements: whole, derived from their run JSONs, and enough to draw from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from genaccel.measurement import COLUMNS, merge_runs, read_run

REFERENCE = Path(__file__).parent.parent / "results" / "reference"
DEVICES = sorted(path.name for path in REFERENCE.glob("*") if path.is_dir())


def test_there_are_measurements():
    assert DEVICES


TABLES = [(device, path.stem) for device in DEVICES for path in sorted((REFERENCE / device).glob("*.csv"))]
STAGES = [(device, stage) for device, stage in TABLES if stage != "loss"]


@pytest.mark.parametrize(("device", "stage"), STAGES)
def test_a_table_holds_exactly_what_its_run_jsons_say(device, stage):
    runs = sorted((REFERENCE / device / "runs").glob(f"{stage}-*.json"))
    with open(REFERENCE / device / f"{stage}.csv") as file:
        committed = list(csv.DictReader(file))
    derived = [{c: "" if row[c] is None else str(row[c]) for c in COLUMNS} for row in merge_runs(runs)]
    assert committed == derived
    assert {row["device"] for row in committed} == {device}


@pytest.mark.parametrize("device", DEVICES)
def test_every_run_says_where_it_came_from(device):
    for path in (REFERENCE / device / "runs").glob("*.json"):
        run = read_run(path)
        assert run.provenance["packages"]["torch"]
        assert run.provenance["device"]["name"]
        assert run.provenance["precision"]


@pytest.mark.parametrize("device", DEVICES)
def test_predicted_peak_memory_is_near_the_measured_one(device):
    """The allocator's peak of real training steps against the prediction that is printed before them."""
    with open(REFERENCE / device / "train.csv") as file:
        values = {row["metric"]: float(row["value"]) for row in csv.DictReader(file)}
    assert values["predicted_peak_memory"] == pytest.approx(values["peak_memory"], rel=0.15)
