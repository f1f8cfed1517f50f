"""The sample table and its faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from genaccel.data.faults import InputFault
from genaccel.data.samples import read_samples

HEADER = ("subject", "mask", "t1")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files m and i in the working directory, which is not the table's folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("m", "i", "m2", "i2", "an image"):
        (folder / name).touch()
    return folder


def test_a_subjects_files_are_paired_by_row(files, write_table):
    (sample,) = read_samples(write_table(HEADER, ("s1", "m", "i")), ["t1"])
    assert (sample.subject, sample.mask, sample.images, sample.split) == ("s1", Path("m"), {"t1": Path("i")}, None)


def test_columns_may_stand_in_any_order_and_others_may_stand_between(files, write_table):
    table = write_table(("t1", "site", "subject", "split", "mask"), ("i", "Bonn", "s1", "test", "m"))
    (sample,) = read_samples(table, ["t1"])
    assert (sample.mask, sample.images["t1"], sample.split) == (Path("m"), Path("i"), "test")


def test_subjects_come_sorted_whatever_the_tables_order(files, write_table):
    samples = read_samples(write_table(HEADER, ("s2", "m", "i"), ("s1", "m2", "i2")), ["t1"])
    assert [sample.subject for sample in samples] == ["s1", "s2"]


def test_comments_blank_lines_and_a_byte_order_mark_do_not_count(files, write_table):
    table = write_table(("# made by hand",), HEADER, ("",), ("#s0", "m", "i"), ("s1", "m", "i"), ("",))
    table.write_text("\ufeff" + table.read_text())
    assert [sample.subject for sample in read_samples(table, ["t1"])] == ["s1"]


def test_windows_line_ends_are_read(files, write_table):
    table = write_table(HEADER, ("s1", "m", "i"))
    table.write_bytes(table.read_bytes().replace(b"\n", b"\r\n"))
    assert read_samples(table, ["t1"])[0].images == {"t1": Path("i")}


def test_a_path_may_hold_spaces(files, write_table):
    assert read_samples(write_table(HEADER, ("s1", "m", "an image")), ["t1"])[0].images == {"t1": Path("an image")}


def test_the_tables_folder_is_the_second_place_to_look(files, write_table, tmp_path):
    for name in ("m", "beside"):
        (tmp_path / name).touch()
    (sample,) = read_samples(write_table(HEADER, ("s1", "m", "beside")), ["t1"])
    assert (sample.mask, sample.images["t1"]) == (Path("m"), tmp_path / "beside")


def test_an_empty_split_cell_leaves_the_subject_to_the_shares(files, write_table):
    table = write_table((*HEADER, "split"), ("s1", "m", "i", ""), ("s2", "m2", "i2", "train"))
    assert [sample.split for sample in read_samples(table, ["t1"])] == [None, "train"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"samples\.tsv is empty"),
        ([("# only a comment",)], r"samples\.tsv is empty"),
        ([HEADER], "has a header but no subject"),
        ([("subject", "masks", "t1"), ("s", "m", "i")], "has no column `mask`; did you mean `masks`"),
        ([("subject", "mask", "flair"), ("s", "m", "i")], "has no column `t1`"),
        ([("subject,mask,t1",), ("s,m,i",)], "separate the columns with tabs"),
        ([("subject", "mask", "t1", "t1"), ("s", "m", "i", "i")], "has the column `t1` more than once"),
        ([(*HEADER, "Split"), ("s", "m", "i", "test")], "has a column `Split`; did you mean `split`"),
        ([HEADER, ("s", "m")], "line 2 has 2 cells, the header 3"),
        ([HEADER, ("s", "m", "i", "x")], "line 2 has 4 cells, the header 3"),
        ([HEADER, ("s", "m", "i"), ("z", "m", "i"), ("s", "m", "i")], "names 1 subject more than once: s"),
        ([(*HEADER, "split"), ("s", "m", "i", "tests")], "line 2: unknown split 'tests'; did you mean `test`"),
        ([HEADER, ("s", "m", "j")], r"1 file missing.*\n +s t1: j\n"),
        ([HEADER, ("s", "m", "")], r"s t1: no file given"),
        ([HEADER, ("s", "m", "."), ("z", "n", "i")], r"2 files missing.*\n +s t1: .*\n +z mask: n\n"),
    ],
)
def test_a_fault_says_where_and_what(files, write_table, rows, message):
    with pytest.raises(InputFault, match=message):
        read_samples(write_table(*rows), ["t1"])


@pytest.mark.parametrize("name", ["a b", "../a", "a/b", ".hidden", "é", "a" * 101, "-x"])
def test_a_subject_that_cannot_name_a_file_is_refused(files, write_table, name):
    with pytest.raises(InputFault, match=r"line 2: subject .* cannot name a file"):
        read_samples(write_table(HEADER, (name, "m", "i")), ["t1"])


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(InputFault, match=r"there is no sample table .*none\.tsv"):
        read_samples(tmp_path / "none.tsv", ["t1"])


def test_a_binary_table_is_refused(tmp_path):
    (tmp_path / "samples.tsv").write_bytes(b"\x1f\x8b\xff\xfe\x00")
    with pytest.raises(InputFault, match="is no text table"):
        read_samples(tmp_path / "samples.tsv", ["t1"])


def test_many_missing_files_are_counted_and_the_first_ones_shown(files, write_table):
    with pytest.raises(InputFault, match=r"40 files missing(.*\n){11} +and 30 more"):
        read_samples(write_table(HEADER, *[(f"s{i:02d}", "no", "none") for i in range(20)]), ["t1"])


@pytest.mark.parametrize("rows", [(("s1", "m", "i"), ("s2", "m", "i2")), (("s1", "m", "m"),)])
def test_a_file_in_two_cells_is_refused(files, write_table, rows):
    with pytest.raises(InputFault, match=r"names m 2 times: s1 mask, s[12] (mask|t1)"):
        read_samples(write_table(HEADER, *rows), ["t1"])
