"""Simulated subjects."""

from __future__ import annotations

import importlib.util

import nibabel as nib
import numpy as np
import pytest
from scipy import ndimage

from genaccel.data.__main__ import main as prepare
from genaccel.data.faults import InputFault
from genaccel.data.manifest import read_manifest
from genaccel.data.samples import read_samples
from genaccel.data.simulate.__main__ import main
from genaccel.data.simulate.fields import smooth_field
from genaccel.data.simulate.subject import label_numbers, simulate_subject, warp
from genaccel.data.simulate.template import Template, load_template
from genaccel.data.simulate.tumour import shells, tumour_rank
from genaccel.data.spec import DataJob, DataSpec, SimulateJob

BRATS = {"tumour_1": [1], "tumour_2": [2], "tumour_3": [3], "brain": [4]}


@pytest.fixture(scope="module")
def template():
    return load_template(8.0)


def job(subjects=2, **settings) -> SimulateJob:
    simulated = {"subjects": subjects, "spacing": 8.0} | settings.pop("simulated", {})
    return SimulateJob.of(DataSpec.build({"simulated": simulated} | settings))


def read(folder, name):
    return np.asarray(nib.load(folder / f"{name}.nii.gz").dataobj)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Two subjects with the default labels, on disk."""
    out = tmp_path_factory.mktemp("simulated") / "out"
    main(["--spec", job().canonical(), "--out", str(out)])
    return out


def test_the_folder_is_a_data_set(simulated):
    samples = read_samples(simulated / "samples.tsv", ["t1"])
    assert [sample.subject for sample in samples] == ["sim-0000", "sim-0001"]
    assert samples[0].images["t1"] == simulated / "sim-0000_t1.nii.gz"


def test_files_and_table_say_that_they_are_simulated(simulated):
    assert (simulated / "samples.tsv").read_text().startswith("# Simulated")
    assert b"simulated" in nib.load(simulated / "sim-0000_t1.nii.gz").header["descrip"].item()


def test_the_image_is_zero_exactly_outside_the_mask(simulated):
    assert np.array_equal(read(simulated, "sim-0000_t1") > 0, read(simulated, "sim-0000_mask") > 0)


def test_subjects_differ(simulated):
    for what in ("t1", "mask"):
        assert not np.array_equal(read(simulated, f"sim-0000_{what}"), read(simulated, f"sim-0001_{what}"))


def test_more_subjects_leave_the_earlier_ones_byte_for_byte_the_same(simulated, tmp_path):
    main(["--spec", job(subjects=3).canonical(), "--out", str(tmp_path / "more")])
    for path in simulated.glob("*.nii.gz"):
        assert (tmp_path / "more" / path.name).read_bytes() == path.read_bytes()


def test_another_seed_gives_another_subject(template):
    one, two = (simulate_subject(job(simulated={"seed": seed}), template, 0) for seed in (0, 1))
    assert not np.array_equal(one[0], two[0])


def test_a_further_modality_leaves_the_others_as_they_were(template):
    one, two = (simulate_subject(job(modalities=names), template, 0) for names in (["t1"], ["t1", "t2"]))
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1]["t1"], two[1]["t1"])


def test_t2_inverts_the_contrast_of_t1(template):
    maps = template.maps
    _, images = simulate_subject(job(modalities=["t1", "t2"], simulated={"warp": 0.0}), template, 0)
    fluid, white = (maps[index] > 0.9 * maps[index].max() for index in (1, 3))
    assert images["t1"][white].mean() > images["t1"][fluid].mean()
    assert images["t2"][white].mean() < images["t2"][fluid].mean()


def test_no_warp_leaves_the_template_as_it_is(template):
    assert np.allclose(warp(np.random.default_rng(0), template, 0.0), template.maps, atol=1e-6)


def test_the_warp_is_as_strong_as_asked():
    shape, spacing = (40, 40, 40), 4.0
    place = np.indices(shape) * spacing
    ruler = Template(np.stack([np.ones(shape), *place, np.zeros(shape)]).astype(np.float32), np.eye(4), spacing)
    inner = np.s_[:, 5:-5, 5:-5, 5:-5]
    strengths = []
    for seed in range(4):
        moved = warp(np.random.default_rng(seed), ruler, 3.0)[1:4] - place
        strengths.append(np.sqrt(np.mean(np.sum(moved[inner] ** 2, axis=0))))
    assert np.mean(strengths) == pytest.approx(3.0, rel=0.15)


def test_a_field_is_smooth_over_its_lattice():
    field = smooth_field(np.random.default_rng(0), (40, 40, 40), 2.0, 40.0)
    assert max(np.abs(np.diff(field, axis=axis)).max() for axis in range(3)) < 0.3


@pytest.mark.parametrize("seed", range(5))
def test_a_tumour_lies_in_the_brain_in_one_piece_of_the_size_asked(seed):
    brain = np.linalg.norm(np.indices((40, 40, 40)) - 19.5, axis=0) < 18
    rank = tumour_rank(np.random.default_rng(seed), brain, 2.0, (10.0, 10.0))
    tumour = rank < 1
    _, pieces = ndimage.label(tumour, ndimage.generate_binary_structure(3, 3))
    assert not tumour[~brain].any()
    assert pieces == 1
    assert tumour.sum() * 8 == pytest.approx(4 / 3 * np.pi * 1000, rel=0.01)


def test_brats_labels_nest_as_in_brats():
    rank = np.array([0.1, 0.4, 0.8, 1.0])
    assert shells(rank, (1, 2, 3)).tolist() == [1, 3, 2, 0]
    assert shells(rank, (7,)).tolist() == [7, 7, 7, 0]


def test_every_label_that_a_channel_names_is_there(template):
    mask, _ = simulate_subject(job(labels=BRATS, simulated={"tumour_radius": [20, 22]}), template, 0)
    assert set(np.unique(mask)) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (1, (2,))),
        ({"labels": BRATS}, (4, (1, 2, 3))),
        ({"labels": {"brain": [1, 2], "tumour": [2]}}, (1, (2,))),
        ({"labels": {"brain": [1]}}, (1, ())),
        ({"labels": {"tumour": [2]}}, (0, (2,))),
        ({"labels": BRATS, "remap": {"4": 3}, "derive_brain": "nonzero"}, (0, (1, 2, 3))),
        ({"remap": {"1": 2, "2": 1}}, (2, (1,))),
    ],
)
def test_the_files_hold_labels_as_the_data_stage_will_read_them(settings, expected):
    assert label_numbers(job(**settings)) == expected


def test_a_missing_nilearn_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputFault, match="template inside the package nilearn"):
        load_template(8.0)


def test_prepared_simulated_subjects_are_called_simulated(simulated, tmp_path):
    spec = DataJob(dataset="x", data=DataSpec(shape=(16, 16, 16))).canonical()
    out = ["--manifest", str(tmp_path / "m.json"), "--volumes", str(tmp_path / "v")]
    prepare(["--spec", spec, "--samples", str(simulated / "samples.tsv"), *out])
    assert read_manifest(tmp_path / "m.json").kind == "simulated"
