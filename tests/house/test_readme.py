"""What the documents show runs: the two commands have the form promised, and every Python example is executed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from ..forked import run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
HAVE_TESTS_OF_THEIR_OWN = {
    "supervision.md": "tests/supervision/test_public.py",
    "picker.md": "tests/picker_view/test_docs.py",
}
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of one language in a Markdown text."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


EXAMPLES = [
    pytest.param(path, number, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    if path.name not in HAVE_TESTS_OF_THEIR_OWN
    for number, _ in enumerate(blocks(path.read_text("utf-8"), "python"))
]


@pytest.mark.parametrize(("name", "end"), [("demo", "playbill demo"), ("test", "pytest -n 4 --dist worksteal")])
def test_the_command_is_one_line_and_makes_its_own_environment(name: str, end: str) -> None:
    marked = rf"^<!-- command: {name} -->\n```sh\n(.*?)```$"
    (found,) = re.findall(marked, README, re.DOTALL | re.MULTILINE)
    assert found.count("\n") == 1
    steps = found.strip().split(" && ")
    assert steps[0] == "python3 -m venv .venv"
    assert all(step.startswith(".venv/bin/") for step in steps[1:])
    assert steps[-1].endswith(end)


def test_the_two_commands_come_first() -> None:
    assert README.index("<!-- command: demo -->") < README.index("<!-- command: test -->") < README.index("\n## ")


def test_every_document_has_no_dead_link_into_the_checkout() -> None:
    texts = [*DOCUMENTS, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"))]
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in texts
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text("utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert dead == []


@pytest.mark.parametrize(("page", "test"), HAVE_TESTS_OF_THEIR_OWN.items())
def test_who_runs_the_other_examples_names_their_page(page: str, test: str) -> None:
    assert page in (ROOT / test).read_text("utf-8")


@pytest.mark.parametrize(("path", "number"), EXAMPLES)
def test_the_example_runs(path: Path, number: int, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    for config in blocks(text, "json"):
        (tmp_path / "mcp.json").write_text(config, "utf-8")
    # `python`, in the document's mcp.json, is the one that has playbill.
    here = str(Path(sys.executable).parent)
    path_here = f"{here}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = run(
        [sys.executable, "-c", blocks(text, "python")[number]],
        timeout=60,
        cwd=tmp_path,
        # A warning is an error from the first import on, as with ``-W error``.
        env={**os.environ, "PATH": path_here, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""
