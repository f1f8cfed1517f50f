"""Why a variant is not measured on a device, if it is not."""

from __future__ import annotations

from collections.abc import Mapping

from genaccel.device import Device
from genaccel.device.base import INERT
from genaccel.variant import Variant


def unsupported(variant: Variant, device: Device, plainer: Mapping[str, Variant]) -> str | None:
    """The reason why the device cannot run a variant as itself; None where it can.

    A switch that the device does not have at all (cuDNN's benchmark on a CPU) is no reason by itself: BF16 runs
    without. It is one where nothing else tells the variant from one that ships.

    Args:
        plainer: variants that ship, by name, which this one may come down to.
    """
    lacking = {need: reason for need in variant.needs if (reason := device.lacks(need))}
    left = dict[str, object]()
    if "tf32" in lacking:
        left |= {"matmul": "ieee", "convolution": "ieee"}
    if "cudnn_benchmark" in lacking:
        left |= {"cudnn_benchmark": False}
    remaining = variant.model_copy(update=left)
    same = next((name for name, other in plainer.items() if left and other == remaining), None)
    grave = [reason for need, reason in lacking.items() if need not in INERT]
    if not grave and not same:
        return None
    text = "; ".join(grave or lacking.values())
    return f"{text}: it would be the same as {same}" if same else text
