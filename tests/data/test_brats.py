"""Sample tables from BraTS folders."""

from __future__ import annotations

import csv
import io

import pytest

from genaccel.data.brats import brats_table, main
from genaccel.data.faults import InputFault

OLD = {"mask": "_seg", "t1": "_t1", "t1ce": "_t1ce", "t2": "_t2", "flair": "_flair"}
NEW = {"mask": "-seg", "t1": "-t1n", "t1ce": "-t1c", "t2": "-t2w", "flair": "-t2f"}


@pytest.fixture
def brats(tmp_path):
    """Makes the empty files of a subject."""

    def make(subject, endings=OLD, folder="", suffix=".nii.gz"):
        for ending in endings.values():
            path = tmp_path / "brats" / folder / f"{subject}{ending}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path / "brats"

    return make


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize(
    ("subject", "endings"),
    [("BraTS2021_00002", OLD), ("Brats18_TCIA02_168_1", OLD), ("BraTS-GLI-00000-000", NEW)],
)
@pytest.mark.parametrize("nested", [True, False])
def test_each_yearly_naming_fills_the_same_columns(brats, subject, endings, suffix, nested):
    folder = brats(subject, endings, subject if nested else "", suffix)
    where = folder / subject if nested else folder
    expected = {column: str(where / f"{subject}{ending}{suffix}") for column, ending in endings.items()}
    assert brats_table(folder) == [{"subject": subject, **expected}]


def test_grades_in_folders_of_their_own_are_found(brats):
    brats("Brats18_a", folder="HGG/Brats18_a")
    assert [row["subject"] for row in brats_table(brats("Brats18_b", folder="LGG/Brats18_b"))] == [
        "Brats18_a",
        "Brats18_b",
    ]


def test_pairing_is_by_subject_where_digits_alike_would_mislead(brats):
    brats("A_1_11")
    for row in brats_table(brats("A_11_1")):
        assert all(f"/{row['subject']}_" in path for column, path in row.items() if column != "subject")


def test_every_incomplete_subject_is_named_with_what_it_lacks(brats, tmp_path):
    for subject in ("s1", "s2", "s3"):
        folder = brats(subject, folder=subject)
    (folder / "s1" / "s1_flair.nii.gz").unlink()
    (folder / "s3" / "s3_seg.nii.gz").unlink()
    (folder / "s3" / "s3_t1.nii.gz").unlink()
    with pytest.raises(InputFault) as fault:
        brats_table(folder)
    assert [line.strip() for line in str(fault.value).splitlines()[:-1]] == [
        f"{folder} holds 3 subjects, some not as they should be:",
        "s1 has no flair (flair or t2f)",
        "s3 has no mask (seg), t1 (t1 or t1n)",
    ]


def test_two_files_for_one_column_are_refused(brats):
    brats("s1", folder="copy")
    with pytest.raises(InputFault, match="s1 has 2 files for flair"):
        brats_table(brats("s1", folder="s1"))


def test_hidden_files_do_not_count(brats):
    folder = brats("s1")
    (folder / "._s1_t1.nii.gz").touch()
    assert len(brats_table(folder)) == 1


def test_a_folder_without_brats_files_is_refused(tmp_path):
    with pytest.raises(InputFault, match="holds no BraTS files"):
        brats_table(tmp_path)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputFault, match="there is no folder"):
        brats_table(tmp_path / "none")


def test_the_command_prints_a_table(brats, capsys):
    main([str(brats("s1"))])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out), delimiter="\t"))
    assert list(rows[0]) == ["subject", "mask", "t1", "t1ce", "t2", "flair"]
    assert rows[0]["t1ce"].endswith("s1_t1ce.nii.gz")
