"""What runs again after an edit: exactly the affected work."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from genaccel.config.compose import Config, compose
from genaccel.config.keys import CONSUMERS, FOLLOWERS, changed, keys, reruns
from genaccel.spec import SpecError
from genaccel.why import print_reasons, reasons

TINY = "tests/config/tiny.yaml"
RULES = {*CONSUMERS, "metrics_table", "optimize_table", "profile_table", "train_curves_table"}
SOURCE = Path(__file__).parent.parent.parent / "workflow" / "src"


def tiny(finished: Path) -> dict:
    return yaml.safe_load((finished / TINY).read_text())


def key_cases() -> list[tuple[str, object]]:
    config = compose(yaml.safe_load((SOURCE.parent.parent / TINY).read_text()))
    return [(path, other) for path, _, other in keys(config)]


def test_nothing_runs_again_by_itself(needed):
    assert needed() == set()


def test_the_graph_of_rules_in_the_library_is_the_real_one(finished, snakemake):
    config = changed(tiny(finished), "profile.variants", ["fp32_strict"])
    config = changed(config, "optimize.variants", ["fp32_strict"])
    curves = [{"seed": seed, "variant": v} for seed in (0, 1) for v in ("fp32_strict", "fp32_strict_benchmark")]
    models = {f"tiny_{n}": config["models"]["tiny"] | {"train": train} for n, train in enumerate(curves)}
    config = changed(config, "models", models)
    (finished / "tests/config/every_stage.yaml").write_text(yaml.safe_dump(config))
    done = snakemake(finished, "--configfile", "tests/config/every_stage.yaml", "--rulegraph", "mermaid-js")
    names, edges = {}, set()
    for line in map(str.strip, done.stdout.splitlines()):
        if "[" in line and "]" in line and "-->" not in line:
            identifier, label = line.split("[", 1)
            names[identifier] = label.strip('"]').split("\\n")[0]
        elif "-->" in line:
            edges.add(tuple(part.strip() for part in line.split("-->")))
    real = {(names[a], names[b]) for a, b in edges}
    real = {(a, b) for a, b in real if {a, b} <= RULES}
    assert real == {(rule, reader) for rule, readers in FOLLOWERS.items() for reader in readers}


@pytest.mark.parametrize(("path", "other"), key_cases(), ids=[path for path, _ in key_cases()])
def test_a_key_reruns_what_the_documentation_says(needed, finished, path, other):
    config = tiny(finished)
    full = compose(config).model_dump(mode="json")
    if path == "train.weights":
        Path("weights.pt").touch()
        other = "weights.pt"
    if path == "metrics.features":
        Path(other["weights"]).touch()
    if path.endswith("samples"):
        other = _table(finished)
    assert needed(changed(full, path, other)) == reruns(full, path, other)


def _table(finished: Path) -> str:
    """A sample table of the simulated files, as if a user had made them."""
    simulated = finished / "results/tiny/data/simulated/simulated"
    lines = [
        line.replace("\t", f"\t{simulated}/") if line.startswith("sim-") else line
        for line in (simulated / "samples.tsv").read_text().splitlines()
    ]
    Path("samples.tsv").write_text("\n".join(lines) + "\n")
    return "samples.tsv"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda raw: "# a comment\n" + raw, id="comment"),
        pytest.param(lambda raw: yaml.safe_dump(yaml.safe_load(raw), sort_keys=True), id="key order"),
        pytest.param(lambda raw: raw.replace("steps: [3]", "steps: [3.0]"), id="20 -> 20.0"),
        pytest.param(
            lambda raw: yaml.safe_dump(Config.build(yaml.safe_load(raw)).model_dump(mode="json")), id="defaults"
        ),
    ],
)
def test_writing_the_same_config_otherwise_reruns_nothing(needed, finished, text):
    Path("tests/config/other.yaml").write_text(text((finished / TINY).read_text()))
    assert needed(configfile="tests/config/other.yaml") == set()


def test_touching_code_config_tables_and_environments_reruns_nothing(needed, finished):
    for name in ("Snakefile", "workflow", "config", "envs", "profiles", "tests/config"):
        for path in [finished / name, *(finished / name).rglob("*")]:
            path.touch()
    assert needed() == set()


def test_a_copy_of_the_folder_elsewhere_reruns_nothing_and_then_just_what_is_edited(finished, snakemake, tmp_path):
    copy = tmp_path / "moved"
    shutil.copytree(finished, copy, symlinks=True, copy_function=shutil.copy2)
    assert "Nothing to be done" in snakemake(copy, "--configfile", TINY).stderr
    (copy / TINY).write_text((copy / TINY).read_text().replace("dpi: 60", "dpi: 61"))
    done = snakemake(copy, "--configfile", TINY, "-n", "--quiet", "rules")
    assert "figures_loss_curve" in done.stdout
    assert "train_model" not in done.stdout


def test_a_deleted_figure_is_drawn_again_and_its_deleted_input_made_again(needed, finished):
    figure = finished / "results/tiny/figures/loss_curve-tiny.png"
    loss = finished / "results/tiny/train/tiny/loss.csv"
    moved = {path: path.with_suffix(".kept") for path in (figure, loss)}
    try:
        figure.rename(moved[figure])
        assert needed() == {"figures_loss_curve"}
        loss.rename(moved[loss])
        assert "train_model" in needed()
    finally:
        for path, kept in moved.items():
            if kept.exists():
                kept.rename(path)
    assert needed() == set()


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("data/simulated/manifest.json", "data_prepare"),
        ("data/simulated/volumes", "data_prepare"),
        ("train/tiny/weights.safetensors", "train_model"),
        ("sample/tiny/ddim-3-fp32_strict", "sample_volumes"),
        ("metrics/tiny/ddim-3-fp32_strict.csv", "metrics_score"),
    ],
)
def test_whatever_lasts_is_made_again_where_it_was_deleted(needed, finished, path, rule):
    path = finished / "results/tiny" / path
    kept = path.with_name(f"kept-{path.name}")
    path.rename(kept)
    try:
        assert rule in needed()
    finally:
        kept.rename(path)
    assert needed() == set()


def test_why_names_the_setting(finished, monkeypatch):
    monkeypatch.chdir(finished)
    Path("tests/config/why.yaml").write_text(yaml.safe_dump(changed(tiny(finished), "sample.eta", 0.5)))
    found = dict(reasons("tests/config/why.yaml"))
    assert found["sample_volumes model=tiny sampler=ddim steps=3 variant=fp32_strict"] == ["sample.eta: 1.0 -> 0.5"]
    assert found["metrics_score model=tiny sampler=ddim steps=3 variant=fp32_strict"] == [
        "reads what another job above makes anew"
    ]
    assert "train_model model=tiny" not in found


def test_why_names_the_module(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    monkeypatch.setattr("genaccel.why.ROOT", finished / "workflow/src")
    path = finished / "workflow/src/genaccel/train/ema.py"
    before, stamp = path.read_bytes(), path.stat()
    try:
        path.write_bytes(before + b"\n_edited = 1\n")
        print_reasons(TINY)
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    shown = capsys.readouterr()
    assert shown.out.startswith("train_model model=tiny: module genaccel.train.ema was edited\n")
    assert not shown.err


def test_why_says_when_there_is_nothing(finished, monkeypatch, capsys):
    monkeypatch.chdir(finished)
    print_reasons(TINY)
    assert capsys.readouterr().out == "Nothing would run: everything is up to date.\n"


def test_why_shows_a_fault_in_the_study(finished, monkeypatch):
    monkeypatch.chdir(finished)
    Path("tests/config/why.yaml").write_text("trian: {}\n")
    with pytest.raises(SpecError, match="trian: unknown key; did you mean `train`"):
        reasons("tests/config/why.yaml")


def test_a_broken_sample_table_is_an_error_and_never_up_to_date(finished, snakemake):
    (finished / "broken.tsv").write_text("subject\tmask\tt2\n")
    raw = changed(tiny(finished), "data.simulated.samples", "broken.tsv")
    (finished / "tests/config/broken.yaml").write_text(yaml.safe_dump(raw))
    done = snakemake(finished, "--configfile", "tests/config/broken.yaml", check=False)
    assert done.returncode != 0
    assert "broken.tsv has no column `t1`" in done.stderr


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("train.weights", "gone.pt", "models.tiny: train.weights"),
        (
            "metrics.features",
            {"network": "medicalnet_10", "weights": "gone.pth", "weights_sha256": "0" * 64},
            "metrics.features.weights",
        ),
    ],
)
def test_a_named_file_that_is_missing_is_an_error_and_never_up_to_date(finished, snakemake, path, value, key):
    raw = changed(tiny(finished), path, value)
    (finished / "tests/config/gone.yaml").write_text(yaml.safe_dump(raw))
    done = snakemake(finished, "--configfile", "tests/config/gone.yaml", check=False)
    assert done.returncode != 0
    assert f"{key}: there is no file gone.pt" in done.stderr


def test_a_missing_module_is_an_error_that_names_the_import(finished, snakemake):
    path = finished / "workflow/src/genaccel/train/ema.py"
    before, stamp = path.read_bytes(), path.stat()
    try:
        path.write_bytes(before + b"\nimport genaccel.gone\n")
        done = snakemake(finished, "--configfile", TINY, "-n", check=False)
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert done.returncode != 0
    assert "ema.py imports genaccel.gone" in done.stdout + done.stderr
