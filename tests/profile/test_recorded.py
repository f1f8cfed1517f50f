"""Reports that Nsight Compute recorded on a real GPU: ``python -m genaccel.profile.record`` makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from genaccel.profile.classes import function_name, kernel_class
from genaccel.profile.counters import cycles, summarise, wanted
from genaccel.profile.report import read_csv, read_report

RAW = sorted(Path(__file__).with_name("recorded").glob("*-raw.csv"))
NAMES = [path.name.removesuffix("-raw.csv") for path in RAW]

pytestmark = pytest.mark.skipif(not RAW, reason="tests/profile/recorded holds no report yet")


@pytest.fixture(params=NAMES)
def recorded(request):
    """Name of a recorded report in its folder: NAME.ncu-rep, NAME-raw.csv, NAME-details.csv."""
    return Path(__file__).with_name("recorded") / request.param


@pytest.fixture
def launches(recorded):
    pages = [recorded.with_name(f"{recorded.name}-{page}.csv").read_text() for page in ("raw", "details")]
    return read_csv(*pages)


def test_every_launch_has_what_the_figures_show(launches):
    assert launches
    for launch in launches:
        assert cycles(launch) > 0
        found = {(v.metric, *v.case.values()) for v in summarise([launch])}
        assert {("counter_time",), ("ipc",), ("achieved_occupancy",), ("tensor_pipe_use",)} <= found
        assert {("instructions", pipe) for pipe in ("all", "fma", "alu", "lsu")} <= found
        assert {("bytes", "dram"), ("hit_rate", "l1"), ("hit_rate", "l2"), ("throughput", "dram")} <= found
        assert ("warp_stall", "long_scoreboard") in found


def test_shares_lie_between_none_and_all(launches):
    shares = {"tensor_pipe_use", "achieved_occupancy", "sm_throughput", "throughput", "hit_rate", "rule_speedup"}
    for value in summarise(launches):
        if value.metric in shares:
            assert 0 <= value.value <= 1.01, value


def test_rules_expect_something_of_some_launch(launches):
    assert any(launch.rules for launch in launches)


def test_every_kernel_is_known(launches):
    unknown = [launch.name for launch in launches if kernel_class(launch.name) == "other"]
    assert not unknown
    assert all(function_name(launch.name).isidentifier() for launch in launches)


def test_nvidias_module_and_the_csv_pages_agree(recorded, launches):
    pytest.importorskip("ncu_report", reason="NVIDIA's package ncu-report is not installed")
    report = recorded.with_name(f"{recorded.name}.ncu-rep")
    if not report.is_file():
        pytest.skip(f"{report.name} holds the code of the library's kernels, 24 MB: its pages alone are kept")
    read, _ = read_report(report)
    assert [set(launch.counters) for launch in read] == [set(launch.counters) for launch in launches]
    for one, other in zip(read, launches, strict=True):
        assert one.counters == pytest.approx(other.counters, rel=1e-3)
        assert one.rules == pytest.approx(other.rules, abs=1e-3)


def test_nothing_is_read_that_was_not_asked_for(launches):
    assert all(set(launch.counters) <= set(wanted()) for launch in launches)
