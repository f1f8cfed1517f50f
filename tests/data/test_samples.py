"""The sample table and its faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.data.faults import InputFault
from genaccel.data.samples import Sample, SampleTable, read_samples, read_table
from genaccel.data.spec import SplitSpec

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
    with pytest.raises(InputFault, match=r"names m 2 times: s1 mask, s[12] (mask|t1)\."):
        read_samples(write_table(HEADER, *rows), ["t1"])


@pytest.mark.parametrize("spelt", ["./m", "../here/m", "linked"])
def test_a_file_in_two_cells_is_refused_however_it_is_written(files, write_table, spelt):
    (files / "linked").symlink_to(files / "m")
    with pytest.raises(InputFault) as fault:
        read_samples(write_table(HEADER, ("s1", "m", "i"), ("s2", spelt, "i2")), ["t1"])
    written = f" as {Path(spelt)}" if str(Path(spelt)) != "m" else ""
    assert f"names m 2 times: s1 mask, s2 mask{written}.\n" in str(fault.value)


def test_absent_files_may_share_a_name_such_as_na(files, write_table):
    table = write_table(HEADER, ("s1", "m", "NA"), ("s2", "m2", "NA"), ("s3", "an image", "i"))
    assert [sample.subject for sample in read_samples(table, ["t1"], "skip")] == ["s3"]


def test_skipping_leaves_out_subjects_whose_files_are_not_there(files, write_table):
    table = write_table(HEADER, ("s1", "m", "i"), ("s2", "m2", "gone"), ("s3", "", "i2"))
    assert [sample.subject for sample in read_samples(table, ["t1"], "skip")] == ["s1"]
    assert {name: fault.line for name, fault in read_table(table, ["t1"]).faults.items()} == {
        "s2": "lacks 1 file: t1: gone. Mend the sample table or the folder.",
        "s3": "lacks 1 file: mask: no file given. Mend the sample table or the folder.",
    }


def test_a_table_of_absent_files_alone_is_refused_even_to_skip(files, write_table):
    table = write_table(HEADER, ("s1", "m", "no"), ("s2", "none", "i"))
    with pytest.raises(InputFault) as fault:
        read_samples(table, ["t1"], "skip")
    assert str(fault.value) == (
        f"{table}: 2 files missing, in the working directory and beside the table:\n"
        "        s1 t1: no\n        s2 mask: none\n"
        "      Mend the paths, or take these subjects out."
    )


def test_a_folder_that_is_closed_counts_as_missing(files, write_table, monkeypatch):
    real = Path.stat

    def closed(path, **options):
        if path.parts[:1] == ("closed",):
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", closed)
    table = write_table(HEADER, ("s1", "m", "closed/i"), ("s2", "m2", "i2"))
    assert [sample.subject for sample in read_samples(table, ["t1"], "skip")] == ["s2"]


def test_a_disk_that_fails_is_no_fault_of_the_table(files, write_table, monkeypatch):
    def fail(path, **options):
        raise OSError(5, "Input/output error")

    table = write_table(HEADER, ("s1", "m", "i"))
    monkeypatch.setattr("genaccel.data.rows.Path.is_file", lambda path: True)
    monkeypatch.setattr(Path, "stat", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read_samples(table, ["t1"], "skip")


@given(st.data())
def test_splits_do_not_depend_on_whose_files_are_there(data):
    names = data.draw(st.lists(st.from_regex(r"[a-z][0-9]{0,3}", fullmatch=True), min_size=1, unique=True))
    rows = tuple(Sample(name, Path(name), {}) for name in sorted(names))
    absent = {name: ["mask"] for name in names if data.draw(st.booleans())}
    spec = SplitSpec(seed=data.draw(st.integers(0, 9)))
    assert SampleTable(Path(), rows, absent).splits(spec) == SampleTable(Path(), rows, {}).splits(spec)


def test_reading_a_table_imports_nothing_heavy():
    code = "import sys, genaccel.data.samples; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "torch", "nibabel", "scipy", "safetensors"} & set(done.stdout.split())
