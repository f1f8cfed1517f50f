"""The stage on a tiny network on the CPU."""

from __future__ import annotations

import gzip
import json

import pytest

from genaccel.measurement import read_run
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.profile.__main__ import main
from genaccel.profile.spec import NcuSpec, ProfileJob, ProfileSpec
from genaccel.variants import variant

MODEL = MedDDPMSpec(
    base_channels=32, channel_multipliers=(1,), shape=(4, 4, 4), image=("t1",), condition=("brain",), timesteps=10
)


def job(name="fp32_strict", **settings) -> str:
    profile = ProfileSpec(**{"variants": (), "warmup": 1, "steps": 1} | settings)
    given = {"device": "cpu", "name": "tiny", "model": MODEL, "variant": name, "switches": variant(name)}
    return ProfileJob(**given, profile=profile).canonical()


def profile(folder, spec):
    outputs = {"--run": "run.json", "--trace": "trace.json.gz", "--names": "names.tsv"}
    paths = [part for flag, name in outputs.items() for part in (flag, str(folder / name))]
    main(["--spec", spec, "--code", "profile@0", "--threads", "1", *paths])
    return read_run(folder / "run.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    profile(folder, job())
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return read_run(folder / "run.json")


def of(run, metric, **case):
    return [r for r in run.results if r.metric == metric and case.items() <= r.case.items()]


@pytest.mark.parametrize("phase", ["denoise", "train"])
def test_the_classes_of_a_step_add_up_to_its_time(run, phase):
    (step,) = of(run, "profiled_step_time", phase=phase)
    times = [result.values[0] for result in of(run, "class_time", phase=phase)]
    assert sum(times) == pytest.approx(step.values[0], rel=1e-3)


def test_training_has_what_denoising_lacks(run):
    kinds = {phase: {r.case["class"] for r in of(run, "class_time", phase=phase)} for phase in ("denoise", "train")}
    assert {"convolution_forward", "normalisation"} <= kinds["denoise"] & kinds["train"]
    assert {"implicit_gemm", "optimizer"} <= kinds["train"] - kinds["denoise"]


def test_little_is_of_no_known_class(run):
    for phase in ("denoise", "train"):
        (step,) = of(run, "profiled_step_time", phase=phase)
        other = [r.values[0] for r in of(run, "class_time", phase=phase, **{"class": "other"})]
        assert sum(other) < 0.2 * step.values[0]


def test_the_operators_with_most_time_have_rows_of_their_own(run):
    names = {result.case["kernel"] for result in of(run, "kernel_time", phase="train")}
    assert "aten::convolution_backward" in names


def test_counters_of_a_device_without_kernels_are_a_row_with_the_reason(run):
    rows = of(run, "counter_time", kernel="step")
    assert [row.status for row in rows] == ["unsupported"] * 2
    assert rows[0].reason == "cpu runs no kernels that Nsight Compute could measure"


def test_the_trace_is_kept_and_opens(folder):
    trace = json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes()))
    marks = [e["name"] for e in trace["traceEvents"] if str(e.get("name")).startswith("genaccel:")]
    assert set(marks) == {"genaccel:denoise", "genaccel:train"}


def test_all_names_can_be_listed_with_their_classes(folder):
    header, first, *_ = (folder / "names.tsv").read_text().splitlines()
    assert header == "phase\tclass\tcount\tms\tname"
    assert first.startswith("denoise\tconvolution_forward\t")


def test_equal_work_has_one_hash_whatever_the_profilers_were_asked(run, tmp_path):
    other = profile(tmp_path, job(steps=2, ncu=NcuSpec(launches=0)))
    assert other.workload_sha256 == run.workload_sha256
    assert other.spec_sha256 != run.spec_sha256
    assert not of(other, "counter_time")


def test_a_variant_that_the_device_lacks_is_a_row_with_the_reason(tmp_path):
    run = profile(tmp_path, job("tf32"))
    assert {(r.metric, r.status, r.reason) for r in run.results} == {
        ("profiled_step_time", "unsupported", "a CPU has no TF32 tensor cores")
    }


def test_memory_that_ran_out_is_a_row(tmp_path, monkeypatch):
    def fails(*arguments):
        raise MemoryError("not enough for this")

    monkeypatch.setattr("genaccel.profile.phase.prepare", fails)
    run = profile(tmp_path, job())
    assert {(r.status, r.reason) for r in run.results} == {("oom", "not enough for this")}


def test_a_size_that_does_not_halve_is_one_line_and_exit_status_one(tmp_path, capsys):
    spec = json.loads(job())
    spec["model"]["channel_multipliers"] = [1, 1]
    spec["profile"]["size"] = 3
    with pytest.raises(SystemExit):
        profile(tmp_path, json.dumps(spec))
    assert "profile: profile.size: 3 voxels cannot be halved 1 times" in capsys.readouterr().err
