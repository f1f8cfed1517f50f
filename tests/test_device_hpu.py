"""A Gaudi, as far as a recording stand-in for Intel's plugin shows it; its tensors stay on the CPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from genaccel import attention
from genaccel.device import HPU, Unavailable, habana, open_device
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.optimize.measure import measure_cell
from genaccel.optimize.spec import Cell, OptimizeJob, TimingSpec, VolumeWork
from genaccel.optimize.workload import Workload
from genaccel.plan.devices import known_devices
from genaccel.sample.denoise import denoiser
from genaccel.spec import SpecError
from genaccel.train.batch import Batch
from genaccel.train.processes import Process, process_group
from genaccel.train.spec import TrainSpec
from genaccel.train.stock import StockSteps
from genaccel.variant import STRICT
from genaccel.variants import VARIANTS, plainer

STAND_INS = Path(__file__).parent / "stand_ins"
VENDOR = ("habana_frameworks", "pyhlml")
MODEL = MedDDPMSpec(
    shape=(8, 8, 8), image=("t1",), condition=("brain", "tumour"), channel_multipliers=(1,), timesteps=10
)
SYNCHRONISED = ["mark_step", "synchronize"]


class OnHost(HPU):
    """The stand-in's device: a Gaudi in all but where its tensors lie."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.torch = torch.device("cpu")


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ("HABANA_VISIBLE_MODULES", "HLS_MODULE_ID", "LOCAL_RANK", "PT_HPU_LAZY_MODE"):
        # Set first, so that what a test writes itself is taken back as well.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    habana.plugin.cache_clear()
    yield
    habana.plugin.cache_clear()
    attention.use(None)
    for name in [name for name in sys.modules if name.split(".")[0] in VENDOR]:
        del sys.modules[name]


@pytest.fixture
def vendor(monkeypatch):
    """The stand-in on the path."""
    monkeypatch.syspath_prepend(str(STAND_INS))
    import habana_frameworks

    return habana_frameworks


@pytest.fixture
def events(vendor):
    return vendor.EVENTS


@pytest.fixture
def gaudi(vendor, monkeypatch):
    monkeypatch.setitem(__import__("genaccel.device").device.KINDS, "hpu", OnHost)
    return open_device("hpu", threads=1)


@pytest.fixture
def eager(vendor, gaudi):
    vendor.LAZY = False
    habana.plugin.cache_clear()
    return open_device("hpu", threads=1)


def noted(original, name, events):
    def call(self, *args, **kwargs):
        events.append(name)
        return original(self, *args, **kwargs)

    return call


@pytest.fixture
def recorded(events, monkeypatch):
    """Backward passes and optimizer steps stand among the plugin's events."""
    for owner, method, name in ((torch.Tensor, "backward", "backward"), (torch.optim.Adam, "step", "optimizer")):
        monkeypatch.setattr(owner, method, noted(getattr(owner, method), name, events))
    events.clear()
    return events


@pytest.mark.parametrize(
    ("vendors", "name", "slug", "planned"),
    [
        ("GAUDI", "Gaudi1", "gaudi1", "Gaudi1-32"),
        ("GAUDI2", "Gaudi2", "gaudi2", "Gaudi2-96"),
        ("GAUDI3", "Gaudi3", "gaudi3", "Gaudi3-128"),
        ("HL-225B", "Gaudi2", "gaudi2", "Gaudi2-96"),
        ("GAUDI9X", "GAUDI9X", "gaudi9x", None),
    ],
)
def test_the_generation_names_the_device(vendor, gaudi, vendors, name, slug, planned):
    vendor.NAME = vendors
    assert (gaudi.name, gaudi.slug) == (name, slug)
    assert next((d.name for d in known_devices().values() if re.search(d.slug, gaudi.slug)), None) == planned


@pytest.mark.parametrize(
    ("generation", "capability", "reason"),
    [
        ("GAUDI", "tf32", "no switch for TF32"),
        ("GAUDI2", "cuda_graphs", "need an NVIDIA GPU"),
        ("GAUDI2", "fused_kernels", "in Triton"),
        ("GAUDI2", "cudnn_benchmark", "cuDNN needs"),
        ("GAUDI2", "compile", "Inductor"),
        ("GAUDI", "fp16", "came with Gaudi2"),
        ("GAUDI2", "fp16", None),
        ("GAUDI", "bf16", None),
    ],
)
def test_what_a_gaudi_lacks_has_a_reason(vendor, gaudi, generation, capability, reason):
    vendor.NAME = generation
    assert (reason in gaudi.lacks(capability)) if reason else gaudi.lacks(capability) is None


def test_a_call_is_timed_between_two_waits_for_the_device(gaudi, events):
    events.clear()
    seconds, output = gaudi.timed(lambda: events.append("call") or torch.ones(2))
    assert events == [*SYNCHRONISED, "call", *SYNCHRONISED]
    assert seconds > 0
    assert torch.equal(output, torch.ones(2))


def test_an_eager_device_has_no_steps_to_end(eager, events):
    events.clear()
    eager.mark_step()
    eager.timed(lambda: events.append("call"))
    assert events == ["synchronize", "call", "synchronize"]


def test_a_training_step_ends_a_graph_after_each_backward_pass_and_after_the_optimizer(gaudi, recorded):
    gaudi.apply(STRICT)
    torch.manual_seed(0)
    steps = StockSteps(
        UNet(MODEL), TrainSpec(accumulate=2), STRICT, Schedule(MODEL.timesteps), gaudi, Process()
    )  # fmt: skip
    x0, condition = torch.randn(1, 1, 8, 8, 8), torch.randn(1, 2, 8, 8, 8)
    batches = [Batch(x0, condition, torch.tensor([3]), torch.randn_like(x0), dropout=n) for n in range(2)]
    recorded.clear()
    steps(batches, 1)
    assert recorded == [
        *("seed 0", "backward", "mark_step", "seed 1", "backward", "mark_step"),
        *("optimizer", "mark_step"),
    ]


def test_a_measured_training_step_does_the_same_inside_the_time(gaudi, recorded):
    gaudi.apply(STRICT)
    step = Workload(MODEL, STRICT, gaudi, (8, 8, 8), 1, 0).train()
    recorded.clear()
    gaudi.timed(step)
    assert recorded == [*SYNCHRONISED, "backward", "mark_step", "optimizer", "mark_step", *SYNCHRONISED]


def test_every_evaluation_of_the_network_ends_a_graph(gaudi, events):
    gaudi.apply(STRICT)
    workload = Workload(MODEL, STRICT, gaudi, (8, 8, 8), 1, 0)
    events.clear()
    workload.denoise()()
    assert events == ["mark_step"]
    workload.volume("ddim", 3)()
    assert events == ["mark_step"] * 4
    denoise = denoiser(workload.network(), workload.condition, gaudi)
    denoise(workload.x0, workload.t)
    assert events == ["mark_step"] * 5


def test_the_state_says_how_it_executes(gaudi):
    state = gaudi.apply(VARIANTS["bf16"])
    assert (state["execution"], state["attention"], state["autocast"]) == ("lazy", "FusedSDPA", "bf16")
    assert gaudi.describe()["execution"] == "lazy"


def test_the_state_says_that_it_is_eager(eager):
    assert eager.apply(STRICT)["execution"] == "eager"


@pytest.mark.parametrize(("setting", "lazy"), [("0", False), ("1", True), (None, True)])
def test_a_plugin_that_does_not_tell_its_mode_has_the_environments(vendor, monkeypatch, setting, lazy):
    monkeypatch.setitem(sys.modules, "habana_frameworks.torch.utils.internal", None)
    if setting:
        monkeypatch.setenv("PT_HPU_LAZY_MODE", setting)
    assert habana.plugin().lazy is lazy


def test_half_precision_attends_with_the_plugins_kernel_and_strict_fp32_with_pytorchs(gaudi, events):
    q, k, v = (torch.randn(1, 1, 5, 4).bfloat16() for _ in range(3))
    gaudi.apply(VARIANTS["bf16"])
    events.clear()
    assert torch.equal(attention.attend(q, k, v), F.scaled_dot_product_attention(q, k, v))
    assert events == ["FusedSDPA torch.bfloat16"]
    gaudi.apply(STRICT)
    attention.attend(q, k, v)
    assert len(events) == 1


def test_the_networks_attention_is_the_devices(gaudi, events):
    gaudi.apply(VARIANTS["bf16"])
    events.clear()
    Workload(MODEL, VARIANTS["bf16"], gaudi, (8, 8, 8), 1, 0).denoise()()
    assert "FusedSDPA torch.bfloat16" in events


def test_another_device_takes_the_kernel_back(gaudi):
    gaudi.apply(VARIANTS["bf16"])
    open_device("cpu", threads=1).apply(STRICT)
    assert attention._kernel is F.scaled_dot_product_attention


def test_a_plugin_without_fused_attention_attends_with_pytorchs(gaudi, monkeypatch):
    monkeypatch.setitem(sys.modules, "habana_frameworks.torch.hpex.kernels", None)
    assert gaudi.apply(VARIANTS["bf16"])["attention"] == "PyTorch's"


def test_a_variant_is_measured_and_what_a_gaudi_lacks_is_a_row(vendor, gaudi, monkeypatch):
    small = {"cpu": 2**10, "hpu": 2**10}
    monkeypatch.setattr("genaccel.optimize.ceilings.SIDES", {"hpu": 64})
    monkeypatch.setattr("genaccel.optimize.ceilings.COPIES", small)
    monkeypatch.setattr("genaccel.optimize.energy.LEAST_SECONDS", 0.0)

    def measured(variant):
        job = OptimizeJob(
            device="hpu",
            name="tiny",
            model=MODEL,
            variant=variant,
            switches=VARIANTS[variant],
            plainer=plainer(variant, VARIANTS[variant]),
            shapes=((4, 4, 4),),
            batches=(1,),
            volumes=(VolumeWork(sampler="ddim", steps=2),),
            seed=0,
            timing=TimingSpec(repeats=3, warmup=1, budget_s=1),
        )
        return measure_cell(job, Cell(shape=(4, 4, 4), batch=1), gaudi)

    monkeypatch.setenv("HLS_MODULE_ID", "1")
    found = measured("bf16")
    by_metric = {(row.metric, row.case.get("step")): row for row in found.results}
    assert by_metric["peak_memory", "train"].values == (5 * 2**30,)
    assert by_metric["train_step_time", None].status == "ok"
    assert found.record["clock"].startswith("host's monotonic clock")
    lacking = measured("tf32")
    assert {(row.status, row.reason) for row in lacking.results} == {("unsupported", lacking.unsupported)}
    assert "no switch for TF32" in lacking.unsupported


def test_energy_and_memory_are_those_of_the_module(vendor, gaudi, monkeypatch):
    monkeypatch.setenv("HABANA_VISIBLE_MODULES", "2,3")
    gaudi = open_device("hpu", index=1, threads=1)
    import pyhlml

    assert os.environ["HLS_MODULE_ID"] == "3"
    before = gaudi.energy_joules()
    pyhlml.energy_mj += 2500
    assert gaudi.energy_joules() - before == pytest.approx(2.5)
    assert gaudi.used_memory_bytes() == 4 * 2**30
    described = gaudi.describe()
    assert (described["driver"], described["soc_clock_mhz"], described["power_cap_w"]) == ("1.24.2-fw", 1503, 600)
    assert (described["module"], described["visible_modules"], described["memory_bytes"]) == (3, "2,3", 94 * 2**30)


def test_of_several_devices_an_unknown_one_has_no_readings(gaudi):
    with pytest.raises(Unavailable, match=r"sees 4 devices, and nothing tells which .*set HABANA_VISIBLE_MODULES"):
        gaudi.energy_joules()


@pytest.mark.parametrize("reading", ["energy_joules", "used_memory_bytes"])
def test_without_the_management_library_readings_have_a_reason(gaudi, monkeypatch, reading):
    monkeypatch.setitem(sys.modules, "pyhlml", None)
    with pytest.raises(Unavailable, match="HLML does not answer"):
        getattr(gaudi, reading)()
    assert gaudi.describe()["hlml"].startswith("not read: HLML does not answer")


def test_more_processes_than_visible_modules_is_an_error(gaudi, monkeypatch):
    monkeypatch.setenv("HABANA_VISIBLE_MODULES", "2,3")
    with pytest.raises(SpecError, match="hpu:2 was asked for, but HABANA_VISIBLE_MODULES=2,3 names 2"):
        open_device("hpu", index=2)


def test_processes_talk_through_hccl(gaudi, events, monkeypatch):
    joined = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(dist, "init_process_group", lambda backend: joined.append((backend, events[-1])))
    monkeypatch.setattr(dist, "get_rank", lambda: 3)
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    with process_group(gaudi) as process:
        assert (process.rank, process.local_rank) == (3, 1)
    assert joined == [("hccl", "hccl loaded")]


def test_seeds_reach_the_device_and_generators_stay_on_the_host(gaudi, events):
    events.clear()
    gaudi.seed(7)
    assert events == ["seed 7"]
    assert gaudi.generator(5).device.type == "cpu"


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (
            RuntimeError("[Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::4294967296"),
            True,
        ),
        (RuntimeError("synStatus=26 [Generic failure]"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_memory_that_ran_out_is_told_from_other_faults(gaudi, error, memory):
    assert gaudi.is_out_of_memory(error) is memory


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_auto_takes_a_gaudi_where_there_is_one_and_no_gpu(gaudi, vendor):
    assert open_device("auto", threads=1).kind == "hpu"
    vendor.COUNT = 0
    assert open_device("auto", threads=1).kind == "cpu"


def test_auto_takes_a_gpu_before_a_gaudi(gaudi, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(SpecError, match="cuda:5"):
        open_device("auto", index=5)


def test_asking_for_a_gaudi_without_the_plugin_says_what_to_do():
    with pytest.raises(SpecError, match=r"hpu was asked for, but Intel's plugin .*; run in Intel's container"):
        open_device("hpu")


def test_asking_for_more_gaudis_than_there_are_says_how_many(vendor):
    vendor.COUNT = 1
    with pytest.raises(SpecError, match=r"hpu:1 was asked for, but the plugin sees 1 Gaudi\(s\)"):
        open_device("hpu", index=1)


@pytest.mark.parametrize(
    ("modules", "count", "remedy"),
    [
        # Nothing confines the job, or its prolog named another number than it asked for.
        (None, 8, "sees 8 .HABANA_VISIBLE_MODULES unset, .*a prolog that sets HABANA_VISIBLE_MODULES"),
        ("4,5,6", 8, "sees 3 .HABANA_VISIBLE_MODULES 4,5,6, .*does not confine jobs"),
        (None, 1, "sees 1 .*`request` in profiles/site.yaml, and at the driver with hl-smi"),
    ],
)
def test_a_job_that_sees_other_gaudis_than_it_asked_for_says_so(gaudi, vendor, monkeypatch, modules, count, remedy):
    monkeypatch.setenv("GENACCEL_DEVICES", "assigned")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    if modules:
        monkeypatch.setenv("HABANA_VISIBLE_MODULES", modules)
    vendor.COUNT = count
    with pytest.raises(SpecError, match=rf"this job asked for 2 device\(s\) and {remedy}"):
        open_device("hpu", threads=1)


@pytest.mark.parametrize(("modules", "count"), [("4,5", 8), (None, 2)])
def test_a_job_that_sees_the_gaudis_that_it_asked_for_goes_on(gaudi, vendor, monkeypatch, modules, count):
    monkeypatch.setenv("GENACCEL_DEVICES", "assigned")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    if modules:
        monkeypatch.setenv("HABANA_VISIBLE_MODULES", modules)
    vendor.COUNT = count
    assert open_device("hpu", index=1, threads=1).kind == "hpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_job_with_a_gaudi_that_the_plugin_does_not_see_stops_instead_of_running_on_the_cpu(vendor, monkeypatch):
    monkeypatch.setenv("GENACCEL_DEVICES", "assigned")
    monkeypatch.setenv("HABANA_VISIBLE_MODULES", "3")
    vendor.COUNT = 0
    with pytest.raises(SpecError, match=r"was given the Gaudi\(s\) 3 on .*, and PyTorch sees none; .*hl-smi"):
        open_device("auto", threads=1)


def test_nothing_made_for_nvidia_is_imported_on_the_way(root):
    """The stages' modules and a step, in a process where what only NVIDIA's devices need cannot be imported."""
    script = f"""
import sys
sys.path[:0] = [{str(STAND_INS)!r}]
sys.modules.update(triton=None, pynvml=None)
import torch
import genaccel.train.__main__, genaccel.sample.__main__, genaccel.optimize.cell
from genaccel.device import open_device
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.optimize.workload import Workload
from genaccel.variants import VARIANTS
device = open_device("auto", threads=1)
assert device.kind == "hpu", device.kind
device.torch = torch.device("cpu")
device.apply(VARIANTS["bf16"])
model = MedDDPMSpec(shape=(8, 8, 8), image=("t1",), condition=("brain",), channel_multipliers=(1,), timesteps=10)
device.timed(Workload(model, VARIANTS["bf16"], device, (8, 8, 8), 1, 0).denoise())
device.describe()
print([name for name in sys.modules if name.startswith("genaccel.med_ddpm.fast")])
"""
    environment = os.environ | {"PYTHONPATH": str(root / "workflow/src"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
