"""Run JSONs and the tidy table."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.measurement import (
    COLUMNS,
    Result,
    Run,
    case_text,
    merge_runs,
    parse_case,
    read_run,
    write_run,
    write_table,
)
from genaccel.spec import SpecError
from genaccel.table import main as table


def a_run(**changes):
    content = {
        "stage": "optimize",
        "model": "m",
        "variant": "tf32",
        "device": "nvidia-h200",
        "spec": {"device": "cuda", "steps": 3},
        "workload": {"steps": 3},
        "provenance": {"torch": "2.13.0"},
        "results": [
            {
                "metric": "step_time",
                "unit": "s",
                "case": {"size": 128, "batch": 1},
                "values": [0.2, 0.1],
                "first_call": 9.0,
            },
            {"metric": "step_time", "unit": "s", "case": {"size": 256}, "status": "oom", "reason": "needs 90 GiB"},
        ],
    }
    return Run.build(content | changes)


def test_a_run_comes_back_as_it_was_written(tmp_path):
    write_run(tmp_path / "run.json", a_run())
    read = read_run(tmp_path / "run.json")
    assert read.model_copy(update={"run_id": ""}) == a_run()
    assert read.run_id


def test_an_edited_run_is_refused(tmp_path):
    path = tmp_path / "run.json"
    write_run(path, a_run())
    path.write_text(path.read_text().replace("0.1", "0.01"))
    with pytest.raises(SpecError, match="was edited"):
        read_run(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 99}', "\x00"])
def test_what_is_no_run_is_refused_by_name(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"run\.json: "):
        read_run(path)


def test_a_timing_has_one_row_a_repeat_and_a_failure_one_row_with_its_reason(tmp_path):
    write_run(tmp_path / "run.json", a_run())
    rows = merge_runs([tmp_path / "run.json"])
    assert [(r["case"], r["repeat"], r["value"], r["status"], r["reason"]) for r in rows] == [
        ("batch=1;size=128", 0, 0.2, "ok", ""),
        ("batch=1;size=128", 1, 0.1, "ok", ""),
        ("size=256", 0, None, "oom", "needs 90 GiB"),
    ]


def test_equal_workloads_compare_across_devices(tmp_path):
    write_run(tmp_path / "a.json", a_run())
    write_run(tmp_path / "b.json", a_run(device="nvidia-a100", spec={"device": "other"}))
    rows = merge_runs([tmp_path / "a.json", tmp_path / "b.json"])
    assert len({r["workload_sha256"] for r in rows}) == 1
    assert len({r["spec_sha256"] for r in rows}) == 2


def test_one_cell_with_two_specs_is_an_error_that_names_both_files(tmp_path):
    write_run(tmp_path / "a.json", a_run())
    write_run(tmp_path / "b.json", a_run(spec={"device": "cuda", "steps": 4}))
    with pytest.raises(SpecError, match=r"(?s)b\.json and .*a\.json both measure step_time"):
        merge_runs([tmp_path / "a.json", tmp_path / "b.json"])


def test_a_run_dropped_in_twice_counts_once(tmp_path):
    for name in ("a.json", "b.json"):
        write_run(tmp_path / name, a_run())
    assert len(merge_runs([tmp_path / "a.json", tmp_path / "b.json"])) == 3


def test_the_table_has_the_columns_that_others_read(tmp_path):
    write_run(tmp_path / "run.json", a_run())
    table(["--out", str(tmp_path / "t.csv"), str(tmp_path / "run.json")])
    with open(tmp_path / "t.csv") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert rows[2]["value"] == ""


def test_the_table_does_not_depend_on_the_order_of_files(tmp_path):
    write_run(tmp_path / "a.json", a_run())
    write_run(tmp_path / "b.json", a_run(variant="fp32"))
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    assert merge_runs(paths) == merge_runs(reversed(paths))


def test_repeats_stand_in_numeric_order(tmp_path):
    write_run(
        tmp_path / "a.json", a_run(results=[{"metric": "t", "unit": "s", "values": [float(i) for i in range(12)]}])
    )
    rows = merge_runs([tmp_path / "a.json"])
    write_table(tmp_path / "t.csv", rows)
    assert [r["value"] for r in rows] == list(range(12))


@pytest.mark.parametrize(
    "result",
    [
        {"values": []},
        {"values": [float("inf")]},
        {"values": [1.0], "status": "oom", "reason": "r"},
        {"status": "unsupported"},
        {"values": [1.0], "status": "failed"},
    ],
)
def test_a_result_is_values_or_a_status_with_its_reason(result):
    with pytest.raises(SpecError):
        Result.build({"metric": "t", "unit": "s"} | result)


@given(
    st.dictionaries(
        st.text("abc_", min_size=1), st.one_of(st.integers(), st.text("xyz", min_size=1), st.booleans()), max_size=4
    )
)
def test_a_case_can_be_read_back(case):
    assert parse_case(case_text(case)) == {key: str(value) for key, value in case.items()}


@pytest.mark.parametrize("case", [{"a;b": 1}, {"a": "x=y"}])
def test_a_case_with_separators_is_refused(case):
    with pytest.raises(ValueError, match="rename it"):
        case_text(case)


def test_a_run_is_plain_json_with_sorted_keys(tmp_path):
    write_run(tmp_path / "run.json", a_run())
    content = json.loads((tmp_path / "run.json").read_text())
    assert list(content) == sorted(content)
