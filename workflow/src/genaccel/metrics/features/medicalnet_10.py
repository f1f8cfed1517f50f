"""MedicalNet's ResNet-10 (Chen et al., Med3D: transfer learning for 3D medical image analysis, arXiv:1904.00625)."""

from __future__ import annotations

import torch

from genaccel.metrics.features._medicalnet import Layout, MedicalNet


def medicalnet_10(device: torch.device, weights: str | None, weights_sha256: str | None) -> MedicalNet:
    """The network of ``resnet_10_23dataset.pth``. Arguments and errors as ``MedicalNet``."""
    return MedicalNet("medicalnet_10", Layout("basic", (1, 1, 1, 1), "B"), weights, weights_sha256, device)
