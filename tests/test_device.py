"""The accelerator object, as far as a CPU shows it."""

from __future__ import annotations

import pytest
import torch

from genaccel.device import CUDA, KINDS, open_device
from genaccel.spec import SpecError


@pytest.fixture
def cpu():
    return open_device("cpu", threads=1)


@pytest.mark.parametrize(
    ("precision", "effective"),
    [
        ("fp32", {"matmul": "ieee", "convolution": "ieee", "autocast": "off"}),
        ("bf16", {"matmul": "ieee", "convolution": "ieee", "autocast": "bf16"}),
    ],
)
def test_precision_is_set_explicitly_and_read_back(cpu, precision, effective):
    assert cpu.set_precision(precision) == effective


def test_a_lacking_capability_is_an_error_with_its_reason(cpu):
    with pytest.raises(SpecError, match="a CPU has no TF32 tensor cores; use fp32"):
        cpu.set_precision("tf32")


def test_autocast_computes_in_bf16_only_when_asked(cpu):
    a = torch.ones(2, 2)
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        with cpu.autocast(precision):
            assert (a @ a).dtype == dtype


def test_generators_of_one_seed_agree(cpu):
    assert torch.equal(torch.randn(3, generator=cpu.generator(5)), torch.randn(3, generator=cpu.generator(5)))


@pytest.mark.parametrize(
    ("kind", "message"), [("cdua", "did you mean `cuda`"), ("tpu", "valid: `auto`, `cpu`, `cuda`|did you mean")]
)
def test_an_unknown_device_names_the_nearest(kind, message):
    with pytest.raises(SpecError, match=message):
        open_device(kind)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_asking_for_a_gpu_where_there_is_none_says_what_to_do():
    with pytest.raises(SpecError, match=r"sees 0 NVIDIA GPU\(s\) here; .*set device: cpu"):
        open_device("cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_auto_takes_the_cpu_where_there_is_no_gpu():
    assert open_device("auto").kind == "cpu"


def test_slurms_allocation_decides_the_threads(monkeypatch):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    open_device("cpu", threads=2)
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("capability", "lacks"), [((7, 0), True), ((8, 0), False), ((9, 0), False)])
@pytest.mark.parametrize("what", ["tf32", "bf16"])
def test_tf32_and_bf16_came_with_compute_capability_8(monkeypatch, capability, lacks, what):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla V100-SXM2-16GB")
    device = object.__new__(CUDA)
    device.torch = None
    assert bool(device.lacks(what)) is lacks
    assert device.slug == "tesla-v100-sxm2-16gb"


def test_only_the_device_module_says_cuda(root):
    """Nothing else may depend on one vendor; `processes` chooses a communication library by the device's kind."""
    saying = {
        str(path.relative_to(root / "workflow/src/genaccel"))
        for path in (root / "workflow/src/genaccel").rglob("*.py")
        if "torch.cuda" in path.read_text()
    }
    assert saying <= {"device.py"}


def test_every_kind_describes_itself(cpu):
    described = cpu.describe()
    assert described["memory_bytes"] > 0
    assert cpu.peak_memory_bytes() > 0
    assert set(KINDS) == {"cpu", "cuda"}
