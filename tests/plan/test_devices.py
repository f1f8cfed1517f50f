"""The table of devices: whole, sourced, and found by name."""

from __future__ import annotations

import re

import pytest

from genaccel.device import CPU
from genaccel.plan.devices import GIB, find_device, known_devices, local_device
from genaccel.resources import read_resource
from genaccel.spec import SpecError

NAMES = {
    "V100-16",
    "V100-32",
    "A100-40",
    "A100-80",
    "H100-80",
    "H200-141",
    "Gaudi1-32",
    "Gaudi2-96",
    "Gaudi3-128",
    "cpu",
}


def test_the_devices_of_the_study_are_known():
    assert known_devices().keys() >= NAMES


@pytest.mark.parametrize("row", read_resource("devices.csv"), ids=lambda row: row["name"])
def test_every_figure_has_its_source(row):
    assert not row["memory_gib"] or row["memory_source"]
    speeds = [row[key] for key in ("fp32_tflops", "tf32_tflops", "bf16_tflops", "bandwidth_gbs")]
    assert not any(speeds) or row["speed_source"]


@pytest.mark.parametrize(("name", "size"), [(n, float(n.split("-")[1])) for n in sorted(NAMES - {"cpu"})])
def test_usable_memory_is_within_a_tenth_of_what_the_name_says(name, size):
    assert known_devices()[name].memory_bytes / GIB == pytest.approx(size, rel=0.1)


def test_the_cpu_has_this_machines_memory():
    assert find_device("cpu").memory_bytes == CPU().memory_bytes()


def test_a_v100_lacks_tf32_and_bf16():
    assert find_device("V100-16").lacks.keys() == {"tf32", "bf16", "fused"}


def test_a_device_is_found_whatever_the_case():
    assert find_device("h200-141") == find_device("H200-141")


def test_an_unknown_device_is_an_error_with_the_nearest_name():
    with pytest.raises(SpecError, match=r"--device H200-14 is unknown; did you mean `H200-141`\?"):
        find_device("H200-14")


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("nvidia-h200", "H200-141"),
        ("nvidia-h100-80gb-hbm3", "H100-80"),
        ("nvidia-a100-sxm4-40gb", "A100-40"),
        ("nvidia-a100-80gb-pcie", "A100-80"),
        ("tesla-v100-sxm2-16gb", "V100-16"),
        ("tesla-v100-sxm2-32gb", "V100-32"),
    ],
)
def test_a_makers_name_is_that_of_one_known_device(slug, name):
    assert [d.name for d in known_devices().values() if re.search(d.slug, slug)] == [name]


def test_a_config_for_the_cpu_is_planned_for_this_machine():
    assert local_device("cpu") == find_device("cpu")


class FakeGPU:
    """The GPU of this machine, as ``genaccel.device.CUDA`` answers."""

    slug = "nvidia-a100-sxm4-40gb"

    def memory_bytes(self) -> int:
        return 20 * GIB  # a slice of one

    def lacks(self, capability: str) -> str | None:
        return None


@pytest.fixture
def gpu(monkeypatch) -> type[FakeGPU]:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("genaccel.plan.devices.open_device", lambda kind: FakeGPU())
    return FakeGPU


def test_a_known_gpu_of_this_machine_has_its_own_memory_and_its_makers_speeds(gpu):
    here = local_device("auto")
    assert (here.name, here.memory_bytes) == ("A100-40", 20 * GIB)
    assert here.tflops == find_device("A100-40").tflops


def test_an_unknown_gpu_of_this_machine_has_memory_and_no_speeds(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "slug", "nvidia-titan-z")
    here = local_device("cuda")
    assert (here.name, here.memory_bytes, here.tflops) == ("nvidia-titan-z", 20 * GIB, {})


def test_a_machine_without_a_gpu_does_not_tell_where_jobs_will_run(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert local_device("auto") is None
    assert local_device("cuda") is None
