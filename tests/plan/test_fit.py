"""What fits where, and what a message says to change."""

from __future__ import annotations

import dataclasses

import pytest

from genaccel.plan.devices import GIB, KnownDevice
from genaccel.plan.fit import CONTEXT_BYTES, fault, verdict

CHECKPOINTING = {"gradient_checkpointing": True}
BF16 = {"precision": "bf16"}
FAST = BF16 | {"kernels": "fused"}


@pytest.fixture
def room_for(device):
    """A device with just the room that a demand takes, and this share more."""

    def make(demand, share: float = 0.01, **changes) -> KnownDevice:
        return device(memory_bytes=round(demand.memory_bytes * (1 + share)) + CONTEXT_BYTES, **changes)

    return make


def test_the_papers_training_needs_what_was_measured_on_an_h200(training, paper):
    assert training(network=paper["whole_head"]).memory_bytes / GIB == pytest.approx(19.1, rel=0.15)


@pytest.mark.parametrize(("share", "expected"), [(0.1, "fits"), (0.01, "tight"), (-0.01, "out of memory")])
def test_a_job_fits_with_the_context_and_the_predictions_uncertainty(training, room_for, share, expected):
    assert verdict(training(), room_for(training(), share)) == expected


def test_a_precision_that_the_device_lacks_is_unsupported_whatever_the_memory(training, device):
    lacking = device(lacks={"tf32": "X-1 has no TF32"}, memory_bytes=2**50)
    assert verdict(training(precision="tf32"), lacking) == "unsupported"
    assert fault(training(precision="tf32"), lacking, []) == (
        "train_model model=m cannot run on X-1: X-1 has no TF32; set models.m.train: {variant: fp32_strict}"
    )


def test_what_would_not_fit_in_fp32_either_is_said_along_with_the_precision(training, device):
    text = fault(training(precision="tf32"), device(lacks={"tf32": "X-1 has no TF32"}, memory_bytes=GIB), [])
    assert "{variant: fp32_strict}. Even so: train_model model=m does not fit on X-1" in text


def test_what_fits_has_no_fault(training, room_for):
    assert fault(training(), room_for(training(), 0.1), []) is None


def test_a_fault_names_job_prediction_memory_and_where_it_fits(training, device, room_for):
    larger = dataclasses.replace(room_for(training(), 0.1), name="Y-2")
    text = fault(training(batch=2), device(memory_bytes=GIB), [larger, device(name="Z-3", memory_bytes=2**50)])
    assert text.startswith("train_model model=m does not fit on X-1: predicted peak ")
    assert f"{training(batch=2).memory_bytes / GIB:.1f} GiB (fp32, batch 2, 64x64x64)" in text
    assert "of 1.0 GiB" in text
    assert text.endswith("As it is it fits on Z-3.")


@pytest.mark.parametrize(
    ("fitting", "named", "not_named"),
    [
        ({"batch": 4}, "{batch: 4}", "{batch: 2}"),
        ({"batch": 2}, "{batch: 2}", "{batch: 4}"),
        (CHECKPOINTING, "{gradient_checkpointing: true}", "{variant: bf16}"),
        (BF16, "{variant: bf16}", "true, "),
        (
            BF16 | CHECKPOINTING | {"batch": 1},
            "{batch: 1, gradient_checkpointing: true, variant: bf16}",
            "{batch: 2}",
        ),
    ],
)
def test_the_changes_that_would_make_it_fit_are_named_with_what_they_need(
    training, room_for, fitting, named, not_named
):
    demand = training(batch=8)
    changed = dataclasses.replace(demand, **fitting)
    text = fault(demand, room_for(changed), [])
    assert f"models.m.train: {named} ({changed.memory_bytes / GIB:.1f} GiB)" in text
    assert not_named not in text


def test_a_device_that_lacks_bf16_is_not_told_to_use_it(training, room_for):
    lacking = room_for(training(**BF16), lacks={"bf16": "X-1 has no BF16"})
    assert "{variant: bf16}" not in fault(training(), lacking, [])


def test_nothing_that_helps_is_said_to_be_so(training, device):
    text = fault(training(), device(memory_bytes=GIB // 2), [])
    assert "Neither a smaller batch nor another variant nor gradient checkpointing makes it fit there." in text


def test_several_processes_need_room_for_the_exchange_of_gradients(training, paper):
    alone, together = training(network=paper["whole_head"]), training(network=paper["whole_head"], devices=4)
    assert together.memory_bytes - alone.memory_bytes == pytest.approx(40.2e6 * 4, rel=0.02)


def test_weights_that_are_used_as_they_are_need_no_training_memory(training, paper):
    assert training(network=paper["whole_head"], steps=0).memory_bytes == pytest.approx(2 * 40.2e6 * 4, rel=0.02)


def test_the_fused_kernels_are_named_where_they_make_it_fit(training, room_for):
    # A network wide enough that activations count for more than weights.
    demand = training(batch=8)
    assert "{variant: fast}" in fault(demand, room_for(dataclasses.replace(demand, **FAST)), [])


@pytest.mark.parametrize("refused", [{"devices": 2}, CHECKPOINTING, {"network": "dropout"}])
def test_what_the_fused_kernels_refuse_is_not_advised(training, room_for, refused):
    demand = training(batch=8)
    if "network" in refused:
        refused = {"network": demand.network.model_copy(update={"dropout": 0.1})}
    room = room_for(dataclasses.replace(demand, **FAST))
    assert "{variant: fast}" not in fault(dataclasses.replace(demand, **refused), room, [])


def test_a_fused_training_is_not_told_to_checkpoint_or_to_use_bf16(training, device):
    text = fault(training(batch=8, **FAST), device(memory_bytes=GIB), [])
    assert "(fused, batch 8" in text
    assert "gradient_checkpointing:" not in text
    assert "variant:" not in text


def test_a_device_without_fused_kernels_is_told_another_variant(training, device):
    lacking = device(lacks={"fused": "X-1 has no fused kernels"}, memory_bytes=2**50)
    assert fault(training(**FAST), lacking, []).endswith(
        "X-1 has no fused kernels; set models.m.train: {variant: fp32_strict}"
    )
