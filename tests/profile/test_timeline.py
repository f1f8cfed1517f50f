"""Steps, gaps and own times from small traces written by hand."""

from __future__ import annotations

import pytest

from genaccel.profile.timeline import Launch as Traced
from genaccel.profile.timeline import Step, device_steps, host_steps
from genaccel.spec import SpecError


def mark(phase, start, end, tid=1):
    return {"cat": "user_annotation", "name": f"genaccel:{phase}", "ts": start, "dur": end - start, "tid": tid}


def operator(name, start, end, tid=1):
    return {"cat": "cpu_op", "name": name, "ts": start, "dur": end - start, "tid": tid}


def launch(correlation, name, at, start, end, tid=1, cat="kernel", stream=7):
    args = {"correlation": correlation}
    yield {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at, "dur": 1, "tid": tid, "args": args}
    args = args | {"stream": stream}
    yield {"cat": cat, "name": name, "ts": start, "dur": end - start, "tid": stream, "args": args}


@pytest.fixture
def trace():
    """Two steps: the host is done with each long before the device is."""
    return [
        mark("train", 0, 10),
        *launch(1, "RowwiseMomentsCUDAKernel", 1, 20, 30),
        *launch(2, "Memcpy DtoD", 2, 35, 40, cat="gpu_memcpy"),
        mark("train", 10, 20),
        *launch(3, "RowwiseMomentsCUDAKernel", 11, 50, 60),
        *launch(4, "ampere_sgemm_128x64_nn", 12, 62, 70),
        *launch(5, "ampere_sgemm_128x64_nn", 13, 65, 75, stream=8),
        *launch(6, "ampere_sgemm_128x64_nn", 30, 90, 95),
    ]


def test_the_first_step_of_a_phase_is_left_out(trace):
    assert [step.phase for step in device_steps(trace)] == ["train"]


def test_a_kernel_belongs_to_the_step_that_launched_it_whenever_it_ran(trace):
    (step,) = device_steps(trace)
    assert [launch.start for launch in step.launches] == [50, 62, 65]


def test_a_step_lasts_from_the_end_of_the_one_before_to_its_own_last_kernel(trace):
    (step,) = device_steps(trace)
    assert (step.start, step.end) == (40, 75)


def test_gaps_are_where_no_stream_runs(trace):
    (step,) = device_steps(trace)
    assert step.gaps == [10, 2]


def test_idle_and_busy_time_fill_the_step_where_nothing_overlaps():
    step = Step("train", (Traced("a", "gemm", 3, 4), Traced("b", "gemm", 7, 1), Traced("c", "copy", 9, 2)), 0, 12)
    assert step.gaps == [3, 1, 1]
    assert sum(step.gaps) + sum(launch.duration for launch in step.launches) == 12


def test_a_kernel_whose_launch_is_not_in_the_trace_counts_by_its_own_time(trace):
    orphan = {"cat": "kernel", "name": "fill", "ts": 15, "dur": 1, "tid": 7, "args": {"correlation": 99}}
    (step,) = device_steps([*trace, orphan])
    assert "fill" in [launch.name for launch in step.launches]


def test_the_operator_that_launched_a_generic_kernel_tells_its_direction():
    name = "void implicit_convolve_sgemm<float>(int)"
    events = [
        mark("train", 0, 10),
        mark("train", 10, 50),
        operator("aten::convolution", 11, 20),
        *launch(1, name, 15, 100, 110),
        # The backward pass runs on a thread of its own.
        operator("aten::convolution_backward", 30, 35, tid=2),
        *launch(2, name, 31, 120, 130, tid=2),
        *launch(3, name, 32, 130, 140, tid=2),
        operator("aten::convolution_backward", 36, 40, tid=2),
        *launch(4, name, 37, 140, 150, tid=2),
        *launch(5, name, 45, 150, 160, tid=2),
    ]
    (step,) = device_steps(events)
    kinds = [launch.kind for launch in step.launches]
    assert kinds == ["convolution_forward", "data_gradient", "weight_gradient", "weight_gradient", "implicit_gemm"]


def test_an_operators_own_time_leaves_out_what_it_calls():
    events = [
        mark("denoise", 0, 10),
        mark("denoise", 10, 110),
        operator("aten::conv3d", 20, 80),
        operator("aten::convolution", 30, 70),
        operator("aten::empty", 40, 45),
        operator("aten::silu", 90, 100),
    ]
    (step,) = host_steps(events)
    own = {launch.name: launch.duration for launch in step.launches}
    assert own == {"aten::conv3d": 20, "aten::convolution": 35, "aten::empty": 5, "aten::silu": 10}
    assert {launch.name: launch.kind for launch in step.launches}["aten::empty"] == "convolution_forward"
    # Of 100 us 30 belong to no operator.
    assert sum(step.gaps) == 30


def test_a_trace_of_something_else_is_an_error():
    with pytest.raises(SpecError, match="no range named genaccel:"):
        device_steps([operator("aten::silu", 0, 1)])
