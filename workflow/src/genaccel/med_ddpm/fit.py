"""Whether a state dict fits a network, and which settings would make it fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.spec import SpecError

_SHOWN = 5


def check_fit(state: Mapping[str, Tensor], spec: MedDDPMSpec, where: str) -> None:
    """Compares names and shapes with those of ``UNet(spec)``.

    Raises:
        SpecError: with up to five keys of each kind that differ (missing, unexpected, other shape), their number,
            and the settings to change.
    """
    with torch.device("meta"):
        expected = UNet(spec).state_dict()
    shared = [name for name in expected if name in state]
    faults = {
        "missing": [name for name in expected if name not in state],
        "unexpected": [name for name in state if name not in expected],
        "of another shape": [
            f"{name} {list(state[name].shape)}, expected {list(expected[name].shape)}"
            for name in shared
            if state[name].shape != expected[name].shape
        ],
    }
    if any(faults.values()):
        differences = "; ".join(f"{len(names)} {kind}: {_listed(names)}" for kind, names in faults.items() if names)
        raise SpecError(
            f"{where}: does not fit the network of models.<name>, which has {len(expected)} keys; {differences}. "
            f"{_remedy(state, spec)}"
        )


def settings_of(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """The settings that give a network with these tensors, by their keys in the config.

    Raises:
        KeyError: where the tensors are not those of a Med-DDPM UNet.
    """
    base = state["time_embed.0.weight"].shape[1]
    images = state["out.2.weight"].shape[0]
    levels: list[list[int]] = [[]]
    attention = 0
    block = 1
    while True:
        if f"input_blocks.{block}.0.op.weight" in state:
            levels.append([])
        elif (name := f"input_blocks.{block}.0.in_layers.2.weight") in state:
            levels[-1].append(state[name].shape[0])
            if f"input_blocks.{block}.1.qkv.weight" in state:
                attention = 2 ** (len(levels) - 1)
        else:
            break
        block += 1
    if not all(levels):
        raise KeyError(f"input_blocks.{block}")
    return {
        "models.<name>.base_channels": base,
        "models.<name>.channel_multipliers": [widths[-1] // base for widths in levels],
        "models.<name>.num_res_blocks": len(levels[0]),
        "models.<name>.attention_downsampling": attention,
        "number of data.<name>.modalities": images,
        "number of models.<name>.condition channels": state["input_blocks.0.0.weight"].shape[1] - images,
    }


def _remedy(state: Mapping[str, Tensor], spec: MedDDPMSpec) -> str:
    try:
        fitting = settings_of(state)
    except (KeyError, IndexError):
        return "The file holds no whole Med-DDPM UNet; use another one"
    now = {
        "models.<name>.base_channels": spec.base_channels,
        "models.<name>.channel_multipliers": list(spec.channel_multipliers),
        "models.<name>.num_res_blocks": spec.num_res_blocks,
        "models.<name>.attention_downsampling": _attention(spec),
        "number of data.<name>.modalities": len(spec.image),
        "number of models.<name>.condition channels": len(spec.condition),
    }
    changes = [f"{key}: {value} (now {now[key]})" for key, value in fitting.items() if value != now[key]]
    if changes:
        return "It would fit with " + ", ".join(changes)
    return "Its settings are those of the config, so keys were renamed or lost: restore them or copy the file again"


def _attention(spec: MedDDPMSpec) -> int:
    levels = [2**level for level in range(len(spec.channel_multipliers))]
    return spec.attention_level if spec.attention_level in levels else 0


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
