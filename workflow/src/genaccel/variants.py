"""The variants by name: those that ship, and those that a study defines.

Stages import `Variant` from `genaccel.variant`, never this module: a new entry here must rerun nothing that ran before.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from genaccel.spec import SpecError, nearest
from genaccel.variant import STRICT, Variant

_STRICT: dict[str, Any] = STRICT.model_dump()
_TF32 = _STRICT | {"matmul": "tf32", "convolution": "tf32"}
_BF16 = _STRICT | {"autocast": "bf16", "weights": "bf16", "cudnn_benchmark": True}

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        name: Variant.build(switches, f"variant {name}")
        for name, switches in {
            "fp32_strict": _STRICT,
            "fp32_strict_benchmark": _STRICT | {"cudnn_benchmark": True},
            # What users get who set nothing: TF32 in cuDNN's convolutions, not in matrix products.
            "pytorch_default": _STRICT | {"convolution": "tf32"},
            "tf32": _TF32,
            "tf32_benchmark": _TF32 | {"cudnn_benchmark": True},
            "tf32_channels_last": _TF32 | {"cudnn_benchmark": True, "memory_format": "channels_last"},
            "bf16": _BF16,
            "bf16_channels_last": _BF16 | {"memory_format": "channels_last"},
            "bf16_compiled": _BF16 | {"compile": "default"},
            "bf16_channels_last_compiled": _BF16 | {"memory_format": "channels_last", "compile": "default"},
            "fp16": _BF16 | {"autocast": "fp16", "weights": "fp16", "grad_scaler": True},
            "fast": _BF16 | {"memory_format": "channels_last", "cuda_graphs": True, "kernels": "fused"},
        }.items()
    }
)
"""The variants that ship. Adding one is adding its line here; a study defines its own in its config."""

BASELINES = ("fp32_strict", "fp32_strict_benchmark", "pytorch_default")
"""Always measured beside whatever a config selects: the papers' two, and what users have."""


def variant(name: str, defined: Mapping[str, Variant] = MappingProxyType({})) -> Variant:
    """A variant by name.

    Args:
        defined: a study's own ones, which may not take a shipped name.

    Raises:
        SpecError: unknown, with the nearest valid name.
    """
    known = {**defined, **VARIANTS}
    if name not in known:
        raise SpecError(f"unknown variant {name!r}; {nearest(name, known)}")
    return known[name]


def define(definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, Variant]:
    """A study's own variants, from its block `variants`.

    Args:
        definitions: by name: ``like``, a variant that ships, and the switches that differ from it; without ``like``
            every switch.

    Raises:
        SpecError: a name that ships, an unknown ``like`` or switch, or switches that contradict each other.
    """
    defined = {}
    for name, switches in definitions.items():
        where = f"variants.{name}"
        if name in VARIANTS:
            raise SpecError(f"{where}: this name ships with genaccel and keeps its meaning; name yours otherwise")
        base = {}
        if (like := switches.get("like")) is not None:
            if like not in VARIANTS:
                raise SpecError(f"{where}.like: unknown variant {like!r}; {nearest(like, VARIANTS)}")
            base = VARIANTS[like].model_dump()
        defined[name] = Variant.build(base | {k: v for k, v in switches.items() if k != "like"}, where)
    return defined


def plainer(name: str, switches: Variant) -> dict[str, Variant]:
    """The variants that ship and that this one comes down to on a device without TF32, without cuDNN, or both."""
    tf32 = {"matmul": "ieee", "convolution": "ieee"}
    cudnn = {"cudnn_benchmark": False}
    left = [switches.model_copy(update=lost) for lost in (tf32, cudnn, tf32 | cudnn)]
    return {other: known for other, known in VARIANTS.items() if other != name and known in left and known != switches}
