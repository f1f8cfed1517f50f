"""Whether the cluster is asked for the end of a job in a way that it can answer."""

from __future__ import annotations

import os

import pytest

from genaccel.site.accounting import keeps_accounts


@pytest.mark.parametrize(
    ("said", "keeps"),
    [
        ("AccountingStorageType   = accounting_storage/slurmdbd", True),
        ("AccountingStorageType   = accounting_storage/none", False),
        ("AccountingStorageType   = (null)", False),
        ("slurm_load_ctl_conf error: Unable to contact slurm controller", True),
    ],
)
def test_accounts_are_kept_unless_slurm_says_otherwise(tmp_path, monkeypatch, said, keeps):
    command = tmp_path / "scontrol"
    command.write_text(f"#!/bin/sh\necho 'Configuration data'\necho '{said}'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert keeps_accounts() is keeps


def test_a_real_slurm_without_accounts_says_so(cluster, monkeypatch):
    monkeypatch.setenv("PATH", cluster.env["PATH"])
    assert not keeps_accounts()
