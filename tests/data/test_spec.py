"""Settings of the stage that contradict themselves are caught while parsing."""

from __future__ import annotations

import pytest

from genaccel.data.spec import DataJob, DataSpec, SimulateJob
from genaccel.spec import SpecError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modalities": ["t1", "t1"]}, "must be different columns"),
        ({"modalities": ["t1", "mask"]}, "none of them subject, mask or split"),
        ({"modalities": ["t1/x"]}, r"modalities\.0"),
        ({"fit": "crop_pad", "spacing": 2.0}, "crop_pad keeps the voxels as they are"),
        ({"labels": {"brain": []}}, r"labels\.brain"),
        ({"labels": {"tumour": [1]}, "derive_brain": "nonzero"}, "needs a channel `brain`"),
        ({"ignore_labels": [2]}, r"\[2\] also make a channel"),
        ({"on_error": "skipp"}, "did you mean `skip`"),
        ({"percentiles": [99, 1]}, "are not two rising numbers"),
        ({"split": {"train": 0.5, "test": 0.4}}, "must add up to 1"),
        ({"simulated": {"tumour_radius": [9, 3]}}, "write the smaller radius first"),
        (
            {"labels": {"tumour": [1], "brain": [4]}, "remap": {"4": 3}},
            "remap renames 4 to 3, so no voxel of channel `brain`",
        ),
    ],
)
def test_a_contradiction_names_its_key(settings, message):
    with pytest.raises(SpecError, match=message):
        DataSpec.build(settings, where="data.x")


def test_raw_brats_2021_settings_hold():
    DataSpec.build({"labels": {"tumour_3": [3], "brain": [4]}, "remap": {"4": 3}, "derive_brain": "nonzero"})


def test_a_job_survives_the_command_line():
    job = DataJob(dataset="x", data=DataSpec.build({"remap": {"4": 3}, "shape": [48, 48, 32]}))
    assert DataJob.parse(job.canonical()) == job


def test_simulation_hangs_on_its_own_keys_only():
    one, two = (SimulateJob.of(DataSpec.build({"shape": [side] * 3})) for side in (16, 32))
    assert one == two
    assert SimulateJob.parse(one.canonical()) == one
