"""Real MRI through the whole workflow: the samples lie where the masks lie."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

FILES = {
    "whole_head": {"mask": "mask_sample_3.nii.gz", "t1": "image_sample_3.nii.gz"},
    "brats": {"mask": "BraTS2021_01306_seg.nii.gz"}
    | {modality: f"BraTS2021_01306_{modality}.nii.gz" for modality in ("t1", "t1ce", "t2", "flair")},
}


@pytest.fixture(scope="module", params=sorted(FILES))
def study(request, root, real_data, tmp_path_factory, module_project, snakemake):
    """A finished study of one real subject: its name, the project's folder, and the subject's files."""
    name = request.param
    files = {column: real_data / name / file for column, file in FILES[name].items()}
    folder = module_project(name)
    rows = [["subject", *files], ["real-01", *map(str, files.values())]]
    (folder / "samples.tsv").write_text("\n".join("\t".join(row) for row in rows) + "\n")
    # One core: on grids this small a second thread waits longer than it works. `finished` runs jobs side by side.
    snakemake(folder, "--configfile", f"tests/config/{name}.yaml", "--cores", "1")
    return name, folder, files


def test_the_sampled_nifti_has_the_masks_shape_affine_and_orientation(study):
    name, folder, files = study
    mask = nib.load(files["mask"])
    (samples,) = (folder / f"results/{name}/sample/{name}").iterdir()
    for modality in (column for column in files if column != "mask"):
        image = nib.load(samples / f"real-01-0_{modality}.nii.gz")
        assert image.shape == mask.shape
        np.testing.assert_allclose(image.affine, mask.affine, atol=1e-5)
        assert nib.aff2axcodes(image.affine) == nib.aff2axcodes(mask.affine)
        assert np.isfinite(image.get_fdata()).all()


def test_the_manifest_says_what_the_files_are(study):
    name, folder, files = study
    manifest = json.loads((folder / f"results/{name}/data/{name}/manifest.json").read_text())
    subject = manifest["subjects"][0]
    assert manifest["kind"] == "real"
    assert set(subject["sources"]) == set(files)
    mask = nib.load(files["mask"])
    assert subject["sources"]["mask"]["orientation"] == "".join(nib.aff2axcodes(mask.affine))
    assert subject["sources"]["mask"]["shape"] == list(mask.shape)
    assert all(subject["label_voxels"][channel] > 0 for channel in ("brain",))


def test_every_modality_is_scored_over_the_whole_volume_and_the_foreground(study):
    name, folder, files = study
    with open(folder / f"results/{name}/metrics/metrics.csv") as file:
        rows = list(csv.DictReader(file))
    for modality in (column for column in files if column != "mask"):
        for region in ("whole", "foreground"):
            for metric in ("mse", "psnr", "ssim"):
                values = [
                    float(row["value"])
                    for row in rows
                    if row["metric"] == metric
                    and f"modality={modality};" in row["case"] + ";"
                    and f"region={region};" in row["case"] + ";"
                ]
                assert values, (modality, region, metric)
                assert np.isfinite(values).all()


def test_every_figure_is_drawn(study):
    name, folder, _ = study
    figures = {path.name.split("-")[0].split(".")[0] for path in (folder / f"results/{name}/figures").iterdir()}
    assert figures == {
        *("qc_montage", "loss_curve", "sample_montage", "metric_table", "sampler_steps"),
        *("subjects", "provenance"),
    }
    assert all(path.stat().st_size > 1000 for path in Path(folder / f"results/{name}/figures").glob("*.png"))
