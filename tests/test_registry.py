"""Registries and seeds: what is found by name, and what a name alone decides."""

from __future__ import annotations

import hashlib
import importlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.registry import Registry
from genaccel.sample.samplers import SAMPLERS
from genaccel.seeds import derive_seed
from genaccel.spec import SpecError


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A package of two implementations."""
    package = tmp_path / "methods_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("def first(x, steps=1): return x + steps\n")
    (package / "second.py").write_text("def second(x): return -x\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("methods_of_a_test")]:
        monkeypatch.delitem(sys.modules, name)
    return Registry("method", "methods_of_a_test", str(package / "__init__.py"))


def test_every_module_of_the_package_is_an_implementation(registry):
    assert registry.names() == ["first", "second"]
    assert registry["first"](1) == 2


def test_adding_one_is_adding_a_file(registry, tmp_path):
    (tmp_path / "methods_of_a_test/third.py").write_text("def third(x): return 3 * x\n")
    importlib.invalidate_caches()
    assert registry["third"](2) == 6


def test_names_and_options_are_known_without_importing_anything(registry):
    assert registry.options("first") == {"x", "steps"}
    assert registry.module("second") == "methods_of_a_test.second"
    assert "methods_of_a_test.first" not in sys.modules


def test_an_unknown_name_is_answered_with_the_nearest(registry):
    with pytest.raises(SpecError, match="unknown method 'frist'; did you mean `first`"):
        registry["frist"]


@pytest.mark.parametrize(("sampler", "options"), [("ddpm", set()), ("ddim", {"steps", "eta"})])
def test_a_samplers_signature_says_which_settings_it_uses(sampler, options):
    assert SAMPLERS.options(sampler) - {"denoise", "x", "schedule", "noise"} == options


@given(st.integers(0, 2**31), st.lists(st.one_of(st.integers(), st.text()), max_size=4))
def test_a_seed_is_the_same_for_the_same_use_and_fits_every_generator(seed, names):
    assert derive_seed(seed, *names) == derive_seed(seed, *names)
    assert 0 <= derive_seed(seed, *names) < 2**63


def test_a_seed_differs_by_use_subject_and_number():
    seeds = {
        derive_seed(s, use, subject, k) for s in (0, 1) for use in ("a", "b") for subject in ("x", "y") for k in (0, 1)
    }
    assert len(seeds) == 16


def test_a_seed_never_changes_between_versions():
    digest = hashlib.sha256(b"0\0sample\0sim-0001\x000").digest()
    assert derive_seed(0, "sample", "sim-0001", 0) == int.from_bytes(digest[:8], "big") >> 1
