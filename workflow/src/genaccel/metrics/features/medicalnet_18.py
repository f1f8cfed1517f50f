"""MedicalNet's ResNet-18 (Chen et al., Med3D: transfer learning for 3D medical image analysis, arXiv:1904.00625)."""

from __future__ import annotations

import torch

from genaccel.metrics.features._medicalnet import Layout, MedicalNet


def medicalnet_18(device: torch.device, weights: str | None, weights_sha256: str | None) -> MedicalNet:
    """The network of ``resnet_18_23dataset.pth``. Arguments and errors as ``MedicalNet``."""
    return MedicalNet("medicalnet_18", Layout("basic", (2, 2, 2, 2), "A"), weights, weights_sha256, device)
