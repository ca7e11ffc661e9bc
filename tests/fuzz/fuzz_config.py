"""Fuzz the reader, the expansion and the editor of configurations; not collected by pytest, and run by hand (CONTRIBUTING.md).

    python tests/fuzz/fuzz_config.py FOLDER -max_total_time=600 -timeout=10 -dict=tests/fuzz/config.dict tests/corpus/configs

FOLDER collects the inputs that reach something new; libFuzzer's options may follow. What is looked for: an error other than the
one the interface names, a hang, an edit that does not read as it was meant or touches what is not its own, an edit to a file
that cannot be read. Which edits are tried follows from the input alone, so a finding is played again by its file.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["playbill.actors.edge.config", "playbill.actors.model"]):
    from attrs import evolve
    from playbill.actors.edge.config.edit import edit_text
    from playbill.actors.edge.config.env_file import parse_env_file
    from playbill.actors.edge.config.expand import ExpandError, expand
    from playbill.actors.edge.config.file import FileStore
    from playbill.actors.edge.config.jsonc import decode
    from playbill.actors.edge.config.read import Document, Reader
    from playbill.actors.model.config import Config, ServerEntry
    from playbill.actors.model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool, apply_edit
    from playbill.actors.model.errors import ConfigError, PlaybillError

NAMES = ["fetch", "github", "new one", "", 'q"', "a"]
TOOLS = ["t", "search", '"', "//", "\\", "é"]
ENVIRON = {"HOME": "/home/me", "A": "${A}", "TOKEN": "tok-en", "PLAYBILL_INPUT_TOKEN": "given"}
FOLDER = Path(tempfile.mkdtemp())
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[ \t\r\n]+|[{}\[\]:,]|[^ \t\r\n{}\[\]:,"/]+|.', re.DOTALL)
GAPS = [b"", b" ", b"\n", b"\r\n", b"\r", b"\n\t", b"\n    ", b" // x\n", b"/* \n */", b"/*,}*/", b"//\r\n"]
VALUES = [
    b'"t"',
    b'""',
    b"null",
    b"true",
    b"false",
    b"5",
    b"1e400",
    b"[]",
    b"{}",
    b'["t"]',
    b'["t", "t"]',
    b'"${A:-b}"',
    b'"npx"',
]
MEMBERS = [
    b'"a": {"command": "c"}',
    b'"mcpServers": {}',
    b'"tools": {"exclude": ["t"]}',
    b'"disabledTools": ["t"]',
    b'"disabled": true',
    b'"enabled": false',
    b'"isActive": false',
    b'"tools": ["t"]',
    b'"url": "https://h"',
    b'"enabledTools": []',
    b'"command": "c"',
    b'"env": {"A": "${A}"}',
    b'"inputs": [{"id": "t"}]',
    b'"tools": {"pin": [], "include": ["t"]}',
]


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Mostly changes that leave JSONC what it is; sometimes any change."""
    rng = random.Random(seed)
    tokens = TOKEN.findall(data)
    if rng.random() < 0.2 or not tokens:
        changed: bytes = atheris.Mutate(data, most)
        return changed
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(tokens))
        token, kind = tokens[at], rng.randrange(6)
        if token.isspace() and kind < 3:
            tokens[at] = rng.choice(GAPS)
        elif token in (b"{", b",") and kind < 4:
            # Both places where a member may stand, with a comma on the side where another one is.
            member = rng.choice(GAPS) + rng.choice(MEMBERS) + rng.choice(GAPS)
            tokens[at] = token + member + b"," if token == b"{" or kind else b"," + member + token
        elif token[:1] == b'"' and kind < 2:
            tokens[at] = rng.choice(VALUES)
        elif token in (b"[", b"]", b"{", b"}", b",", b":") and kind < 5:
            tokens[at] = rng.choice(GAPS) + token + rng.choice(GAPS)
        elif kind == 5:
            del tokens[at : at + rng.choice((1, 2, 4))]
            tokens = tokens or [b"{}"]
        else:
            tokens[at] = token + rng.choice((b",", b"", b" ", *VALUES[:2]))
    return b"".join(tokens)[:most]


def an_edit(rng: random.Random, config: Config) -> Edit:
    """Some edit, mostly of a server that is there."""
    names = [each.name for each in config.servers]
    name = rng.choice(names) if names and rng.random() < 0.8 else rng.choice(NAMES)
    tool, on = rng.choice(TOOLS), rng.random() < 0.5
    entry = ServerEntry(name, command="c", args=("//", '"'), exclude=("t",), timeout=1500.5, headers={})
    kinds: list[Edit] = [
        SetTool(name, tool, on),
        SetPin(name, tool, on),
        SetEnabled(name, on),
        AddServer(entry, replace=on),
        RemoveServer(name),
    ]
    return rng.choice(kinds)


def said(config: Config) -> list[ServerEntry]:
    """What a configuration says, wherever it says it; what is declared beside the servers does not count."""
    return [
        evolve(e, line=None, source=None, inputs=(), error=None if e.error is None else "wrong") for e in config.servers
    ]


def check_edit(text: str, before: Document, edit: Edit) -> str:
    """Do an edit and hold it against its meaning; the text after it."""
    after, (refused,) = edit_text(text, [edit])
    if refused is not None:
        assert after == text, "a refused edit changed the text"
        return text
    meant = apply_edit(before.config, edit)
    assert said(Reader().read(after).config) == said(meant), "the new text does not say what was meant"
    if meant is before.config:
        assert after == text, "an edit that changes nothing changed the text"
    there = before.member(edit.server)
    if there is not None and not isinstance(edit, RemoveServer):
        behind = len(text) - there.end
        assert after[: there.at] == text[: there.at], "something before the entry changed"
        assert after[len(after) - behind :] == text[there.end :], "something behind the entry changed"
    return after


def check_error(error: PlaybillError) -> None:
    """It is one line."""
    assert len(str(error).splitlines()) == 1, "an error of more than one line"


def check_refused_file(data: bytes) -> None:
    """A file that cannot be read is not written."""
    file = FOLDER / "mcp.json"
    file.write_bytes(data)
    for edit in (SetTool("fetch", "t", False), AddServer(ServerEntry("new", command="c"))):
        try:
            FileStore(file, fsync=False).edit([edit])
        except ConfigError:
            pass
        else:
            raise AssertionError("an edit of a file that cannot be read was not refused")
    assert file.read_bytes() == data, "a file that cannot be read was written"


def one_input(data: bytes) -> None:
    """Read, expand, edit."""
    rng = random.Random(zlib.crc32(data))
    try:
        text = decode(data)
        document = Reader("f").read(text)
    except ConfigError as error:
        check_error(error)
        if rng.random() < 0.02 and data.strip(b"\xef\xbb\xbf \t\r\n\0"):
            check_refused_file(data)
        return
    assert text.encode() == data
    for entry in document.config.servers:
        if entry.error is None:
            try:
                expand(evolve(entry, env_file=None), environ=ENVIRON)
            except ExpandError as error:
                check_error(error)
    with suppress(ValueError):
        parse_env_file(text)
    for _ in range(4):
        try:
            edit = an_edit(rng, document.config)
            text = check_edit(text, document, edit)
        except PlaybillError:
            raise AssertionError("an edit ended otherwise than done or refused") from None
        document = Reader("f").read(text)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input, custom_mutator=mutate)
    atheris.Fuzz()
