import itertools

import numpy as np
import pytest
from safetensors.numpy import save_file

from genaccel.data.manifest import load_subject, read_manifest
from genaccel.figures.sample_montage import difference_limit, label_map, main, read_rows, sample_montage
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MINUS
from genaccel.metrics.samples import read_index


def draw(study, make_spec, **settings):
    return sample_montage(study.manifest, study.samples, FigureJob.parse(make_spec(**settings)))


def rows_of(study, subjects=9):
    arguments = study.manifest, study.samples, read_manifest(study.manifest), read_index(study.samples)
    return list(read_rows(*arguments, subjects))


def panels(figure):
    """Axes with a slice; the colour bars hold none."""
    return [axes for axes in figure.axes if axes.images]


@pytest.mark.parametrize(("subjects", "modalities", "most", "rows"), [(1, 1, 4, 1), (3, 1, 2, 2), (2, 2, 4, 4)])
def test_it_has_twelve_panels_a_subject_and_modality(make_study, make_spec, subjects, modalities, most, rows):
    study = make_study(subjects=subjects, modalities=("t1", "t2", "flair")[:modalities])
    assert len(panels(draw(study, make_spec, subjects=most))) == 12 * rows


def test_each_row_pairs_the_sample_with_its_own_subject(make_study):
    study = make_study(subjects=3, modalities=("t1", "flair"))
    for row in rows_of(study):
        np.testing.assert_array_equal(row.synthetic, -row.real)
    subject = read_manifest(study.manifest).subjects[1]
    np.testing.assert_array_equal(rows_of(study)[3].real, load_subject(study.manifest, subject)[0][1])


def test_the_panels_of_a_row_are_mask_real_synthetic_and_difference(make_study, make_spec):
    study = make_study(subjects=1)
    (row,) = rows_of(study)
    _, _, axial_position = row.positions
    axial = [panel.images[0].get_array() for panel in panels(draw(study, make_spec))[::3]]
    expected = (row.mask, row.real, row.synthetic, row.synthetic - row.real)
    for shown, volume in zip(axial, expected, strict=True):
        np.testing.assert_allclose(shown, volume[:, :, axial_position].T, rtol=1e-6)


def test_real_and_synthetic_share_the_scale_and_the_difference_is_symmetric(make_study, make_spec):
    limits = [panel.images[0].get_clim() for panel in panels(draw(make_study(subjects=1), make_spec))]
    assert set(limits[3:9]) == {(-1, 1)}
    (low, high), *_ = limits[9:]
    assert low == -high


@pytest.mark.parametrize("shape", [(12, 16, 8), (12, 12, 12), (12, 16, 7)])
def test_panels_lie_beside_each_other_and_within_the_figure(make_study, make_spec, shape):
    figure = draw(make_study(subjects=1, shape=shape), make_spec)
    boxes = [axes.get_position() for axes in panels(figure)]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))
    assert 0 <= boxes[0].x0 < boxes[-1].x1 <= 1


def test_the_smallest_channel_is_on_top():
    labels = np.zeros((3, 4, 4, 4), np.uint8)
    labels[0, :2], labels[1], labels[2, 0, 0, 0] = 1, 1, 1
    numbers = label_map(labels)
    assert (numbers[0, 0, 0], numbers[1, 0, 0], numbers[3, 0, 0]) == (3, 1, 2)


def test_the_differences_colours_end_at_a_tenth_that_holds_nearly_all(make_study):
    (row,) = rows_of(make_study(subjects=1))
    assert difference_limit([row._replace(synthetic=row.real + 0.31)]) == pytest.approx(0.4)
    assert difference_limit([row._replace(synthetic=row.real)]) == pytest.approx(0.1)


@pytest.mark.parametrize(("kind", "called"), [("simulated", "simulated subjects"), ("real", "subjects")])
def test_the_heading_says_how_and_of_whom(make_study, make_spec, texts, kind, called):
    written = texts(draw(make_study(kind=kind), make_spec, subjects=1))
    assert f"ddim, 5 steps, seed 7;  test split, 1 of 2 {called}" in written
    assert "Synthetic volumes: tiny" in written


def test_which_of_several_samples_is_shown_is_said(make_study, make_spec, texts):
    assert any("first of 2 samples a mask" in text for text in texts(draw(make_study(per_mask=2), make_spec)))


def test_groups_planes_channels_and_convention_are_named(make_study, make_spec, texts):
    written = texts(draw(make_study(), make_spec))
    assert {"Mask", "Real", "Synthetic", f"Synthetic {MINUS} real", "brain", "tumour", "difference", "s00"} <= set(
        written
    )
    assert [written.count(plane) for plane in ("axial", "coronal", "sagittal")] == [4, 4, 4]
    assert any("Neurological convention" in text for text in written)


def test_a_subject_is_named_once_beside_its_modalities(make_study, make_spec, texts):
    written = texts(draw(make_study(modalities=("t1", "flair")), make_spec))
    assert [written.count(name) for name in ("s00", "s01", "t1", "flair")] == [1, 1, 2, 2]


def test_the_command_writes_the_figure(make_study, make_spec, tmp_path):
    study, out = make_study(), tmp_path / "montage.png"
    paths = ["--manifest", str(study.manifest), "--samples", str(study.samples), "--out", str(out)]
    main(["--spec", make_spec(), "--code", "figures@0", *paths])
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_sample_with_nan_is_an_error_and_leaves_no_figure(make_study, make_spec, tmp_path, capsys):
    study, out = make_study(), tmp_path / "montage.png"
    save_file({"image": np.full((1, 12, 16, 8), np.nan, np.float32)}, study.samples / "s00-0.safetensors")
    with pytest.raises(SystemExit):
        main(
            [
                "--spec",
                make_spec(),
                "--manifest",
                str(study.manifest),
                "--samples",
                str(study.samples),
                "--out",
                str(out),
            ]
        )
    assert "figures.sample_montage: " in capsys.readouterr().err
    assert not out.exists()
