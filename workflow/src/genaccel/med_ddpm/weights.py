"""Weights files of the UNet: published Med-DDPM checkpoints (.pt) and this workflow's own (.safetensors)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from genaccel.atomic import atomic_file
from genaccel.med_ddpm.fit import check_fit
from genaccel.med_ddpm.schedule import BUFFERS, Schedule
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.spec import SpecError

# `module.` is DataParallel's mark, `denoise_fn.` that of the published diffusion around the UNet.
_PREFIX = re.compile(r"^(module\.)?(denoise_fn\.)?(module\.)?")
_METADATA = "genaccel"
_SHOWN = 5


def load_weights(path: str | os.PathLike[str], spec: MedDDPMSpec) -> dict[str, Tensor]:
    """The UNet's state dict from a file.

    Args:
        path: a published checkpoint (its `ema` is taken, else its `model`), a bare state dict saved by
            ``torch.save``, or a ``.safetensors`` file. Nothing in it is executed.
        spec: the network it must fit.

    Returns:
        FP32 tensors on the CPU by the names of ``UNet(spec).state_dict()``.

    Raises:
        SpecError: where the file cannot be read, holds something else, or does not fit; names the keys that
            differ and the settings that would make it fit.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        state, metadata = _read_safetensors(path)
        _check_timesteps(metadata.get("timesteps"), spec, str(path))
    else:
        state = _read_torch(path)
    return {name: tensor.float().contiguous() for name, tensor in network_state(state, spec, str(path)).items()}


def network_state(checkpoint: Any, spec: MedDDPMSpec, where: str) -> dict[str, Tensor]:
    """The UNet's tensors out of what a file holds, checked against ``spec``.

    Args:
        checkpoint: a dictionary of tensors, or one that holds such a dictionary as `ema` or `model`.
        spec: the network it must fit.
        where: the file, for messages.
    """
    tensors = _tensors(checkpoint, where)
    state = {_PREFIX.sub("", name): tensor for name, tensor in tensors.items()}
    buffers = {name: state.pop(name) for name in BUFFERS if name in state}
    if "betas" in buffers:
        _check_betas(buffers["betas"], spec, where)
    check_fit(state, spec, where)
    return state


def save_weights(path: str | os.PathLike[str], state: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Writes a state dict as safetensors, whole or not at all; equal contents give equal bytes.

    Args:
        path: the file, ``.safetensors``.
        state: tensors by name, on any device.
        metadata: plain values to keep with them; `timesteps` is compared with the spec on loading.
    """
    # One entry: safetensors writes several in an order that changes from run to run.
    text = json.dumps(dict(metadata), sort_keys=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    with atomic_file(path) as partial:
        save_file(tensors, partial, metadata={_METADATA: text})


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What ``save_weights`` kept with the tensors; empty for other programs' files."""
    return _read_safetensors(Path(path))[1]


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    _check_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get(_METADATA, "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118 - no mapping
    except (SafetensorError, ValueError, OSError) as error:
        raise SpecError(f"{path}: not a whole safetensors file ({_first_line(error)}); copy it again") from None


def _read_torch(path: Path) -> Any:
    _check_file(path)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    # Damaged pickles raise nearly any exception.
    except Exception as error:
        if "Unsupported" in str(error) and "GLOBAL" in str(error):
            raise SpecError(
                f"{path}: holds Python objects besides tensors, which are not loaded since they can run code; "
                "where you trust it, save its state dict alone: torch.save(model.state_dict(), ...)"
            ) from None
        raise SpecError(
            f"{path}: not a whole PyTorch checkpoint ({_first_line(error)}); it has {path.stat().st_size:,} bytes: "
            "compare with the source and copy it again"
        ) from None


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise SpecError(f"{path}: no such weights file; correct train.weights, or leave it null to start at random")
    with open(path, "rb") as file:
        start = file.read(256).lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise SpecError(f"{path}: is a web page, not weights; download the file that the page offers")
    if start.startswith(b"version https://git-lfs"):
        raise SpecError(f"{path}: is a Git LFS pointer, not weights; run `git lfs pull` where it came from")


def _tensors(checkpoint: Any, where: str) -> dict[str, Tensor]:
    if isinstance(checkpoint, Mapping):
        for name in ("ema", "model", "state_dict"):
            if isinstance(checkpoint.get(name), Mapping):
                return _tensors(checkpoint[name], f"{where} [{name}]")
        if checkpoint and all(isinstance(value, Tensor) for value in checkpoint.values()):
            return dict(checkpoint)
        found = ", ".join(f"`{key}`: {type(value).__name__}" for key, value in list(checkpoint.items())[:_SHOWN])
        found = f"a dictionary of {found}" if found else "an empty dictionary"
    else:
        found = f"a {type(checkpoint).__name__}"
    raise SpecError(f"{where}: holds {found}; expected a state dict of tensors, bare or under `ema` or `model`")


def _check_betas(betas: Tensor, spec: MedDDPMSpec, where: str) -> None:
    _check_timesteps(len(betas), spec, where)
    expected = Schedule(spec.timesteps).betas
    wrong = int((~torch.isclose(betas.float(), expected, rtol=1e-4, atol=1e-7)).sum())
    if wrong:
        raise SpecError(
            f"{where}: {wrong} of its {len(betas)} betas differ from the cosine schedule of models.<name>.timesteps = "
            f"{spec.timesteps}, the only schedule here; use weights that were trained on it"
        )


def _check_timesteps(timesteps: int | None, spec: MedDDPMSpec, where: str) -> None:
    if timesteps is not None and timesteps != spec.timesteps:
        raise SpecError(
            f"{where}: was trained with {timesteps} steps of diffusion, but models.<name>.timesteps is "
            f"{spec.timesteps}; set models.<name>.timesteps: {timesteps}"
        )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
