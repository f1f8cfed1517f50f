"""The stage as its rule calls it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from genaccel.atomic import file_sha256
from genaccel.data import pool
from genaccel.data.__main__ import main
from genaccel.data.faults import InputFault
from genaccel.data.manifest import load_subject, read_manifest
from genaccel.data.spec import DataJob, DataSpec

EXACT = {"fit": "crop_pad", "shape": [8, 9, 7], "percentiles": [0, 100], "samples": "samples.tsv"}


@pytest.fixture
def arguments(table, tmp_path):
    """The command line for settings that differ from ``EXACT``."""

    def build(out="out", samples=table, threads=1, **settings) -> list[str]:
        job = DataJob(dataset="x", data=DataSpec.build(EXACT | settings))
        spec = ["--spec", job.canonical(), "--samples", str(samples), "--threads", str(threads)]
        return [*spec, "--manifest", f"{tmp_path}/{out}/manifest.json", "--volumes", f"{tmp_path}/{out}/volumes"]

    return build


@pytest.fixture
def prepare(arguments, tmp_path):
    """Runs the stage; the path of its manifest."""

    def run(out="out", **settings):
        main(arguments(out, **settings))
        return tmp_path / out / "manifest.json"

    return run


def test_a_volume_holds_the_scaled_image_and_the_masks_channels(prepare, head):
    path = prepare()
    image, labels = load_subject(path, read_manifest(path).subjects[0])
    assert np.allclose(image[0], head["t1"] / head["t1"].max() * 2 - 1, atol=1e-6)
    assert np.array_equal(labels, np.stack([head["mask"] == 1, head["mask"] == 2]))


def test_the_manifest_says_what_it_was_made_from(prepare, head, tmp_path):
    path = prepare()
    manifest = read_manifest(path)
    subject = manifest.subjects[1]
    source = subject.sources["t1"]
    assert (manifest.kind, manifest.channels, manifest.modalities) == ("real", ("brain", "tumour"), ("t1",))
    assert [s.subject for s in manifest.subjects] == ["a", "b", "c"]
    assert source.sha256 == file_sha256(tmp_path / "b" / "t1.nii.gz")
    assert (source.shape, source.spacing, source.orientation) == ((8, 9, 7), (1, 1, 1), "RAS")
    assert source.intensity.max == head["t1"].max()
    assert subject.volume == "volumes/b.safetensors"
    assert subject.volume_sha256 == file_sha256(path.parent / subject.volume)
    assert subject.label_voxels == {"brain": int((head["mask"] == 1).sum()), "tumour": 8}


def test_the_same_input_gives_the_same_bytes(prepare):
    assert prepare("one").read_bytes() == prepare("two").read_bytes()


def test_the_number_of_processes_changes_neither_who_is_prepared_nor_who_is_skipped(study, monkeypatch):
    study.write("t1", np.full_like(study.image, 3))
    alone = study.run("skip")
    monkeypatch.setattr(pool, "BYTES_A_PROCESS", 1)
    assert study.run("skip", threads=2) == alone


def test_a_tables_order_changes_nothing(prepare, table):
    before = prepare("one").read_bytes()
    header, *rows = table.read_text().splitlines()
    table.write_text("\n".join([header, *reversed(rows)]) + "\n")
    assert prepare("two").read_bytes() == before


def test_space_beyond_the_field_of_view_is_background(prepare):
    path = prepare(shape=[12, 9, 7])
    image, labels = load_subject(path, read_manifest(path).subjects[0])
    assert (image[0, :2] == -1).all()
    assert not labels[:, :2].any()


def test_labels_that_the_grid_cuts_off_are_reported(prepare, capsys):
    path = prepare(shape=[3, 9, 7])
    before, after = (
        sum(getattr(read_manifest(path).subjects[0], n).values()) for n in ("source_label_voxels", "label_voxels")
    )
    assert before > after
    assert "data: a: the grid cuts off" in capsys.readouterr().err


def test_raw_brats_gets_its_brain_from_the_images(prepare, write_nifti, write_table, head):
    write_nifti("raw/seg.nii.gz", np.where(head["mask"] == 2, 4, 0).astype(np.uint8))
    # Each modality alone shows half of the brain.
    for column, half in (("t1", np.s_[:, :5]), ("t2", np.s_[:, 5:])):
        image = np.zeros_like(head["t1"])
        image[half] = head["t1"][half]
        write_nifti(f"raw/{column}.nii.gz", image)
    samples = write_table(
        ("subject", "mask", "t1", "t2"), ("raw", "raw/seg.nii.gz", "raw/t1.nii.gz", "raw/t2.nii.gz"), name="raw.tsv"
    )
    settings = {"labels": {"tumour_3": [3], "brain": [4]}, "remap": {"4": 3}, "derive_brain": "nonzero"}
    path = prepare(modalities=["t1", "t2"], samples=samples, **settings)
    manifest = read_manifest(path)
    _, labels = load_subject(path, manifest.subjects[0])
    channels = dict(zip(manifest.channels, labels, strict=True))
    assert np.array_equal(channels["tumour_3"], head["mask"] == 2)
    assert np.array_equal(channels["brain"], head["mask"] == 1)


def test_a_fault_names_subject_and_file(arguments, write_nifti, head):
    write_nifti("b/mask.nii.gz", np.where(head["mask"] == 2, 5, head["mask"]))
    with pytest.raises(InputFault, match=r"^b mask\.nii\.gz holds label 5 in 8 voxels"):
        main(arguments())


def test_all_subjects_with_faults_are_named_at_once(arguments, write_nifti):
    for name in ("a", "c"):
        write_nifti(f"{name}/t1.nii.gz", np.full((8, 9, 7), 3, np.int16))
    with pytest.raises(
        InputFault, match=r"2 of 3 subjects cannot be used:\n +a t1.*is constant(.*\n)+ +c t1.*is constant"
    ):
        main(arguments())


def test_a_fault_leaves_nothing_behind(arguments, write_nifti, tmp_path):
    write_nifti("b/t1.nii.gz", np.full((8, 9, 7), 3, np.int16))
    with pytest.raises(InputFault):
        main(arguments())
    assert not any((tmp_path / "out").rglob("*"))


def test_the_command_ends_with_a_message_and_status_one(arguments, write_nifti):
    write_nifti("b/t1.nii.gz", np.full((8, 9, 7), 3, np.int16))
    done = subprocess.run([sys.executable, "-m", "genaccel.data", *arguments()], capture_output=True, text=True)
    assert done.returncode == 1
    assert "data: b t1.nii.gz is constant: all 504 voxels are 3.\n      Give the image itself" in done.stderr
    assert "Traceback" not in done.stderr


def test_paths_with_spaces_work(study):
    spaced = study.folder / "my data"
    spaced.mkdir()
    for column in ("mask", "t1"):
        study.path(column).rename(spaced / f"subject b {column}.nii.gz")
    study.rows["b"][1:3] = ["my data/subject b mask.nii.gz", str(spaced / "subject b t1.nii.gz")]
    table = study.table.rename(spaced / "sample table.tsv")
    for row in study.rows.values():
        row[1:3] = [str(study.folder / path) for path in row[1:3]]
    table.write_text(study.table.read_text())
    manifest = study.run(table=table)
    assert [subject.subject for subject in manifest.subjects] == ["a", "b", "c", "d"]
    assert manifest.subjects[1].sources["t1"].path == str(spaced / "subject b t1.nii.gz")


def test_the_manifest_keeps_the_codes_of_qform_and_sform(study):
    study.write("mask", study.mask, qform_code=1, sform_code=4)
    source = study.run().subjects[1].sources["mask"]
    assert (source.qform_code, source.sform_code) == (1, 4)


def warnings(study, **settings) -> tuple[str, ...]:
    return study.run(**settings).subjects[1].warnings


def test_a_channel_that_a_coarse_grid_swallows_is_a_warning(study):
    assert warnings(study, fit="resample", shape=[3, 3, 3]) == tuple(
        f"channel `tumour_{number}` has {voxels} voxels in the mask but none on the model's grid"
        for number, voxels in ((1, 2), (2, 4))
    )


def test_a_raw_mask_without_a_tumour_is_a_warning_where_the_brain_is_derived(study):
    for subject in "abcd":
        study.write("mask", np.where(study.mask == 4, 0, study.mask), subject=subject)
    study.write("mask", np.zeros_like(study.mask))
    assert warnings(study, derive_brain="nonzero") == (
        "mask.nii.gz is empty: there is no label but the brain's, which was derived",
    )


def test_a_copy_in_another_split_is_a_warning(study):
    study.write("t1", study.image, subject="c")
    study.write("t1", study.image)
    assert warnings(study) == ("its t1 is byte for byte that of c, which is in the split `test`",)


def test_a_copy_in_the_same_split_is_none(study):
    study.write("t1", study.image, subject="a")
    study.write("t1", study.image)
    assert warnings(study) == ()
