import html
import re

import pytest

from genaccel.data.manifest import Skipped, read_manifest, write_manifest
from genaccel.figures.style import TIMES
from genaccel.figures.subjects import main


@pytest.fixture
def page(make_study, make_spec, tmp_path):
    """The page of a study, as written and as read."""

    def page(skipped=(), **settings):
        study = make_study(**settings)
        manifest = read_manifest(study.manifest).model_copy(update={"skipped": tuple(skipped)})
        write_manifest(study.manifest, manifest)
        out = tmp_path / "subjects.html"
        main(["--spec", make_spec("my data"), "--code", "c@0", "--manifest", str(study.manifest), "--out", str(out)])
        written = out.read_text("ascii")
        return written, html.unescape(re.sub(r"<[^>]+>", " ", written))

    return page


def test_subjects_that_were_left_out_are_listed_with_their_reason(page):
    reasons = [Skipped(subject="s07", reason="mask.nii.gz holds label 5"), Skipped(subject="s09", reason="truncated")]
    _, text = page(skipped=reasons)
    assert "Left out (2)" in text
    assert re.search(r"s07\s+mask\.nii\.gz holds label 5", text)
    assert re.search(r"s09\s+truncated", text)


def test_that_none_was_left_out_is_said(page):
    assert "No subject was left out." in page()[1]


def test_subjects_are_counted_by_split_with_voxels_and_sources(page):
    text = page(subjects=3)[1]
    assert "0 train, 0 validation, 3 test" in text
    assert text.count("472 (472)") == text.count("8 (8)") == 3
    assert "mask: 12 x 16 x 8, 2 x 3 x 4, LPS" in text.replace(TIMES, "x")


def test_warnings_are_listed_with_their_subject(page):
    text = page(subjects=2, warnings=("channel `tumour` lost all voxels",))[1]
    assert "Warnings (2)" in text
    assert re.search(r"s01\s+channel `tumour` lost all voxels", text)


@pytest.mark.parametrize(("kind", "called"), [("simulated", "no person's images"), ("real", "real subjects")])
def test_simulated_subjects_are_called_so(page, kind, called):
    assert called in page(kind=kind)[1]


def test_text_from_files_cannot_become_markup(page):
    written, _ = page(skipped=[Skipped(subject="<script>alert(1)</script>", reason='a "quoted" & <b>bold</b> é')])
    assert "<script" not in written
    assert "<b>" not in written
    assert 'a "quoted" & <b>bold</b> é' in html.unescape(written)


def test_the_page_is_whole_in_itself_and_sets_its_own_colours(page):
    written = page()[0]
    assert not re.search(r"https?:|src=|<link|<script|@import|url\(", written)
    assert "color-scheme: light" in written
    assert re.search(r"html, body \{ background: #\w+; color: #\w+; \}", written)


def test_an_unreadable_manifest_is_one_line_and_leaves_no_page(make_spec, tmp_path, capsys):
    (tmp_path / "manifest.json").write_text("{")
    out = tmp_path / "subjects.html"
    with pytest.raises(SystemExit) as stop:
        main(["--spec", make_spec(), "--manifest", str(tmp_path / "manifest.json"), "--out", str(out)])
    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith("figures.subjects: ")
    assert not out.exists()
