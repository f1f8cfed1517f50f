"""Checkpoints that a killed job resumes from, under a key of everything that decides the result."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from genaccel.atomic import atomic_file, file_sha256, one_at_a_time
from genaccel.code import code
from genaccel.spec import SpecError, nearest
from genaccel.train.spec import TrainJob

KEEP = 2
"""Checkpoints kept: the newest, and the one before in case the newest cannot be read."""

CODE = ("genaccel.train.loop", "genaccel.med_ddpm.unet", "genaccel.med_ddpm.schedule")
"""Modules whose closure decides what a step computes."""

NOT_IN_KEY = {"steps", "weights"}
"""Settings of `train` that do not change its course: how far it goes, and the path of the starting weights,
whose content counts instead."""


def parts_of_key(job: TrainJob, manifest_sha256: str, weights_sha256: str | None) -> dict[str, str]:
    """Hashes of settings, data, starting weights and code, each apart so that a change can be named."""
    settings = job.model_dump(mode="json")
    settings["train"] = {k: v for k, v in settings["train"].items() if k not in NOT_IN_KEY}
    return {
        "settings": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest(),
        "data": manifest_sha256,
        "starting weights": weights_sha256 or "",
        "code": code(*CODE, job.switches.module),
    }


class Checkpoints:
    """The checkpoints of one training: ``<folder>/<key>/step-<n>.pt``.

    Args:
        folder: where checkpoints of all keys lie; no rule declares it, so Snakemake never deletes it.
        parts: what the key is made of, as ``parts_of_key`` gives it.
    """

    def __init__(self, folder: str | Path, parts: dict[str, str]) -> None:
        self.root, self.parts = Path(folder), parts
        self.key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = self.root / self.key
        self.root.mkdir(parents=True, exist_ok=True)

    def lock(self) -> AbstractContextManager[None]:
        """Keeps an orphaned job and its successor apart: waits until this process alone may write here."""
        return one_at_a_time(self.root / "lock", f"trains in {self.root}")

    def save(self, step: int, state: dict[str, Any]) -> Path:
        """Writes the state after ``step`` with its hash.

        Older checkpoints beyond ``KEEP`` go, and so do those of later steps: they could not be read, or a
        shorter training passed them over.
        """
        self.folder.mkdir(exist_ok=True)
        with atomic_file(self.folder / "key.json") as partial:
            partial.write_text(json.dumps(self.parts, indent=1, sort_keys=True) + "\n")
        path = self.folder / f"step-{step:08d}.pt"
        with atomic_file(path) as partial:
            torch.save(state, partial)
            # Before the checkpoint has its name: one without its hash never counts.
            with atomic_file(_hash_path(path)) as hash_partial:
                hash_partial.write_text(file_sha256(partial) + "\n")
        paths = self._paths(self.folder)
        kept = [path, *(p for p in paths if p < path)][:KEEP]
        for old in set(paths) - set(kept):
            old.unlink()
            _hash_path(old).unlink(missing_ok=True)
        return path

    def load(self, at_most: int, accept: str | None = None) -> tuple[dict[str, Any], str] | None:
        """The newest readable state of at most ``at_most`` steps with the key that it was written under.

        Args:
            accept: another key to go on from, ``train.accept_checkpoint``; this run's own comes first.

        Raises:
            SpecError: nothing lies under ``accept``.
        """
        for key in filter(None, (self.key, accept)):
            for path in self._paths(self.root / key):
                if int(path.stem.removeprefix("step-")) > at_most:
                    continue
                if _is_whole(path):
                    return torch.load(path, map_location="cpu", weights_only=True), key
                print(
                    f"train: {path} is damaged (its content does not match its hash); trying the one before", flush=True
                )
        if accept:
            others = [folder.name for folder in self._others()]
            raise SpecError(f"accept_checkpoint: no checkpoint {accept!r} in {self.root}; {nearest(accept, others)}")
        return None

    def why_afresh(self) -> list[str]:
        """One line for each older training here, saying what changed since."""
        lines = []
        for folder in self._others():
            paths = self._paths(folder)
            if not paths:
                continue
            try:
                then = json.loads((folder / "key.json").read_text())
            except (OSError, json.JSONDecodeError):
                then = {}
            changed = [name for name in self.parts if then.get(name) != self.parts[name]]
            lines.append(f"{' and '.join(changed)} changed since checkpoint {folder.name} ({paths[0].stem})")
        return lines

    def drop_others(self) -> None:
        """Removes what older trainings left, once this one is finished."""
        for folder in self._others():
            shutil.rmtree(folder)

    def _others(self) -> list[Path]:
        return [f for f in sorted(self.root.iterdir()) if f.is_dir() and f != self.folder]

    @staticmethod
    def _paths(folder: Path) -> list[Path]:
        return sorted(folder.glob("step-*.pt"), reverse=True)


def _hash_path(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _is_whole(path: Path) -> bool:
    try:
        return _hash_path(path).read_text().strip() == file_sha256(path)
    except OSError:
        return False
