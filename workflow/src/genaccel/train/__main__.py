"""Trains Med-DDPM's noise predictor and writes the averaged weights, the loss and a run JSON."""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path

import torch
import torch.distributed as dist
from tqdm import tqdm

from genaccel.atomic import atomic_file, file_sha256
from genaccel.command import SurvivingStream, stage_errors, stage_parser
from genaccel.device import Device, open_device
from genaccel.launch import launch, launched
from genaccel.measurement import Result, Run, write_run
from genaccel.med_ddpm.memory import peak_memory
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.unet import UNet
from genaccel.med_ddpm.weights import load_weights, save_weights
from genaccel.ownership import own_devices
from genaccel.provenance import provenance
from genaccel.spec import SpecError
from genaccel.train.checkpoint import Checkpoints, parts_of_key
from genaccel.train.loop import FLUSH, LossNotFinite, Training
from genaccel.train.processes import process_group
from genaccel.train.spec import Conduct, TrainJob
from genaccel.train.stop import Stop
from genaccel.train.volumes import Volumes
from genaccel.variant import apply

TAIL = 50
"""Last steps whose mean is the final loss: one step's loss is mostly its random diffusion step."""


def main(argv: Sequence[str] | None = None) -> None:
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = stage_parser("train", __doc__)
    parser.add_argument("--conduct", default="{}", help="JSON of settings that do not change the result: checkpoints")
    parser.add_argument("--manifest", required=True, help="manifest of the data stage")
    parser.add_argument("--checkpoints", required=True, help="folder that keeps checkpoints between attempts")
    parser.add_argument("--weights", required=True, help="averaged weights to write (.safetensors)")
    parser.add_argument("--loss", required=True, help="loss of every step to write (CSV)")
    parser.add_argument("--measurement", required=True, help="run JSON to write")
    args = parser.parse_args(argv)
    with stage_errors("train"), ExitStack() as streams:
        job, conduct = TrainJob.parse(args.spec), Conduct.parse(args.conduct)
        own_devices(job.device, job.train.processes)
        if job.train.processes > 1 and not launched():
            # While there is no group of processes yet, whose others would not wait for the first for long.
            with _checkpoints(job, args.manifest, args.checkpoints).lock():
                pass
        launch("genaccel.train", argv, job.train.processes)
        streams.enter_context(redirect_stdout(SurvivingStream(sys.stdout)))
        streams.enter_context(redirect_stderr(SurvivingStream(sys.stderr)))
        device = open_device(job.device, index=int(os.environ.get("LOCAL_RANK", "0")), threads=args.threads)
        effective = apply(job.switches, device, "train.variant", job.train.variant)
        with process_group(device) as process:
            started = time.perf_counter()
            training = _training(job, args.manifest, device, process)
            checkpoints = _checkpoints(job, args.manifest, args.checkpoints)
            if process.rank == 0:
                with checkpoints.lock():
                    resumed = _run(training, checkpoints, job, conduct)
                    _write(training, job, device, args, effective, resumed, time.perf_counter() - started)
                    checkpoints.drop_others()
            else:
                _run(training, checkpoints, job, conduct)


def _training(job: TrainJob, manifest: str, device: Device, process) -> Training:
    torch.manual_seed(job.train.seed)
    model = UNet(job.model, gradient_checkpointing=job.train.gradient_checkpointing)
    if job.train.weights:
        model.load_state_dict(load_weights(job.train.weights, job.model))
    volumes = Volumes(manifest, "train", job.model)
    schedule = Schedule(job.model.timesteps).to(device.torch)
    return Training(model.to(device.torch), job.train, job.switches, volumes, schedule, device, process)


def _checkpoints(job: TrainJob, manifest: str, folder: str) -> Checkpoints:
    weights = file_sha256(job.train.weights) if job.train.weights else None
    return Checkpoints(folder, parts_of_key(job, file_sha256(manifest), weights))


def _run(training: Training, checkpoints: Checkpoints, job: TrainJob, conduct: Conduct) -> str | None:
    """Trains to the last step; returns the key of the checkpoint that it went on from."""
    spec, rank, world = job.train, training.process.rank, training.process.world
    stop = Stop(rank)
    if world > 1:
        dist.barrier()
    found = checkpoints.load(spec.steps, conduct.accept_checkpoint)
    if found:
        training.restore(found[0])
    if rank == 0:
        _announce(training, checkpoints, job, found[1] if found else None)
    saved = time.monotonic()
    last_good = training.step_number if found else None
    progress = tqdm(
        total=spec.steps, initial=training.step_number, unit="step", desc="train", mininterval=1, disable=rank > 0,
        file=sys.stdout, dynamic_ncols=False, ncols=100,
    )  # fmt: skip
    try:
        while training.step_number < spec.steps:
            training.step()
            step = training.step_number
            if step % FLUSH == 0 or step == spec.steps:
                training.flush()
                progress.set_postfix_str(
                    f"loss {training.losses[-1]:.4f}, {training.rates[-1]:.2f} volumes/s", refresh=False
                )
            if rank > 0:
                continue
            often = conduct.checkpoint
            due = step % often.steps == 0 or time.monotonic() - saved >= often.minutes * 60
            # Read once: a signal that comes after the decision to save must not end a step that was not saved.
            stopped = stop.signal
            if due or stopped or step == spec.steps:
                checkpoints.save(step, training.state())
                saved, last_good = time.monotonic(), step
            # After the checkpoint: whatever happens to the output, the step is kept.
            progress.update()
            if stopped and step < spec.steps:
                sys.stderr.write(f"train: stopped by signal {stopped} after step {step}; the next run goes on there\n")
                sys.stderr.flush()
                os._exit(128 + stopped)
    except LossNotFinite as error:
        good = f"the last good checkpoint is step {last_good}" if last_good else "there is no checkpoint yet"
        raise SpecError(f"{error}; {good}. Lower train.learning_rate, or look at the data of that step") from None
    finally:
        progress.close()
    return found[1] if found else None


def _announce(training: Training, checkpoints: Checkpoints, job: TrainJob, key: str | None) -> None:
    spec, n = job.train, len(training.volumes)
    batch = spec.batch * spec.accumulate * training.process.world
    memory = _predicted_memory(job)
    print(
        f"train: {sum(p.numel() for p in training.model.parameters()) / 1e6:.1f} M parameters on {training.device.name}"
    )
    print(f"train: predicted peak memory {memory / 2**30:.2f} GiB a device")
    if spec.steps:
        print(
            f"train: {n} volumes, {batch} an optimizer step: {n / batch:.1f} steps an epoch; {spec.steps} steps in all "
            f"({spec.steps * batch / n:.1f} epochs)"
        )
    print(f"train: checkpoint key {checkpoints.key}")
    if key == checkpoints.key:
        print(f"train: goes on from step {training.step_number}")
    elif key:
        print(
            f"train: goes on from step {training.step_number} of checkpoint {key}, accepted by train.accept_checkpoint"
        )
    else:
        for line in checkpoints.why_afresh():
            print(f"train: starts afresh: {line}")
    sys.stdout.flush()


def _predicted_memory(job: TrainJob) -> int:
    spec, switches = job.train, job.switches
    return peak_memory(
        job.model, "train", spec.batch, switches.precision, switches.kernels, spec.gradient_checkpointing
    ).total


def _write(
    training: Training, job: TrainJob, device: Device, args, effective, resumed: str | None, seconds: float
) -> None:
    losses = training.losses
    run = Run(
        stage="train",
        model=Path(args.measurement).parent.name,
        variant=job.train.variant,
        device=device.slug,
        n_devices=job.train.processes,
        spec=job.model_dump(mode="json"),
        workload=_workload(job, args.manifest),
        provenance=provenance(
            device,
            args.code,
            precision=effective,
            processes=job.train.processes,
            # Agents of torchrun, one a node.
            nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
            micro_batch=job.train.batch,
            checkpoint=resumed,
        ),
        results=tuple(_results(training, job, device, seconds)),
    )
    with atomic_file(args.loss) as partial, open(partial, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "loss", "volumes_per_s"])
        writer.writerows(
            (i, f"{loss:.9g}", f"{rate:.6g}")
            for i, (loss, rate) in enumerate(zip(losses, training.rates, strict=True), 1)
        )
    write_run(args.measurement, run)
    save_weights(
        args.weights,
        training.average,
        {"spec_sha256": run.spec_sha256, "steps": training.step_number, "timesteps": job.model.timesteps},
    )
    print(f"train: wrote {args.weights}")


def _workload(job: TrainJob, manifest: str) -> dict:
    # Not the variant: that is what runs of one workload are compared by.
    work = job.model_dump(mode="json", exclude={"device": True, "switches": True, "train": {"variant"}})
    return work | {"manifest_sha256": file_sha256(manifest)}


def _results(training: Training, job: TrainJob, device: Device, seconds: float):
    case = {"size": "x".join(map(str, job.model.shape)), "batch": job.train.batch}
    yield Result(metric="training_time", unit="s", case=case, values=(seconds,), seed=job.train.seed)
    yield Result(
        metric="peak_memory", unit="B", case=case, values=(float(device.peak_memory_bytes()),), seed=job.train.seed
    )
    predicted = float(_predicted_memory(job))
    yield Result(metric="predicted_peak_memory", unit="B", case=case, values=(predicted,), seed=job.train.seed)
    if training.losses:
        tail = training.losses[-TAIL:]
        yield Result(
            metric="final_loss", unit="1", case=case, values=(sum(tail) / len(tail),), n=len(tail), seed=job.train.seed
        )


if __name__ == "__main__":
    main()
