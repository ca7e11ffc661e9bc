"""The `console` blocks are played, each page's in one folder: what they show is what comes.

A line that begins with ``$ `` is typed; below it stands what is printed. ``…`` is anything within a line; alone on one, any
lines.
A block with a mark ``file: NAME`` before it is that file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from .markdown import ALL, ROOT

PAGES = list(dict.fromkeys(block.path for block in ALL if block.language == "console"))


def parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a transcript, each with the lines below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def pattern(shown: list[str]) -> str:
    """A regular expression for the output that is shown."""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + r" *\n"
        for line in shown
    ]
    return "".join(lines)


def test_the_pattern_takes_what_is_shown_and_nothing_else() -> None:
    assert re.fullmatch(pattern(["a", "…", "b … d", ""]), "a\nx\ny\nb c d\n\n")
    assert re.fullmatch(pattern(["a", "…"]), "a\n")
    assert not re.fullmatch(pattern(["a"]), "a\nb\n")
    assert not re.fullmatch(pattern(["a.c"]), "abc\n")


def test_there_is_a_page_with_a_transcript() -> None:
    assert ROOT / "docs" / "quickstart.md" in PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_is_typed_prints_what_is_shown(path: Path, tmp_path: Path) -> None:
    # `playbill`, and the `python` of the page's configs, are those of this environment.
    scripts = sysconfig.get_path("scripts")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    for block in (block for block in ALL if block.path == path):
        if "file" in block.marks:
            (tmp_path / block.marks["file"]).write_text(block.text, "utf-8")
        if block.language != "console":
            continue
        for command, shown in parts(block.text):
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert re.fullmatch(pattern(shown), done.stdout), f"{block.place}: $ {command}\n{done.stdout}"
