import html
import re

import pytest

from genaccel.figures.provenance import main
from genaccel.measurement import Result, Run, write_run

RECORD = {
    "device": {"name": "NVIDIA H200", "driver": "580.1"},
    "torch_build": "2.13.0+cu130",
    "commit": "0123456789abcdef0123",
    "dirty": False,
    "precision": {"matmul": "ieee", "autocast": "off"},
    "feature_network": {"name": "deepbet", "sha256": "de8ee7c69654d0dd", "dimension": 240},
    "weights_sha256": "4285c3c830839b1c",
    "environment_sha256": "aaaa5555bbbb6666",
    "slurm": {},
}


@pytest.fixture
def page(make_spec, tmp_path):
    def page(*records, stage="metrics"):
        paths = []
        for number, record in enumerate(records):
            run = Run(
                stage=stage,
                model="tiny",
                variant="ddim",
                device="nvidia-h200",
                spec={"steps": number + 1},
                workload={},
                provenance=record,
                results=(Result(metric="ssim", unit="1", values=(0.5,)),),
            )
            paths.append(tmp_path / f"{number}.json")
            write_run(paths[-1], run)
        out = tmp_path / "provenance.html"
        main(["--spec", make_spec("demo"), "--code", "c@0", "--out", str(out), *map(str, paths)])
        written = out.read_text("ascii")
        return written, html.unescape(re.sub(r"<[^>]+>", " ", written))

    return page


def test_a_run_says_what_it_takes_to_repeat_it(page):
    text = page(RECORD)[1]
    stated = ("NVIDIA H200, 1 used", "2.13.0+cu130", "0123456789ab", "autocast off, matmul ieee")
    assert all(part in text for part in (*stated, "deepbet de8ee7c69654", "4285c3c83083", "aaaa5555bbbb"))


def test_what_runs_share_stands_once_and_what_differs_beside_each(page):
    text = page(RECORD, RECORD | {"weights_sha256": "ffff"})[1].split("All that was recorded")[0]
    assert "The same for all 2 runs" in text
    assert text.count("NVIDIA H200") == 1
    assert re.search(r"metrics tiny ddim 2 steps\s.*ffff", text, re.DOTALL)


@pytest.mark.parametrize(("dirty", "said"), [(True, 3), (False, 0)])
def test_uncommitted_changes_are_pointed_out(page, dirty, said):
    text = page(RECORD | {"dirty": dirty})[1]
    assert text.count("uncommitted changes") + text.count("changes that no commit holds") == min(said, 2)


@pytest.mark.parametrize("key", ["commit", "weights_sha256", "feature_network", "precision", "environment_sha256"])
def test_what_was_not_recorded_is_said_to_be_so(page, key):
    text = page({name: value for name, value in RECORD.items() if name != key})[1]
    missing = "unknown: not run from a git checkout" if key == "commit" else "not recorded"
    assert missing in text


def test_all_that_was_recorded_can_be_opened_without_a_script(page):
    written, text = page(RECORD)
    assert "<details><summary>metrics tiny ddim 1 steps</summary>" in written
    assert re.search(r"provenance\.device\.driver\s+580\.1", text)
    assert not re.search(r"https?:|src=|<link|<script|@import|url\(", written)


def test_a_run_that_was_edited_is_an_error(page, make_spec, tmp_path, capsys):
    page(RECORD)
    path = tmp_path / "0.json"
    path.write_text(path.read_text().replace("H200", "H100"))
    with pytest.raises(SystemExit):
        main(["--spec", make_spec(), "--out", str(tmp_path / "x.html"), str(path)])
    assert "it was edited" in capsys.readouterr().err
