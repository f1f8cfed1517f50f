"""Runs of several machines in one table."""

from __future__ import annotations

import pytest

from genaccel.measurement import Result, Run, write_run
from genaccel.table import main
from genaccel.versions import unlike


def a_run(device="nvidia-h200", torch="2.13.0+cu130", work=1, stage="optimize", spec=1, **described):
    described = {"kind": "cuda", "cuda": "13.0", "driver": "580.1"} | described
    return Run(
        stage=stage,
        model="m",
        variant="bf16",
        device=device,
        spec={"steps": spec},
        workload={"steps": work},
        provenance={"packages": {"torch": torch}, "device": described},
        results=(Result(metric="step_time", unit="s", values=(0.1,)),),
    )


def test_like_runs_give_no_warning():
    assert unlike([a_run(), a_run(device="nvidia-a100"), a_run(device="cpu", torch="2.13.0+cpu", kind="cpu")]) == []


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({"torch": "2.11.0"}, "unlike torch: 2.11.0 (nvidia-a100), 2.13.0 (nvidia-h200)"),
        ({"cuda": "12.8"}, "unlike cuda: 12.8 (nvidia-a100), 13.0 (nvidia-h200)"),
        ({"driver": "570.2"}, "unlike driver: 570.2 (nvidia-a100), 580.1 (nvidia-h200)"),
    ],
)
def test_unlike_versions_are_named_with_their_devices(other, line):
    assert unlike([a_run(), a_run(device="nvidia-a100", **other)]) == [line]


def test_versions_of_different_makers_are_not_compared():
    gaudi = a_run(device="gaudi2", kind="hpu", driver="1.24", synapse="1.24.1", cuda=None)
    assert unlike([a_run(), gaudi]) == []


def test_unlike_work_is_named():
    (line,) = unlike([a_run(), a_run(device="nvidia-a100", work=2)])
    assert line.startswith("unlike work of m in optimize, by workload_sha256: ")


def test_different_work_of_one_device_is_no_fault():
    assert unlike([a_run(work=1), a_run(work=2)]) == []


def test_a_table_of_one_stage_leaves_other_runs_out_and_warns(tmp_path, capsys):
    runs = [a_run(), a_run(device="nvidia-a100", torch="2.11.0"), a_run(stage="train")]
    for number, run in enumerate(runs):
        write_run(tmp_path / f"{number}.json", run)
    paths = [str(tmp_path / f"{number}.json") for number in range(3)]
    main(["--stage", "optimize", "--out", str(tmp_path / "t.csv"), "--warnings", str(tmp_path / "w.txt"), *paths])
    said = capsys.readouterr()
    assert "2 rows of 2 runs" in said.out
    assert said.err == "table: warning: unlike torch: 2.11.0 (nvidia-a100), 2.13.0 (nvidia-h200)\n"
    assert (tmp_path / "w.txt").read_text() == said.err.removeprefix("table: warning: ")
    assert "train" not in (tmp_path / "t.csv").read_text()


def test_one_cell_with_two_specs_is_an_error_that_names_both_files(tmp_path, capsys):
    for name, spec in (("own", 1), ("theirs", 2)):
        write_run(tmp_path / f"{name}.json", a_run(spec=spec))
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "t.csv"), str(tmp_path / "own.json"), str(tmp_path / "theirs.json")])
    said = capsys.readouterr().err
    assert "own.json" in said
    assert "theirs.json" in said
