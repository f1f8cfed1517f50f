"""Training from its command line, killed and resumed."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tqdm import tqdm

from genaccel.measurement import read_run
from genaccel.train.__main__ import main

PATIENCE = 1800  # seconds: a run that hangs should fail some day, and one on a busy machine should not
ATTEMPTS = 10


def weights(arguments: list[str]) -> dict[str, torch.Tensor]:
    return load_file(arguments[arguments.index("--weights") + 1])


def losses(arguments: list[str]) -> list[tuple[str, str]]:
    with open(arguments[arguments.index("--loss") + 1]) as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def start(arguments: list[str], **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "genaccel.train", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        bufsize=0,
        env=os.environ | environment,
    )


def kill(arguments: Callable[[str], list[str]], at: int, number: int) -> list[str]:
    """The command line of a training that a signal ended after its checkpoint of a step, or (0) before the first.

    On a busy machine the training may be over before this process gets to see that checkpoint: then another starts.
    """
    for attempt in range(ATTEMPTS):
        killed = arguments(f"killed-{attempt}")
        checkpoints = killed.index("--checkpoints") + 1
        killed[checkpoints] += f"-killed-{attempt}"
        process, seen = start(killed), ""
        while "train: checkpoint key" not in seen:
            piece = process.stdout.readline()
            assert piece, f"training ended before it could be killed:\n{seen}"
            seen += piece
        while process.poll() is None and newest(Path(killed[checkpoints])) < at:
            time.sleep(0.002)
        process.send_signal(number)
        seen += process.communicate(timeout=PATIENCE)[0]
        if process.returncode == 0:
            continue
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), seen
        return killed
    pytest.fail(f"no signal ended any of {ATTEMPTS} trainings:\n{seen}")


def newest(checkpoints: Path) -> int:
    """The last step with a whole checkpoint; 0 without. The checkpoint gets its name after its hash has one."""
    return max((int(path.stem.removeprefix("step-")) for path in checkpoints.glob("*/step-*.pt")), default=0)


def test_training_writes_weights_loss_and_run(job, arguments, capsys):
    given = arguments(job(steps=12))
    main(given)
    shown = capsys.readouterr().out
    assert "3 volumes, 2 an optimizer step: 1.5 steps an epoch; 12 steps in all (8.0 epochs)" in shown
    assert "predicted peak memory" in shown
    assert [step for step, _ in losses(given)] == [str(i) for i in range(1, 13)]
    run = read_run(given[given.index("--measurement") + 1])
    assert {r.metric for r in run.results} == {"training_time", "peak_memory", "predicted_peak_memory", "final_loss"}
    assert run.spec["train"]["steps"] == 12
    assert {"matmul": "ieee", "convolution": "ieee", "autocast": "off"}.items() <= run.provenance["precision"].items()
    assert run.variant == "fp32_strict"


def test_the_same_settings_give_the_same_weights(job, arguments, manifest):
    first, second = arguments(job(), "first"), arguments(job(), "second")
    second[second.index("--checkpoints") + 1] += "-other"
    main(first)
    main(second)
    assert equal(weights(first), weights(second))


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"learning_rate": 0.01}, {"batch": 1}, {"ema": {"start": 2, "decay": 0.5}}, {"offset_noise": 0.2}],
)
def test_other_settings_give_other_weights(job, arguments, change):
    first, second = arguments(job(), "first"), arguments(job(**change), "second")
    main(first)
    main(second)
    assert not equal(weights(first), weights(second))


def test_accumulating_two_volumes_is_a_batch_of_two(job, arguments, tiny_model, monkeypatch):
    # Dropout draws by batch, so it must be off for the two to agree.
    plain = tiny_model.model_copy(update={"dropout": 0.0})
    batch = job(steps=3).model_copy(update={"model": plain})
    accumulated = job(steps=3, batch=1, accumulate=2).model_copy(update={"model": plain})
    first, second = arguments(batch, "first"), arguments(accumulated, "second")
    main(first)
    main(second)
    a, b = weights(first), weights(second)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-3, atol=1e-4)


def test_two_processes_train_as_one_with_twice_the_batch(job, arguments, tiny_model):
    plain = tiny_model.model_copy(update={"dropout": 0.0})
    alone = arguments(job(steps=3, batch=2).model_copy(update={"model": plain}), "alone")
    together = arguments(job(steps=3, batch=1, processes=2).model_copy(update={"model": plain}), "together")
    main(alone)
    done = start(together)
    output = done.communicate(timeout=PATIENCE)[0]
    assert done.returncode == 0, output
    a, b = weights(alone), weights(together)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-3, atol=1e-4)
    assert read_run(together[together.index("--measurement") + 1]).n_devices == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_training_resumes_to_the_bits_of_an_uninterrupted_one(job, arguments, capsys, number):
    settings, at = job(steps=30), random.choice([0, 4, 8, 12, 16, 20])
    whole = arguments(settings, "whole")
    main(whole)
    killed = kill(lambda out: arguments(settings, out, conduct='{"checkpoint": {"steps": 4}}'), at, number)
    capsys.readouterr()
    main(killed)
    assert "goes on from step" in capsys.readouterr().out or (number == signal.SIGKILL and at == 0)
    assert equal(weights(whole), weights(killed))
    assert losses(whole) == losses(killed)


def test_after_a_change_of_data_it_starts_afresh_and_says_so(job, arguments, manifest, capsys):
    main(arguments(job()))
    content = json.loads(manifest.read_text())
    content["dataset"] = "another"
    manifest.write_text(json.dumps(content))
    main(arguments(job(), "second"))
    assert "starts afresh: data changed since checkpoint" in capsys.readouterr().out


def test_after_a_change_of_code_it_starts_afresh_and_says_so(job, arguments, monkeypatch, capsys):
    main(arguments(job()))
    monkeypatch.setattr("genaccel.train.checkpoint.code", lambda *entries: "genaccel.train.loop@edited")
    main(arguments(job(), "second"))
    assert "starts afresh: code changed since checkpoint" in capsys.readouterr().out


def test_an_accepted_checkpoint_spares_the_steps_and_is_recorded(job, arguments, monkeypatch, capsys):
    first = arguments(job(steps=4))
    main(first)
    key = re.search(r"checkpoint key (\w+)", capsys.readouterr().out).group(1)
    monkeypatch.setattr("genaccel.train.checkpoint.code", lambda *entries: "genaccel.train.loop@edited")
    second = arguments(job(steps=6), "second", conduct=json.dumps({"accept_checkpoint": key}))
    main(second)
    assert f"goes on from step 4 of checkpoint {key}" in capsys.readouterr().out
    assert read_run(second[second.index("--measurement") + 1]).provenance["parallelism"]["checkpoint"] == key


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_job_keeps_the_step_though_nobody_reads_its_output(job, arguments, tmp_path, number):
    given = arguments(job(steps=100_000), conduct='{"checkpoint": {"steps": 100000}}')
    command = [sys.executable, "-u", "-m", "genaccel.train", *given]
    shell = f"{shlex.join(command)} 2>&1 | tee {shlex.quote(str(tmp_path / 'log'))}"
    process = subprocess.Popen(["bash", "-c", shell], stdout=subprocess.PIPE, text=True, start_new_session=True)
    seen = ""
    while not re.search(r"\b[1-9]\d*/100000", seen):
        piece = process.stdout.read(1)
        assert piece, f"training ended by itself:\n{seen}"
        seen += piece
    os.killpg(process.pid, number)
    process.communicate(timeout=PATIENCE)
    until = time.monotonic() + PATIENCE
    while not (found := list((tmp_path / "checkpoints").glob("*/step-*.sha256"))) and time.monotonic() < until:
        time.sleep(0.1)
    assert len(found) == 1


def test_a_signal_after_the_decision_to_save_does_not_end_an_unsaved_step(job, arguments, tmp_path, monkeypatch):
    def update(progress: tqdm, n: int = 1) -> None:
        if not sent:
            sent.append(signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)

    def leave(status: int) -> None:
        raise InterruptedError(status)

    sent: list[int] = []
    monkeypatch.setattr(tqdm, "update", update)
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(InterruptedError):
        main(arguments(job(steps=50), conduct='{"checkpoint": {"steps": 1000}}'))
    assert [path.stem for path in (tmp_path / "checkpoints").glob("*/step-*.sha256")] == ["step-00000002"]


def test_an_accepted_checkpoint_does_not_bring_back_its_learning_rate(job, arguments, capsys):
    main(arguments(job(steps=4, learning_rate=0.5)))
    key = re.search(r"checkpoint key (\w+)", capsys.readouterr().out).group(1)
    conduct = json.dumps({"accept_checkpoint": key})
    slow = arguments(job(steps=6, learning_rate=1e-30), "slow", conduct)
    main(slow)
    state = torch.load(
        next((Path(slow[slow.index("--checkpoints") + 1])).glob("*/step-00000006.pt")), weights_only=True
    )
    assert {group["lr"] for group in state["optimizer"]["param_groups"]} == {1e-30}


def test_an_accepted_checkpoint_of_another_network_is_refused(job, arguments, tiny_model, capsys):
    main(arguments(job()))
    key = re.search(r"checkpoint key (\w+)", capsys.readouterr().out).group(1)
    wider = job().model_copy(update={"model": tiny_model.model_copy(update={"base_channels": 64})})
    with pytest.raises(SystemExit):
        main(arguments(wider, "second", json.dumps({"accept_checkpoint": key})))
    assert "the checkpoint is of another network" in capsys.readouterr().err


def test_a_longer_training_goes_on_where_a_shorter_one_ended(job, arguments, capsys):
    main(arguments(job(steps=4)))
    longer, whole = arguments(job(steps=8), "longer"), arguments(job(steps=8), "whole")
    whole[whole.index("--checkpoints") + 1] += "-other"
    main(longer)
    assert "goes on from step 4" in capsys.readouterr().out
    main(whole)
    assert equal(weights(longer), weights(whole))


def test_a_loss_that_turns_nan_stops_with_the_step_and_the_last_good_checkpoint(job, arguments, manifest, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments(job(steps=40, learning_rate=1e30)))
    assert stopped.value.code == 1
    assert re.search(
        r"train: the loss is (nan|inf) at step \d+; (the last good|there is no) checkpoint", capsys.readouterr().err
    )


def test_weights_can_be_gone_on_from_or_used_as_they_are(job, arguments):
    first = arguments(job())
    main(first)
    given = first[first.index("--weights") + 1]
    as_they_are = arguments(job(steps=0, weights=given), "as-they-are")
    further = arguments(job(steps=1, weights=given, ema={"start": 2}), "further")
    main(as_they_are)
    main(further)
    assert equal(weights(first), weights(as_they_are))
    assert not equal(weights(first), weights(further))


def test_weights_used_as_they_are_need_no_training_volumes(job, arguments, manifest):
    first = arguments(job())
    main(first)
    manifest.write_text(manifest.read_text().replace('"train"', '"test"'))
    second = arguments(job(steps=0, weights=first[first.index("--weights") + 1]), "second")
    main(second)
    assert equal(weights(first), weights(second))


def test_weights_stay_fp32_in_channels_last_with_lower_precision(job, arguments):
    given = arguments(job(variant="bf16_channels_last"))
    main(given)
    assert {value.dtype for value in weights(given).values()} == {torch.float32}


def test_a_variant_that_the_device_lacks_something_for_is_a_clear_error(job, arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments(job(variant="tf32")))
    error = capsys.readouterr().err
    assert error.startswith("train: train.variant: tf32: a CPU has no TF32 tensor cores; choose another variant")


def test_runs_of_two_variants_are_of_one_workload(job, arguments):
    runs = []
    for variant in ("fp32_strict", "fp32_strict_benchmark"):
        given = arguments(job(steps=1, ema={}, variant=variant), variant)
        main(given)
        runs.append(read_run(given[given.index("--measurement") + 1]))
    assert runs[0].workload_sha256 == runs[1].workload_sha256
    assert runs[0].spec_sha256 != runs[1].spec_sha256


def test_gradient_checkpointing_changes_no_weight(job, arguments):
    first, second = arguments(job(), "first"), arguments(job(gradient_checkpointing=True), "second")
    main(first)
    main(second)
    a, b = weights(first), weights(second)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-4, atol=1e-6)
