"""The devices that a study measures, each of which every measuring stage runs on."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from genaccel.spec import Spec

Kind = Literal["auto", "cpu", "cuda", "hpu"]


class MeasuredDevice(Spec):
    """A device model that a study's jobs can be sent to. A plain name stands for its kind and its ``gpu_model``."""

    name: str = Field(pattern=r"^[a-z0-9-]+$", description="folder of its results, results/<study>/optimize/<name>/")
    kind: Kind = Field(default="cuda", description="as in device")
    gpu_model: str | None = Field(default=None, description="what a profile sends its jobs by; null: any device")

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        kind = "cpu" if given == "cpu" else "hpu" if given.startswith("gaudi") else "cuda"
        return {"name": given, "kind": kind, "gpu_model": None if kind == "cpu" else given}

    @field_validator("gpu_model")
    @classmethod
    def _model(cls, model: str | None) -> str | None:
        if model is not None and not model.replace("_", "").replace(".", "").isalnum():
            raise ValueError(f"{model!r} holds more than letters, digits, `_` and `.`, which no scheduler takes")
        return model
