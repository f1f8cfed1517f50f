"""Faults of the sample table: the exact message, whether subjects may be skipped or not."""

from __future__ import annotations

import pytest

from genaccel.data.faults import InputFault

HEADER = "subject\tmask\tt1\tsplit"
A, B = "a\ta/mask.nii.gz\ta/t1.nii.gz\ttrain", "b\tb/mask.nii.gz\tb/t1.nii.gz\ttest"
ONE_FILE = "Give every subject and column a file of its own."
NO_SCORING = "Keep one of these rows: what is trained on must not be scored."

FAULTS = {
    "an empty table": ([], "{table} is empty.", "Give it a header: subject, mask, one column a modality."),
    "a table of comments": (
        ["# later"],
        "{table} is empty.",
        "Give it a header: subject, mask, one column a modality.",
    ),
    "no subject": ([HEADER], "{table} has a header but no subject.", "Add one row a subject."),
    "no column of a modality": (
        ["subject\tmask\tsplit", "a\ta/mask.nii.gz\ttrain"],
        "{table} has no column `t1`; valid: `mask`, `split`, `subject`",
        "Its columns are subject, mask, split; add or rename one.",
    ),
    "no tabs": (
        ["subject,mask,t1", "a,a/mask.nii.gz,a/t1.nii.gz"],
        "{table} has no column `subject`; did you mean `subject,mask,t1`?",
        "It has one column only: separate the columns with tabs.",
    ),
    "a row too short": (
        [HEADER, A, "b\tb/mask.nii.gz"],
        "{table} line 3 has 2 cells, the header 4.",
        "Separate cells with one tab each, and leave none out.",
    ),
    "two subjects of one name": (
        [HEADER, A, B, B.replace("b/", "c/")],
        "{table} names 1 subject more than once: b (lines 3, 4).",
        "Keep one row a subject, or rename; upper and lower case count as the same.",
    ),
    "two subjects of one name but for case": (
        [HEADER, A, A.replace("a\t", "A\t", 1).replace("a/", "c/"), B],
        "{table} names 1 subject more than once: A and a (lines 2, 3).",
        "Keep one row a subject, or rename; upper and lower case count as the same.",
    ),
    "a subject in two splits": (
        [HEADER, A, B, A.replace("train", "test")],
        "{table} puts subject a into more than one split: train (line 2) and test (line 4).",
        NO_SCORING,
    ),
    "a subject in a split and in none": (
        [HEADER, A, B, A.replace("train", "")],
        "{table} puts subject a into more than one split: train (line 2) and none (line 4).",
        NO_SCORING,
    ),
    "one file in two splits under two names": (
        [HEADER, A, B.replace("b/t1", "a/t1")],
        "{table} names {folder}/a/t1.nii.gz 2 times: a t1, b t1.",
        ONE_FILE,
    ),
    "a mask as its own image": (
        [HEADER, A.replace("a/t1", "a/mask"), B],
        "{table} names {folder}/a/mask.nii.gz 2 times: a mask, a t1.",
        ONE_FILE,
    ),
    "an unknown split": (
        [HEADER, A.replace("train", "training"), B],
        "{table} line 2: unknown split 'training'; did you mean `train`?",
        "Leave the cell empty to let the shares of `data.split` decide.",
    ),
    "a name that is no file's": (
        [HEADER, A.replace("a\t", "a b\t", 1), B],
        "{table} line 2: subject 'a b' cannot name a file.",
        "Use up to 100 letters, digits, `_`, `-` and `.`, a letter or digit first.",
    ),
}


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_table_always_stops(study, name, on_error):
    rows, what, remedy = FAULTS[name]
    table = study.folder / "bad.tsv"
    table.write_text("".join(f"{row}\n" for row in rows))
    with pytest.raises(InputFault) as raised:
        study.run(on_error, table=table)
    assert str(raised.value) == f"{what.format(table=table, folder=study.folder)}\n      {remedy}"
    assert not (study.folder / "out").exists()


def test_a_missing_table_is_named(study):
    with pytest.raises(InputFault) as raised:
        study.run("skip", table=study.folder / "none.tsv")
    assert str(raised.value) == (
        f"there is no sample table {study.folder}/none.tsv.\n      Mend the path, or set samples: null to simulate."
    )


def test_a_missing_modality_stops_with_every_file_that_is_missing(study):
    study.rows["a"][2] = ""
    study.path("t1").unlink()
    study.path("mask", "c").unlink()
    with pytest.raises(InputFault) as raised:
        study.run()
    assert str(raised.value) == (
        f"{study.table}: 3 files missing, in the working directory and beside the table:\n"
        "        a t1: no file given\n"
        "        b t1: b/t1.nii.gz\n"
        "        c mask: c/mask.nii.gz\n"
        "      Mend the paths, or take these subjects out; `data.<name>.on_error: skip` leaves them out."
    )
