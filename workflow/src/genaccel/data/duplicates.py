"""Finds images that two splits share under different names."""

from __future__ import annotations

from collections.abc import Sequence

from genaccel.data.manifest import Subject


def note_duplicates(subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects, with a warning at each image that is byte for byte another split's.

    No fault, unlike one path in two cells: a person may try the workflow on copies. But what is trained on and
    scored alike is remembered, not generated. Masks do not count: a template's may serve many.
    """
    owners: dict[str, list[Subject]] = {}
    for subject in subjects:
        for sha256 in _images(subject).values():
            owners.setdefault(sha256, []).append(subject)
    noted = []
    for subject in subjects:
        warnings = [
            f"its {modality} is byte for byte that of {other.subject}, which is in the split `{other.split}`"
            for modality, sha256 in _images(subject).items()
            for other in owners[sha256]
            if other.split != subject.split
        ]
        noted.append(subject.model_copy(update={"warnings": (*subject.warnings, *warnings[:1])}))
    return noted


def _images(subject: Subject) -> dict[str, str]:
    return {column: source.sha256 for column, source in subject.sources.items() if column != "mask"}
