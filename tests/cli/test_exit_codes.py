"""The exit codes: each verb with each code that it can end with, as the table in the docs says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playbill.actors.cli import chaos as chaos_verb
from playbill.actors.cli.app import app
from playbill.actors.cli.errors import Exit
from playbill.actors.edge.config import file as file_module
from playbill.actors.testing.chaos import Judged
from playbill.actors.testing.plans import draw

from .conftest import shipped
from .test_scopes_and_trust import write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]

DOCS = Path(__file__).resolve().parents[2] / "docs" / "cli.md"

OK = {"clock": shipped("clock", tools={"exclude": ["wait"]})}
BAD = {**OK, "bad": {"comand": 3}}
DEAD = {**OK, "dead": {"command": "no-such-program"}}
STAGE = {
    "stage": {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "features" / "server.py"), "stdio"]}
}
BROKEN = None
LAZY = "import sys; sys.exit({})"


def _python(code: str) -> list[str]:
    return ["--", shipped("clock")["command"], "-c", code]


ROWS: list[tuple[str, int, dict[str, object] | None, list[str]]] = [
    ("list", 0, OK, []),
    ("list", 3, BAD, []),
    ("list", 3, BROKEN, []),
    ("tools", 0, OK, []),
    ("tools", 3, BAD, []),
    ("tools", 3, BROKEN, []),
    ("tools", 4, DEAD, []),
    ("tools", 5, OK, ["--budget", "1"]),
    ("why", 0, OK, ["clock/now"]),
    ("why", 0, OK, ["clock/wait"]),
    ("why", 0, BAD, ["bad"]),
    ("why", 3, BROKEN, ["clock"]),
    ("why", 4, DEAD, ["dead"]),
    ("call", 0, OK, ["clock/now"]),
    ("call", 1, OK, ["clock/now", '{"zone": "No/Where"}']),
    ("call", 1, OK, ["clock/wait"]),
    ("call", 3, BAD, ["bad/x"]),
    ("call", 3, BROKEN, ["clock/now"]),
    ("call", 4, DEAD, ["dead/x"]),
    ("call", 4, {"off": {"command": "x", "disabled": True}}, ["off/x"]),
    ("resources", 0, OK, []),
    ("resources", 3, BAD, []),
    ("resources", 4, DEAD, []),
    ("prompts", 0, OK, []),
    ("prompts", 3, BROKEN, []),
    ("prompts", 4, DEAD, ["dead"]),
    ("read", 0, STAGE, ["stage", "stage://notes"]),
    ("read", 1, OK, ["clock", "x://y"]),
    ("read", 3, BAD, ["bad", "x://y"]),
    ("read", 4, DEAD, ["dead", "x://y"]),
    ("prompt", 0, STAGE, ["stage", "audition", '{"part": "Yorick"}']),
    ("prompt", 1, OK, ["clock", "x"]),
    ("prompt", 3, BROKEN, ["clock", "x"]),
    ("prompt", 4, {"off": {"command": "x", "disabled": True}}, ["off", "x"]),
    ("add", 0, OK, ["new", "--", "x"]),
    ("add", 3, BROKEN, ["new", "--", "x"]),
    ("remove", 0, OK, ["clock"]),
    ("remove", 3, BROKEN, ["clock"]),
    ("enable", 0, OK, ["clock/wait"]),
    ("enable", 3, BROKEN, ["clock/wait"]),
    ("disable", 0, OK, ["clock"]),
    ("disable", 3, BROKEN, ["clock"]),
    ("trust", 0, OK, ["clock", "--yes"]),
    ("trust", 1, {"a": {"command": "x", "envFile": "${input:e}"}}, ["a", "--yes"]),
    ("trust", 3, BAD, ["bad"]),
    ("trust", 3, BROKEN, ["--all"]),
    ("login", 3, BROKEN, ["clock"]),
    ("login", 4, OK, ["clock"]),
    ("logout", 0, {"web": {"url": "http://127.0.0.1:9/mcp"}}, ["web"]),
    ("logout", 3, BROKEN, ["clock"]),
    ("logout", 4, OK, ["clock"]),
    ("check", 0, OK, []),
    ("check", 3, BAD, []),
    ("check", 3, DEAD, ["--strict"]),
    ("run", 0, OK, _python(LAZY.format(0))),
    ("run", 1, OK, _python(LAZY.format(1))),
    ("run", 3, BROKEN, _python(LAZY.format(0))),
    ("run", 4, OK, _python(LAZY.format(4))),
    ("run", 5, OK, _python(LAZY.format(5))),
    ("chaos", 0, OK, ["--seed", "4"]),
    ("completion", 0, OK, ["fish"]),
    ("help", 0, OK, ["add"]),
]
UNWRITABLE = [("add", ["new", "--", "x"]), ("remove", ["clock"]), ("enable", ["clock/wait"]), ("disable", ["clock"])]


@pytest.mark.parametrize(
    ("verb", "code", "servers", "words"), ROWS, ids=lambda value: value if isinstance(value, str) else None
)
def test_each_verb_ends_with_the_code_of_the_table(
    inside: Playbill, tmp_path: Path, verb: str, code: int, servers: dict[str, object] | None, words: list[str]
) -> None:
    config = tmp_path / ".mcp.json"
    config.write_text("{" if servers is None else json.dumps({"mcpServers": servers}))
    named = [] if verb in ("trust", "chaos", "completion", "help") else ["--config", str(config)]
    watch = ["--no-watch"] if verb == "run" else []
    done = inside(verb, *named, *watch, *words)
    assert done.returncode == code, done
    if code == 0:
        assert "playbill: unexpected" not in done.stderr
    elif verb != "run":
        assert done.stdout or done.stderr.startswith("playbill: ")


@pytest.mark.parametrize(("verb", "words"), UNWRITABLE, ids=lambda value: value if isinstance(value, str) else None)
def test_a_file_that_cannot_be_written_is_1(
    inside: Playbill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, words: list[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_module, "write_atomic", full)
    config = write(tmp_path / "mcp.json", **OK)
    before = config.read_bytes()
    done = inside(verb, "--config", config, *words)
    assert done.returncode == 1
    assert "not written" in done.stderr
    assert config.read_bytes() == before


def test_a_completion_that_cannot_be_written_is_1(
    inside: Playbill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").write_text("a file where a folder is looked for")
    monkeypatch.delenv("ZSH_CUSTOM", raising=False)
    done = inside("completion", "fish", "--install")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not written" in done.stderr


@pytest.mark.parametrize(("kind", "code"), [("crash", 10), ("liveness", 11), ("correctness", 12)])
def test_what_chaos_finds_has_codes_of_its_own(
    inside: Playbill, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    wrong = Judged(draw(1, "connection"), kind, ("it is wrong",), frozenset(), (), 1.0, 1)  # type: ignore[arg-type]
    monkeypatch.setattr(chaos_verb, "examine", lambda _: wrong)
    monkeypatch.setattr(chaos_verb, "shrunk", lambda _: wrong)
    assert inside("chaos", "--seed", "1").returncode == code


@pytest.mark.parametrize("verb", sorted(each for each in app if not each.startswith("-")))
def test_each_verb_ends_with_2_for_an_option_that_it_has_not(inside: Playbill, verb: str) -> None:
    done = inside(verb, "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("playbill: ")
    assert done.stderr.count("\n") == 1


def test_the_table_of_the_docs_is_what_is_tested() -> None:
    """A cell that says something has a row here, one that says nothing has none.

    Tests of their own have pick and demo, and a login that is had (oauth/test_verbs.py).
    """
    table = re.search(r"^\| verb \| 0 \| 1 .*\n\|[-|]+\n((?:\|.*\n)+)", DOCS.read_text("utf-8"), re.M)
    assert table is not None
    said = set()
    for line in table[1].splitlines():
        names, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        for verb in re.findall(r"`(\w+)`", names):
            said |= {(verb, code) for code, cell in zip((0, 1, 3, 4, 5), cells, strict=True) if cell != "–"}
    tested = {(verb, code) for verb, code, _, _ in ROWS if verb != "help"}
    tested |= {(verb, 1) for verb, _ in UNWRITABLE} | {("completion", 1)}
    own = {("login", 0), ("demo", 0), ("demo", 1), ("pick", 0), ("pick", 1), ("pick", 3)}
    assert said - own == tested - own


def test_each_code_is_in_the_docs() -> None:
    text = DOCS.read_text("utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    assert [code.name for code in Exit if not re.search(rf"\b{code.value}\b", text)] == []
