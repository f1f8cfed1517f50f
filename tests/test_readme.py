"""What README promises exists."""

from __future__ import annotations

import re

import pytest
import yaml

from genaccel.config.compose import compose

DOCUMENTS = ("README.md", "config/README.md", "results/README.md", "results/reference/README.md", "profiles/README.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_linked_files_exist(root, document):
    for target in re.findall(r"\]\(([^)#]+)\)", (root / document).read_text()):
        assert "://" in target or (root / document).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_files_exist(root, document):
    named = re.findall(
        r"`((?:config|envs|profiles|workflow|tests)/[\w./-]+\.(?:yaml|txt|md|py|smk))`", (root / document).read_text()
    )
    made_by_the_reader = {"config/mine.yaml", "config/samples.tsv"}
    assert [name for name in named if name not in made_by_the_reader and not (root / name).exists()] == []


def test_every_make_target_that_is_named_exists(root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.M))
    for document in DOCUMENTS:
        assert set(re.findall(r"`make ([a-z-]+)", (root / document).read_text())) <= targets, document


def test_the_example_config_is_valid(root):
    example = re.search(r"```yaml\n(.*?)```", (root / "README.md").read_text(), re.S).group(1)
    config = compose(yaml.safe_load(example))
    assert config.train.steps == 100_000
    assert config.models["med_ddpm"].data == "mine"
