import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from genaccel.data.manifest import read_manifest, write_manifest
from genaccel.figures.qc_montage import main, qc_montage
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import TIMES
from genaccel.spec import SpecError


def draw(study, make_spec, **settings):
    return qc_montage(study.manifest, FigureJob.parse(make_spec(**settings)))


@pytest.mark.parametrize(("subjects", "most", "shown"), [(1, 4, 1), (3, 2, 2), (5, 5, 5)])
def test_it_shows_three_planes_and_a_histogram_of_the_first_subjects(make_study, make_spec, subjects, most, shown):
    figure = draw(make_study(subjects=subjects), make_spec, subjects=most)
    assert len(figure.axes) == 4 * shown
    assert sum(len(axes.images) for axes in figure.axes) == 3 * shown


def test_a_row_names_its_subject_split_and_spacing(make_study, make_spec, texts):
    written = texts(draw(make_study(), make_spec))
    assert {"s00", "s01"} <= set(written)
    assert (
        "test split,  12 x 16 x 8 voxels of 2 x 3 x 4 mm,  from 12 x 16 x 8 LPS".replace(" x ", f" {TIMES} ") in written
    )


@pytest.mark.parametrize(
    ("kind", "heading"), [("simulated", "Prepared simulated subjects"), ("real", "Prepared subjects")]
)
def test_simulated_subjects_are_called_so(make_study, make_spec, texts, kind, heading):
    assert f"{heading}: tiny  (2 of 2)" in texts(draw(make_study(kind=kind), make_spec))


def test_every_channel_has_an_outline_and_a_name(make_study, make_spec, texts):
    figure = draw(make_study(subjects=1), make_spec)
    assert all(len(axes.collections) == 2 for axes in figure.axes if axes.images)
    assert {"brain", "tumour"} <= set(texts(figure))


def test_the_first_modality_is_shown_and_all_are_in_the_histogram(make_study, make_spec, texts):
    figure = draw(make_study(subjects=1, modalities=("t1", "flair")), make_spec)
    (histogram,) = [axes for axes in figure.axes if not axes.images]
    assert len(histogram.patches) == 2
    assert {"t1", "flair"} <= set(texts(figure))


def test_the_shares_of_background_and_clipped_voxels_are_stated(make_study, make_spec, texts, sign):
    study = make_study(subjects=1)
    (subject,) = read_manifest(study.manifest).subjects
    path = study.manifest.parent / subject.volume
    image = np.zeros((1, 12, 16, 8), np.float32)
    image[:, :6], image[:, 6:9] = -1, 1
    save_file({"image": image, "labels": load_file(path)["labels"]}, path)
    sign(study.manifest)
    assert "background 50%, clipped 25.0%" in texts(draw(study, make_spec))


def test_the_convention_and_the_sides_are_marked(make_study, make_spec, texts):
    written = texts(draw(make_study(subjects=1), make_spec))
    assert [written.count(mark) for mark in "LRPA"] == [2, 2, 1, 1]
    assert any("Neurological convention: the subject's left (L) is on the left" in text for text in written)


def test_a_warning_of_the_manifest_is_shown(make_study, make_spec, texts):
    written = texts(draw(make_study(subjects=1, warnings=("channel `tumour` lost all voxels", "another")), make_spec))
    assert "channel `tumour` lost all voxels (and 1 more)" in written


def test_a_manifest_without_subjects_is_an_error(make_study, make_spec):
    study = make_study()
    write_manifest(study.manifest, read_manifest(study.manifest).model_copy(update={"subjects": ()}))
    with pytest.raises(SpecError, match=r"manifest\.json has no subject to draw"):
        draw(study, make_spec)


def test_an_empty_mask_is_drawn_without_outlines(make_study, make_spec, tmp_path, sign):
    study = make_study(subjects=1)
    path = study.manifest.parent / "volumes/s00.safetensors"
    tensors = load_file(path)
    save_file({"image": tensors["image"], "labels": np.zeros_like(tensors["labels"])}, path)
    sign(study.manifest)
    out = tmp_path / "qc.png"
    main(["--spec", make_spec(), "--manifest", str(study.manifest), "--out", str(out)])
    assert out.stat().st_size > 1000
