"""Settings of the `train` stage."""

from __future__ import annotations

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.spec import Spec, SpecError, setting
from genaccel.variant import Variant


class EMASpec(Spec):
    """Exponential moving average of the weights; its weights are what sampling uses."""

    decay: float = setting(0.95, "weight of the old average; published: 0.995", example=0.995, ge=0, lt=1)
    start: int = setting(20, "steps during which the average is a copy; published: 2000", example=10, ge=0)
    interval: int = setting(1, "steps between updates; published: 10", example=10, ge=1)


class CheckpointSpec(Spec):
    """When a resumable checkpoint is written; a termination signal writes one as well."""

    steps: int = setting(50, "steps between checkpoints", example=100, ge=1)
    minutes: float = setting(10.0, "minutes after which one is written in any case", example=5.0, gt=0)


class TrainSpec(Spec):
    """Training of the noise predictor."""

    steps: int = setting(160, "optimizer steps in all (the published code calls them epochs)", example=400, ge=0)
    batch: int = setting(2, "volumes a device and micro-step", example=1, ge=1)
    accumulate: int = setting(1, "micro-steps an optimizer step; published: 2", example=2, ge=1)
    learning_rate: float = setting(2e-3, "Adam's step size; published: 1.0e-5", example=1e-4, gt=0)
    offset_noise: float = setting(
        0.1,
        "standard deviation of a constant added to each channel's noise, which teaches the network to set the "
        "brightness as a whole; published: 0",
        example=0.05,
        ge=0,
    )
    variant: str = setting(
        "fp32_strict",
        "arithmetic, layout and kernels, by a variant's name; weights, optimizer and average stay FP32 in all",
        example="tf32",
    )
    gradient_checkpointing: bool = setting(False, "recompute activations to save memory", example=True)
    processes: int = setting(1, "devices to train on, one process each (DDP)", example=2, ge=1)
    ema: EMASpec = setting(EMASpec(), "moving average of the weights", example=None)
    weights: str | None = setting(
        None,
        "weights to start from: published Med-DDPM (.pt) or this workflow's (.safetensors); steps: 0 uses them as "
        "they are",
        example="weights/model_128x128.pt",
    )
    seed: int = setting(0, "seed of initial weights, data order, steps and noise", example=1, ge=0)


class Conduct(Spec):
    """How training is carried out, which never changes what it makes: these settings rerun nothing."""

    checkpoint: CheckpointSpec = setting(CheckpointSpec(), "resumable checkpoints", example=None)
    accept_checkpoint: str | None = setting(
        None,
        "key of a checkpoint to go on from although data or code changed since; the log names the key",
        example="0123456789abcdef",
    )


class TrainBlock(Conduct, TrainSpec):
    """The config's block `train`."""


def check_trainable(train: TrainSpec, model: MedDDPMSpec, switches: Variant) -> None:
    """That the training loop can do with a variant what the settings ask for.

    Raises:
        SpecError: naming the key and the remedy.
    """
    if switches.kernels == "stock":
        if switches.cuda_graphs:
            raise SpecError(
                f"train.variant: {train.variant} records CUDA graphs of PyTorch's own kernels, which only sampling and "
                "measuring do; train with a variant without cuda_graphs, or with kernels: fused"
            )
        return
    for key, value, only in (
        ("processes", train.processes, 1),
        ("gradient_checkpointing", train.gradient_checkpointing, False),
    ):
        if value != only:
            raise SpecError(
                f"train.{key}: training with fused kernels needs {str(only).lower()}, not {str(value).lower()}; change "
                f"it, or train with a variant with kernels: stock instead of {train.variant}"
            )
    if model.dropout:
        raise SpecError(
            f"models.<name>.dropout: training with fused kernels needs 0, not {model.dropout}; change it, or train "
            f"with a variant with kernels: stock instead of {train.variant}"
        )


class TrainJob(Spec):
    """What the rule `train_model` passes, beside ``Conduct``; ``switches`` are what the variant's name stands for."""

    device: str
    model: MedDDPMSpec
    train: TrainSpec
    switches: Variant
    weights_fingerprint: str | None = None


class CurvesJob(Spec):
    """What the rule `train_curves` passes: which variant's losses, and whose they are compared with."""

    study: str
    variant: str
    baseline: str
