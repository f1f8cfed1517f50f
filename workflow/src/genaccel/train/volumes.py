"""Training volumes in the model's layout, read ahead of the step that needs them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from genaccel.data.manifest import load_subject, read_manifest
from genaccel.med_ddpm.layout import encode_condition, to_model
from genaccel.med_ddpm.spec import MedDDPMSpec

CACHE_BYTES = 4 * 2**30


class Volumes:
    """The volumes of one split as ``(image, condition)`` tensors of shape (C, D, H, W), float32.

    Args:
        manifest: the data stage's manifest.
        split: ``train``, ``validation`` or ``test``.
        model: gives layout and channel order.
    """

    def __init__(self, manifest: str | Path, split: str, model: MedDDPMSpec) -> None:
        self.path, self.model = Path(manifest), model
        self.manifest = read_manifest(manifest)
        self.subjects = [s for s in self.manifest.subjects if s.split == split]
        voxels = torch.Size(model.shape).numel()
        fits = len(self.subjects) * voxels * 4 * model.in_channels <= CACHE_BYTES
        self._cache: dict[int, tuple[Tensor, Tensor]] | None = {} if fits else None
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="volumes")
        self._ahead: dict[int, Future[tuple[Tensor, Tensor]]] = {}

    def __len__(self) -> int:
        return len(self.subjects)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if self._cache is not None and index in self._cache:
            return self._cache[index]
        ahead = self._ahead.pop(index, None)
        pair = ahead.result() if ahead else self._load(index)
        if self._cache is not None:
            self._cache[index] = pair
        return pair

    def read_ahead(self, indices: Iterable[int]) -> None:
        """Starts reading volumes that will be asked for soon."""
        for index in indices:
            if index not in self._ahead and not (self._cache and index in self._cache):
                self._ahead[index] = self._pool.submit(self._load, index)

    def _load(self, index: int) -> tuple[Tensor, Tensor]:
        image, labels = load_subject(self.path, self.subjects[index])
        condition = encode_condition(torch.from_numpy(labels), self.manifest.channels, self.model)
        return to_model(torch.from_numpy(image), self.model.axes).contiguous(), condition
