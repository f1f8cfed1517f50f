"""The accelerator object, as far as a CPU shows it."""

from __future__ import annotations

import pytest
import torch

from genaccel.device import CUDA, KINDS, Unavailable, open_device
from genaccel.device.nvml import NVML
from genaccel.spec import SpecError
from genaccel.variants import VARIANTS


@pytest.fixture
def cpu():
    return open_device("cpu", threads=1)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of any compute capability, as far as questions about it go: ``gpu((7, 0))``."""

    def of(capability, triton=True):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla V100-SXM2-16GB")
        monkeypatch.setattr("genaccel.device.cuda.find_spec", lambda name: triton or None)
        device = object.__new__(CUDA)
        device.torch = torch.device("cuda", 0)
        return device

    return of


@pytest.mark.parametrize("name", ["fp32_strict", "bf16", "bf16_channels_last"])
def test_a_variant_is_set_explicitly_and_its_state_read_back(cpu, name):
    torch.backends.mkldnn.conv.fp32_precision = "tf32"
    state = cpu.apply(VARIANTS[name])
    assert torch.backends.mkldnn.conv.fp32_precision == "ieee"
    # A CPU has no cuDNN whose benchmark could be on.
    assert state == VARIANTS[name].model_dump() | {"cudnn_benchmark": False}


def test_what_is_read_back_is_the_state_and_not_the_wish(cpu, monkeypatch):
    class Stuck:
        fp32_precision = property(lambda self: "tf32", lambda self, value: None)

    monkeypatch.setattr(type(cpu), "_precision_units", lambda self: {"matmul": Stuck(), "convolution": Stuck()})
    assert cpu.apply(VARIANTS["fp32_strict"])["convolution"] == "tf32"


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_every_variant_sets_the_flags_of_a_gpu(gpu, monkeypatch, name):
    device, variant = gpu((9, 0)), VARIANTS[name]
    # Of the flags alone: autocast asks for a GPU.
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", not variant.cudnn_benchmark)
    state = device.apply(variant.model_copy(update={"autocast": "off"}))
    assert torch.backends.cuda.matmul.fp32_precision == state["matmul"] == variant.matmul
    assert torch.backends.cudnn.conv.fp32_precision == state["convolution"] == variant.convolution
    assert torch.backends.cudnn.benchmark is state["cudnn_benchmark"] is variant.cudnn_benchmark


def test_a_lacking_capability_is_an_error_with_its_reason(cpu):
    with pytest.raises(SpecError, match="a CPU has no TF32 tensor cores; choose another variant"):
        cpu.apply(VARIANTS["tf32"])


@pytest.mark.parametrize(
    ("capability", "what", "lacks"),
    [
        ((7, 0), "fp16", ""),
        ((6, 1), "fp16", "has no FP16, which came with 7.0"),
        ((7, 5), "fused_kernels", "has no fused kernels, which came with 8.0"),
        ((9, 0), "fused_kernels", ""),
        ((7, 0), "compile", ""),
        ((7, 0), "cuda_graphs", ""),
        ((7, 0), "cudnn_benchmark", ""),
    ],
)
def test_a_gpu_says_what_it_lacks_and_since_when_it_is_there(gpu, capability, what, lacks):
    assert lacks in (gpu(capability).lacks(what) or "")
    assert bool(gpu(capability).lacks(what)) is bool(lacks)


@pytest.mark.parametrize("what", ["compile", "fused_kernels"])
def test_triton_must_be_there(gpu, what):
    assert gpu((9, 0), triton=False).lacks(what) == f"{what} needs the package triton, which is not installed"


def test_a_cpu_compiles_where_there_is_a_compiler(cpu, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "needs a C++ compiler" in cpu.lacks("compile")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert cpu.lacks("compile") is None


@pytest.mark.parametrize("reading", ["energy_joules", "used_memory_bytes"])
def test_what_a_cpu_does_not_tell_has_a_reason(cpu, reading):
    with pytest.raises(Unavailable, match="CPU"):
        getattr(cpu, reading)()


def test_nvml_that_does_not_answer_is_no_crash():
    assert "not read: NVML does not" in NVML("no-such-device").describe()["nvml"]


def test_a_failed_allocation_on_the_host_is_out_of_memory(cpu):
    with pytest.raises(RuntimeError) as error:
        torch.empty(2**50)
    assert cpu.is_out_of_memory(error.value)
    assert not cpu.is_out_of_memory(RuntimeError("another"))


def test_a_call_is_timed_and_its_result_kept(cpu):
    seconds, result = cpu.timed(lambda: torch.ones(3))
    assert seconds > 0
    assert torch.equal(result, torch.ones(3))


def test_autocast_computes_in_half_precision_only_when_asked(cpu):
    a = torch.ones(2, 2)
    for precision, dtype in (("off", torch.float32), ("bf16", torch.bfloat16)):
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
def test_tf32_and_bf16_came_with_compute_capability_8(gpu, capability, lacks, what):
    device = gpu(capability)
    assert bool(device.lacks(what)) is lacks
    assert device.slug == "tesla-v100-sxm2-16gb"


def test_only_the_device_module_says_cuda(root):
    """Nothing else may depend on one vendor, but the kernels made for its GPUs."""
    saying = {
        path.relative_to(root / "workflow/src/genaccel").parent.as_posix()
        for path in (root / "workflow/src/genaccel").rglob("*.py")
        if "torch.cuda" in path.read_text()
    }
    assert saying <= {"device", "med_ddpm/fast"}


def test_every_kind_describes_itself(cpu):
    described = cpu.describe()
    assert described["memory_bytes"] > 0
    assert cpu.peak_memory_bytes() > 0
    assert set(KINDS) == {"cpu", "cuda", "hpu"}
