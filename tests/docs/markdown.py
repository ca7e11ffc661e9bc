"""The code blocks of the documents, each with the marks that stand before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "about" not in path.parts)]
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)$")
_MARK = re.compile(r"<!-- ([a-z ]+): (.*?) -->$")


@frozen
class Block:
    """A code block.

    Args:
        path: of the document.
        line: where its fence is, from 1.
        language: what stands behind the fence.
        text: what is in it.
        marks: of the comments ``<!-- KEY: VALUE -->`` on the lines before it.
    """

    path: Path
    line: int
    language: str
    text: str
    marks: Mapping[str, str]

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a document.

    Args:
        path: of the document.

    Raises:
        ValueError: a fence is not closed.
    """
    opened: tuple[int, str, str] | None = None
    inside: list[str] = []
    marks: dict[str, str] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if opened is not None:
            if line.strip() == opened[1]:
                yield Block(path, opened[0], opened[2], "".join(f"{each}\n" for each in inside), dict(marks))
                opened, marks = None, {}
            else:
                inside.append(line)
        elif fence := _FENCE.match(line):
            opened, inside = (number, fence["fence"], fence["language"].strip()), []
        elif mark := _MARK.match(line):
            marks[mark[1]] = mark[2]
        elif line.strip():
            marks = {}
    if opened is not None:
        raise ValueError(f"{path}:{opened[0]}: the block is not closed")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines outside the fenced blocks, with their numbers.

    Args:
        path: of the document.
    """
    covered = {
        number for block in blocks(path) for number in range(block.line, block.line + block.text.count("\n") + 2)
    }
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if number not in covered:
            yield number, line


ALL = [block for path in DOCUMENTS for block in blocks(path)]
