"""Sums and weighted averages of counters; which kernels are measured, and what they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.profile.counters import Launch, summarise, wanted
from genaccel.profile.results import base_case, choose, counted_classes, counter_results, coverage, label
from genaccel.profile.timeline import Launch as Traced
from genaccel.profile.timeline import Step

CYCLES = "sm__cycles_elapsed.max"
IPC = "sm__inst_executed.avg.per_cycle_elapsed"


def values(launches):
    return {(v.metric, *v.case.values()): v.value for v in summarise(launches)}


def test_counts_add_up_and_rates_are_weighted_by_elapsed_cycles():
    one = Launch("a", {CYCLES: 100, IPC: 1.0, "dram__bytes.sum": 5, "gpu__time_duration.sum": 2000}, {})
    other = Launch("b", {CYCLES: 300, IPC: 2.0, "dram__bytes.sum": 7, "gpu__time_duration.sum": 1000}, {})
    found = values([one, other])
    assert found["cycles_elapsed",] == 400
    assert found["bytes", "dram"] == 12
    assert found["counter_time",] == pytest.approx(3e-6)
    assert found["ipc",] == pytest.approx(1.75)


def test_percentages_become_shares():
    found = values([Launch("a", {CYCLES: 1, "lts__t_sector_hit_rate.pct": 87.5}, {})])
    assert found["hit_rate", "l2"] == pytest.approx(0.875)


def test_the_first_metric_that_was_measured_counts():
    found = values([Launch("a", {"gpc__cycles_elapsed.max": 9, IPC: 3.0}, {})])
    assert found["cycles_elapsed",] == 9
    assert found["ipc",] == 3


def test_a_counter_that_no_launch_has_is_left_out_rather_than_zero():
    assert ("instructions", "hgmma") not in values([Launch("a", {CYCLES: 1}, {})])


def test_a_rule_that_is_silent_about_a_launch_saves_nothing_there():
    launches = [Launch("a", {CYCLES: 100}, {"CPIStall": 0.4}), Launch("b", {CYCLES: 300}, {"Occupancy": 0.2})]
    found = values(launches)
    assert found["rule_speedup", "CPIStall"] == pytest.approx(0.1)
    assert found["rule_speedup", "Occupancy"] == pytest.approx(0.15)


def test_no_launch_has_no_values():
    assert summarise([]) == []


@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(0, 100)), min_size=1, max_size=8))
def test_an_average_lies_among_its_values_in_any_order(pairs):
    launches = [Launch("a", {CYCLES: cycles, "l1tex__t_sector_hit_rate.pct": rate}, {}) for cycles, rate in pairs]
    rates = [rate / 100 for _, rate in pairs]
    average = values(launches)["hit_rate", "l1"]
    assert min(rates) - 1e-9 <= average <= max(rates) + 1e-9
    assert values(launches[::-1])["hit_rate", "l1"] == pytest.approx(average)


def test_every_metric_is_asked_for_once():
    assert len(wanted()) == len(set(wanted()))


def step(*launches):
    time, found = 0.0, []
    for name, kind, duration in launches:
        found.append(Traced(name, kind, time, duration))
        time += duration
    return Step("train", tuple(found), 0.0, time)


@pytest.mark.parametrize(
    ("share", "launches", "chosen"),
    [
        (0.5, 100, ["conv"]),
        (0.9, 100, ["conv", "norm"]),
        (1.0, 100, ["conv", "norm", "add"]),
        # Three launches of `add` do not fit beside the others.
        (1.0, 3, ["conv", "norm"]),
        (1.0, 1, ["conv"]),
    ],
)
def test_kernels_are_chosen_by_time_until_their_share_or_their_launches_are_enough(share, launches, chosen):
    add = [("void add<int>(int)", "elementwise", 2.0)] * 3
    of = step(("conv", "gemm", 60.0), ("Memcpy DtoD", "copy", 500.0), ("norm", "normalisation", 31.0), *add)
    assert choose(of, share, launches) == chosen


def test_the_same_launch_of_the_trace_tells_the_class_of_a_measured_one():
    of = step(
        ("void implicit_convolve_sgemm<float>(int)", "convolution_forward", 1.0),
        ("void implicit_convolve_sgemm<float>(int)", "weight_gradient", 1.0),
    )
    measured = [Launch("void implicit_convolve_sgemm<(int)1>(T1)", {}, {}) for _ in range(3)]
    assert counted_classes(measured, of) == ["convolution_forward", "weight_gradient", "implicit_gemm"]


def test_coverage_is_the_share_of_kernel_time_that_was_measured():
    of = step(("conv", "gemm", 60.0), ("conv", "gemm", 20.0), ("norm", "normalisation", 20.0))
    assert coverage([Launch("conv", {}, {})], of) == pytest.approx(0.6)
    assert coverage([], Step("train", (), 0.0, 0.0)) == 0


def test_rows_stand_for_each_kernel_and_for_the_step():
    of = step(("conv", "gemm", 60.0), ("norm", "normalisation", 40.0))
    launches = [Launch("conv", {CYCLES: 10}, {}), Launch("norm", {CYCLES: 30}, {})]
    results = counter_results(launches, of, base_case((8, 8, 8), 1, "train"))
    cycles = {r.case["kernel"]: (r.case.get("class"), r.values[0]) for r in results if r.metric == "cycles_elapsed"}
    assert cycles == {"step": (None, 40), "conv": ("gemm", 10), "norm": ("normalisation", 30)}


@pytest.mark.parametrize(("size", "text"), [((128, 128, 128), "128"), ((144, 192, 192), "144x192x192")])
def test_a_case_names_the_size(size, text):
    assert base_case(size, 2, "train") == {"size": text, "batch": 2, "phase": "train"}


def test_a_kernels_label_keeps_a_case_readable():
    assert label("void f<int=1; g>(" + "x" * 300) == ("f<int:1, g>(" + "x" * 300)[:160]
