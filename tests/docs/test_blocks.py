"""Every code block of the documents is run, read or parsed by some test; the few that cannot be say why, and are counted here.

Python blocks are run by `tests/house/test_readme.py`, which names who runs the rest; `py` blocks are parts of files that are
run, `console` blocks are played by `test_transcripts.py`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from playbill.actors.cli.app import app
from playbill.actors.edge.config.read import read_config

from .markdown import ALL, DOCS, DOCUMENTS, ROOT, Block, prose

LANGUAGES = {"python", "py", "json", "sh", "console", "text", "{eval-rst}"}
NOT_RUN = {
    "docs/quickstart.md": 2,  # an installation; the demo, which the picture is held against
}


def of(*languages: str) -> list[object]:
    return [pytest.param(block, id=block.place) for block in ALL if block.language in languages]


def test_every_block_says_what_it_is() -> None:
    assert [block.place for block in ALL if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_hides_in_an_indented_block(path: Path) -> None:
    hidden, before, in_list = [], "", False
    for number, line in prose(path):
        if line.strip() and not line.startswith(" "):
            in_list = bool(re.match(r"([-*+]|\d+\.) ", line))
        if line.startswith("    ") and not before.strip() and not in_list:
            hidden.append(f"{path.name}:{number}")
        before = line
    assert hidden == []


def test_blocks_that_do_not_run_say_why_and_are_as_many_as_here() -> None:
    marked = [block for block in ALL if "not run" in block.marks]
    assert [block.place for block in marked if len(block.marks["not run"].split()) < 3] == []
    counted: dict[str, int] = {}
    for block in marked:
        name = str(block.path.relative_to(ROOT))
        counted[name] = counted.get(name, 0) + 1
    assert counted == NOT_RUN


def test_python_is_where_it_is_run() -> None:
    runnable = [block for block in ALL if block.language == "python"]
    assert runnable
    assert [
        block.place for block in runnable if block.path.parent not in (ROOT, DOCS) or "not run" in block.marks
    ] == []


@pytest.mark.parametrize("block", of("py"))
def test_a_part_of_a_file_is_still_in_that_file(block: Block) -> None:
    assert block.text in (ROOT / block.marks["from"]).read_text("utf-8")


@pytest.mark.parametrize("block", of("json"))
def test_a_config_is_read_without_an_error(block: Block) -> None:
    value = json.loads(block.text)
    assert {"mcpServers", "servers"} & value.keys(), "a block that is no config needs a test of its own"
    config = read_config(block.text, "mcp.json")
    assert config.error is None
    assert config.servers
    assert [entry.error for entry in config.servers if entry.error is not None] == []


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line of shell, in words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("&|;"):
            yield words
            words = []
        else:
            words.append(word)
    if words:
        yield words


@pytest.mark.parametrize("block", of("sh"))
def test_a_command_is_one_that_the_grammar_takes(block: Block) -> None:
    for line in block.text.splitlines():
        for program, *words in commands(line):
            if Path(program).name == "playbill":
                app.parse_args(words, exit_on_error=False, print_error=False)
            else:
                assert block.marks.keys() & {"not run", "command"}, f"{line}: only `playbill` is checked here"


PLACEHOLDER = re.compile(r"[A-Z]+…?|…")


def spoken() -> Iterator[tuple[str, list[str]]]:
    """The command lines that stand in sentences and tables, with where."""
    for path in DOCUMENTS:
        for number, line in prose(path):
            for found in re.finditer(r"(?<!`)`(?:[^`]*/)?playbill ([^`]+)`(?!`)", line):
                yield f"{path.relative_to(ROOT)}:{number}", found[1].replace("\\|", "|").split()


def test_a_command_in_a_sentence_has_a_verb_and_options_that_there_are() -> None:
    verbs = [name for name in app if not name.startswith("-")]
    known = {verb: {name for each in app[verb].assemble_argument_collection() for name in each.names} for verb in verbs}
    every = {name for names in known.values() for name in names} | {"--help", "--version"}
    wrong, seen = [], 0
    for place, words in spoken():
        seen += 1
        verb = next((word for word in words if not word.startswith("-")), "VERB")
        if not PLACEHOLDER.fullmatch(verb) and verb not in known:
            wrong.append(f"{place}: no verb {verb}")
        ours = words[: words.index("--")] if "--" in words else words
        names = known.get(verb, set()) | {"--help", "--version"} if verb in known else every
        wrong += [
            f"{place}: {verb} has no {word}"
            for word in (each.split("=")[0] for each in ours)
            if word.startswith("--") and word not in names
        ]
    assert wrong == []
    assert seen > 20
