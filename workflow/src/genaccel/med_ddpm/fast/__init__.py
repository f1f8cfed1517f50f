"""The fast path: Med-DDPM's UNet on kernels of our own around the library's convolutions, BF16 and channels-last."""

from __future__ import annotations

from genaccel.med_ddpm.fast.memory import denoising_memory, training_memory
from genaccel.med_ddpm.fast.sampling import fused_network
from genaccel.med_ddpm.fast.training import FusedTraining

__all__ = ["FusedTraining", "denoising_memory", "fused_network", "training_memory"]
