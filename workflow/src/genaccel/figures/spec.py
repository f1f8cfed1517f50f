"""Settings of the `figures` stage."""

from __future__ import annotations

from typing import Literal

from genaccel.spec import Spec, setting


class FiguresSpec(Spec):
    """How figures look; nothing here is read by any other stage."""

    format: Literal["png", "svg", "pdf"] = setting("png", "file format", example="svg")
    dpi: int = setting(150, "resolution of raster formats", example=100, ge=30, le=1200)
    subjects: int = setting(4, "subjects in a montage, at most", example=2, ge=1)
    smoothing: int = setting(20, "steps of the running mean of the loss curve", example=10, ge=1)


class FigureJob(Spec):
    """What a figure's rule passes; `title` names what the figure shows, e.g. the model."""

    title: str
    figures: FiguresSpec
