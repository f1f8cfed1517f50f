"""The hash of the code behind a rule."""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize

import pytest

from genaccel.code import ROOT, CodeError, closure, code, module_hashes, without_comments

ENTRIES = [
    "genaccel.data",
    "genaccel.data.simulate",
    "genaccel.train",
    "genaccel.sample",
    "genaccel.metrics",
    "genaccel.table",
    "genaccel.figures.loss_curve",
    "genaccel.figures.qc_montage",
    "genaccel.figures.sample_montage",
    "genaccel.figures.metric_table",
]


@pytest.fixture
def package(tmp_path):
    """A small library: stage -> loop -> (nested import of) deep; other stands apart."""

    def write(name: str, text: str) -> None:
        path = tmp_path / "genaccel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("__init__.py", "")
    write("stage/__init__.py", "")
    write("stage/__main__.py", "from genaccel.stage import loop\nimport os\n")
    write(
        "stage/loop.py",
        '"""Doc."""\n\ndef f():\n    """Doc."""\n    from genaccel.deep import g\n    return g  # why\n',
    )
    write("deep.py", "from . import sibling\ng = sibling.h\n")
    write("sibling.py", "h = 1\n")
    write("other.py", "x = 1\n")
    return tmp_path, write


def test_the_closure_follows_imports_wherever_they_stand(package):
    root, _ = package
    assert closure("genaccel.stage", root=root) == {
        "genaccel",
        "genaccel.stage",
        "genaccel.stage.__main__",
        "genaccel.stage.loop",
        "genaccel.deep",
        "genaccel.sibling",
    }


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            "stage/loop.py",
            '# New\n"""Other doc."""\n\n\ndef f():\n    """Longer\n    doc."""\n\n'
            "    from genaccel.deep import g\n    return g\n",
        ),
        ("sibling.py", "\nh = 1   # a reason\n\n"),
        ("other.py", "x = 2\n"),
    ],
)
def test_comments_docstrings_blank_lines_and_other_modules_do_not_count(package, module, text):
    root, write = package
    before = code("genaccel.stage", root=root)
    write(module, text)
    assert code("genaccel.stage", root=root) == before


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("sibling.py", "h = 2\n"),
        ("deep.py", "from . import sibling\ng = -sibling.h\n"),
        ("__init__.py", "import os\n"),
        ("stage/loop.py", 'def f():\n    return "text # no comment"\n'),
        ("stage/loop.py", 'def f():\n    return """text\n\n    no docstring"""\n'),
    ],
)
def test_an_edit_anywhere_in_the_closure_counts(package, module, text):
    root, write = package
    before = code("genaccel.stage", root=root)
    write(module, text)
    assert code("genaccel.stage", root=root) != before


def test_a_hash_sign_inside_text_counts(package):
    root, write = package
    write("sibling.py", 'h = """a # b"""\n')
    before = code("genaccel.stage", root=root)
    write("sibling.py", 'h = """a # c"""\n')
    assert code("genaccel.stage", root=root) != before


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('a = "# \\" #"  # b\nc = \'#"\'  # d\n', id="quotes"),
        pytest.param('a = """# "" \\""" #"""  # b\n# c "\nd = 1\n', id="three quotes"),
        pytest.param("a = r'\\' # '  # b\nc = f'{1:#x}#' 'x\\\n# y'  # d\n", id="raw, formatted, continued"),
        pytest.param('a = ""  # it\'s\nb = """"""#"""\n', id="empty"),
        *(pytest.param(path.read_text(), id=path.name) for path in sorted(ROOT.glob("genaccel/*.py"))),
    ],
)
def test_comments_end_where_pythons_own_tokenizer_has_them(text):
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    assert without_comments(text).splitlines() == lines


@pytest.mark.parametrize(
    "around",
    [
        "if x:\n    {}",
        "if x:\n    pass\nelif y:\n    {}",
        "for x in y:\n    pass\nelse:\n    {}",
        "while x:\n    with y:\n        {}",
        "try:\n    {}\nfinally:\n    pass",
        "try:\n    pass\nexcept E:\n    {}",
        "try:\n    pass\nfinally:\n    {}",
        "match x:\n    case 1:\n        {}",
        "class A:\n    async def f():\n        {}",
    ],
)
def test_an_import_inside_any_statement_counts(package, around):
    root, write = package
    write("stage/loop.py", around.format("import genaccel.other") + "\n")
    assert "genaccel.other" in closure("genaccel.stage", root=root)


def test_a_missing_module_is_an_error_that_names_the_import(package):
    root, write = package
    write("deep.py", "import genaccel.gone\n")
    with pytest.raises(CodeError, match=r"deep\.py imports genaccel\.gone"):
        code("genaccel.stage", root=root)


def test_module_hashes_tell_which_module_changed(package):
    root, write = package
    before = module_hashes("genaccel.stage", root=root)
    write("deep.py", "from . import sibling\ng = 2\n")
    after = module_hashes("genaccel.stage", root=root)
    assert [m for m in after if after[m] != before[m]] == ["genaccel.deep"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_all_that_a_job_imports_is_in_its_hash(entry):
    program = (
        "import importlib.util, sys\n"
        f"name = {entry!r}\n"
        "name += '.__main__' if importlib.util.find_spec(name).submodule_search_locations else ''\n"
        "import importlib; importlib.import_module(name)\n"
        "print(*[m for m in sys.modules if m.split('.')[0] == 'genaccel'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert set(done.stdout.split()) <= closure(entry)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "figures" in e or e == "genaccel.table"])
def test_figures_import_no_training_code(entry):
    assert not [m for m in closure(entry) if m.startswith(("genaccel.train", "genaccel.med_ddpm", "genaccel.device"))]


def test_the_hash_leaves_out_what_a_stage_does_not_import():
    assert "genaccel.config.compose" not in set().union(*map(closure, ENTRIES))
