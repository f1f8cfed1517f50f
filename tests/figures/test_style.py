import os
import subprocess
import sys

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from genaccel.figures import qc_montage
from genaccel.figures.spec import FiguresSpec
from genaccel.figures.style import save, text_at, theme
from genaccel.spec import SpecError

FIGURES = (
    *("loss_curve", "qc_montage", "sample_montage", "metric_table", "sampler_steps", "subjects", "provenance"),
    *("speedups", "training_curves"),
)


def test_no_figure_imports_torch():
    imports = ", ".join(f"genaccel.figures.{name}" for name in FIGURES)
    check = f"import sys, {imports}; print(sorted({{'torch', 'monai'}} & set(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", check], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_the_same_data_give_the_same_bytes(make_study, make_spec, tmp_path, format):
    study = make_study(subjects=1)
    written = []
    for attempt in ("one", "two"):
        out = tmp_path / attempt / f"qc.{format}"
        qc_montage.main(["--spec", make_spec(format=format), "--manifest", str(study.manifest), "--out", str(out)])
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(("format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_is_in_the_format_of_the_settings(tmp_path, format, start):
    out = tmp_path / f"figure.{format}"
    save(Figure(figsize=(1, 1)), out, FiguresSpec(format=format))
    assert out.read_bytes().startswith(start)


def test_a_name_that_says_another_format_is_an_error(tmp_path):
    with pytest.raises(SpecError, match=r"figure\.png does not end in \.svg"):
        save(Figure(figsize=(1, 1)), tmp_path / "figure.png", FiguresSpec(format="svg"))
    assert list(tmp_path.iterdir()) == []


def test_the_resolution_is_that_of_the_settings(tmp_path):
    sizes = []
    for dpi in (50, 100):
        save(Figure(figsize=(2, 1)), tmp_path / "figure.png", FiguresSpec(dpi=dpi))
        sizes.append(mpl.image.imread(tmp_path / "figure.png").shape[:2])
    assert sizes == [(50, 100), (100, 200)]


def test_the_theme_ends_with_its_block():
    before = dict(mpl.rcParams)
    with theme():
        assert mpl.rcParams["font.size"] == 9
    assert dict(mpl.rcParams) == before


def test_places_are_inches_from_the_upper_left_corner():
    figure = Figure(figsize=(4, 2))
    text_at(figure, 1, 0.5, "here")
    assert figure.texts[0].get_position() == (0.25, 0.75)
