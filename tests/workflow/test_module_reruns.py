"""What runs again after an edit to the library: the rules that import the edited module, and what follows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from genaccel.code import closure, code
from genaccel.config.keys import followed_by

ENTRIES = {
    "data_simulate": ["genaccel.data.simulate"],
    "data_prepare": ["genaccel.data"],
    "train_model": ["genaccel.train"],
    "sample_volumes": ["genaccel.sample", "genaccel.sample.samplers.ddim", "genaccel.med_ddpm.unet"],
    "metrics_real": ["genaccel.metrics.real", "genaccel.metrics.features.deepbet"],
    "metrics_segmenter": ["genaccel.metrics.segmenter"],
    "metrics_score": ["genaccel.metrics", "genaccel.metrics.features.deepbet"],
    "metrics_compare": ["genaccel.metrics.compare"],
    "metrics_table": ["genaccel.table"],
    "figures_subjects": ["genaccel.figures.subjects"],
    "figures_qc_montage": ["genaccel.figures.qc_montage"],
    "figures_loss_curve": ["genaccel.figures.loss_curve"],
    "figures_sample_montage": ["genaccel.figures.sample_montage"],
    "figures_metric_table": ["genaccel.figures.metric_table"],
    "figures_sampler_steps": ["genaccel.figures.sampler_steps"],
    "figures_provenance": ["genaccel.figures.provenance"],
    "figures_speedups": ["genaccel.figures.speedups"],
    "train_curves": ["genaccel.train.curves"],
    "train_curves_table": ["genaccel.table"],
    "figures_training_curves": ["genaccel.figures.training_curves"],
    "optimize_measure": ["genaccel.optimize", "genaccel.optimize.cell", "genaccel.med_ddpm.unet"],
    "optimize_table": ["genaccel.table"],
    "profile_model": ["genaccel.profile", "genaccel.med_ddpm.unet"],
    "profile_table": ["genaccel.table"],
    "figures_kernel_breakdown": ["genaccel.figures.kernel_breakdown"],
    "figures_instruction_mix": ["genaccel.figures.instruction_mix"],
    "figures_memory_system": ["genaccel.figures.memory_system"],
    "figures_warp_states": ["genaccel.figures.warp_states"],
    "figures_priority_scores": ["genaccel.figures.priority_scores"],
    "figures_counters_change": ["genaccel.figures.counters_change"],
}
ABSENT = followed_by({"optimize_measure", "profile_model", "train_curves"}) - {"figures_provenance"}
"""Rules without a job in the tiny study, which measures and profiles nothing, and trains one model."""
SOURCE = Path(__file__).parent.parent.parent / "workflow" / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in (SOURCE / "genaccel").rglob("*.py")
)
CLOSURES = {rule: closure(*entries) for rule, entries in ENTRIES.items()}


def importers(module: str) -> frozenset[str]:
    return frozenset(rule for rule, modules in CLOSURES.items() if module in modules)


EXAMPLES = sorted({importers(module): module for module in MODULES}.values())
"""One module for each set of rules: what Snakemake sees of an edit is the rules' hashes alone."""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A copy of the library, to be edited."""
    copy = tmp_path_factory.mktemp("library") / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return copy


@pytest.fixture(scope="module")
def hashes(library) -> dict[str, str]:
    return {rule: code(*entries, root=library) for rule, entries in ENTRIES.items()}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_changes_the_hashes_of_the_rules_that_import_it(library, hashes, module):
    importing = importers(module)
    asked = [*sorted(importing)[:1], *sorted(set(ENTRIES) - importing)[:1]]
    with edited(library, module):
        changed = {rule for rule in asked if code(*ENTRIES[rule], root=library) != hashes[rule]}
    assert changed == importing & set(asked)


@pytest.mark.parametrize("module", EXAMPLES)
def test_a_module_reruns_exactly_the_rules_that_import_it(needed, finished, module):
    with edited(finished / "workflow/src", module):
        assert needed() == followed_by(importers(module) - ABSENT) - ABSENT


@contextmanager
def edited(root: Path, module: str) -> Iterator[None]:
    """The module with a line more, and its old time stamp after that."""
    base = root / module.replace(".", "/")
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    before, stamp = path.read_bytes(), path.stat()
    try:
        path.write_bytes(before + b"\n_edited = 1\n")
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
