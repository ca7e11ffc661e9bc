"""Whatever is mistyped, the nearest name is told: of verbs, options, servers, tools, profiles, scopes, shells, keys."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from playbill.actors.cli.app import _options, app

from .conftest import shipped

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

SLIPS = [
    ("a verb", ["tols"], "tools"),
    ("a verb to be explained", ["help", "chek"], "check"),
    ("an option", ["list", "--jsn"], "--json"),
    ("an option before the verb", ["--confg", "x", "list"], "--config"),
    ("an option with its value", ["--scpe=user", "list"], "--scope"),
    ("a letter", ["list", "-j"], "--json"),
    ("a letter before the verb", ["-t", "3", "list"], "--timeout"),
    ("a letter of another case", ["tools", "-P", "openai"], "--profile"),
    ("an option with one dash", ["list", "-json"], "--json"),
    ("a word with one dash", ["chaos", "-systemtic"], "--systematic"),
    ("an option of chaos", ["chaos", "--seed", "1", "--jbs", "2"], "--jobs"),
    ("help", ["list", "--hlp"], "--help"),
    ("an option of run", ["run", "--no-wacth", "--", "true"], "--no-watch"),
    ("a scope", ["list", "--scope", "usr"], "user"),
    ("a scope before the verb", ["--scope", "projct", "check"], "project"),
    ("a shell", ["completion", "bsh"], "bash"),
    ("a profile", ["tools", "--profile", "opnai"], "openai"),
    ("a profile of why", ["why", "clock", "--profile", "antropic"], "anthropic"),
    ("a profile of run", ["run", "--profile", "gemni", "--", "true"], "gemini"),
    ("a server to call", ["call", "clok/now"], "clock/now"),
    ("a server to explain", ["why", "clok"], "clock"),
    ("a server to remove", ["remove", "clok"], "clock"),
    ("a server to enable", ["enable", "clok"], "clock"),
    ("a server to disable", ["disable", "clok", "now"], "clock"),
    ("a server to trust", ["trust", "clok"], "clock"),
    ("a tool to call", ["call", "clock/nwo"], "clock/now"),
    ("a tool by its wire name", ["call", "mcp__clock__nwo"], "clock/now"),
    ("a tool to explain", ["why", "clock/nwo"], "now"),
    ("a tool of a server to call", ["call", "clock", "nwo"], "clock/now"),
    ("a server of a tool to call", ["call", "clok", "now", "{}"], "clock"),
    ("a tool of a server to explain", ["why", "clock", "nwo"], "now"),
    ("a server of a tool to explain", ["why", "clok", "now"], "clock"),
    ("a tool in a list", ["enable", "clock/wiat"], "wait"),
    ("a key of the config", ["check", "--strict"], "disabled"),
]


@pytest.mark.parametrize(
    ("words", "near"), [(words, near) for _, words, near in SLIPS], ids=[what for what, _, _ in SLIPS]
)
def test_the_nearest_name_is_told(inside: Playbill, write_config: WriteConfig, words: list[str], near: str) -> None:
    config = write_config(clock=shipped("clock", tools={"exclude": ["wait"]}, disbled=False))
    at = words.index("--") if "--" in words else len(words)
    named = (
        []
        if words[0] in ("completion", "help") or {"--scope", "--confg", "--jbs"} & {*words}
        else ["--config", str(config)]
    )
    done = inside(*words[:at], *named, *words[at:])
    assert re.search(rf"did you mean ['\"]?{re.escape(near)}\b", done.stdout + done.stderr, re.I), done
    assert done.returncode == {"check --strict": 3, "enable clock/wiat": 0}.get(" ".join(words), 2)


def test_an_option_that_is_like_none_is_told_without_a_guess(inside: Playbill) -> None:
    done = inside("--zzzzzz", "list")
    assert (done.returncode, done.stderr) == (2, "playbill: there is no option '--zzzzzz'; see playbill --help\n")


def test_every_option_may_stand_before_its_verb(inside: Playbill) -> None:
    """Which options a value follows is read from the verbs themselves; it is what their parser takes."""
    known = _options()
    assert {name for name, value in known.items() if not value} >= {"--json", "--quiet", "--verbose", "--no-watch"}
    assert {name for name, value in known.items() if value} >= {"--config", "--scope", "--timeout", "--env", "--seed"}
    done = inside("--config", "none.json", "--timeout=3", "--quiet", "list")
    assert (done.returncode, "none.json: there is no such file" in done.stderr) == (3, True)


def test_letters_stand_for_the_options_that_every_verb_has(inside: Playbill, write_config: WriteConfig) -> None:
    config = str(write_config(clock=shipped("clock")))
    for words in (["-c", config, "-q", "list"], ["list", "-c", config, "-v"], ["-v", "list", "-c", config]):
        done = inside(*words)
        assert (done.returncode, "clock" in done.stdout) == (0, True), done
        assert ("exit code 0" in done.stderr) == ("-v" in words)
    both = inside("list", "-qv", "-c", config)
    assert (both.returncode, "not both" in both.stderr) == (2, True)
    assert inside("-V").stdout == inside("--version").stdout != ""
    assert inside("list", "-h").stdout == inside("list", "--help").stdout != ""
    short = {name for name in _options() if not name.startswith("--")}
    assert short == {"-c", "-q", "-v"}


SIX = {"--config", "--scope", "--timeout", "--json", "--quiet", "--verbose"}


@pytest.mark.parametrize("verb", sorted(each for each in app if not each.startswith("-")))
def test_one_grammar_for_all_verbs(verb: str) -> None:
    names = {name for each in app[verb].assemble_argument_collection() for name in each.names}
    lacks = {
        "demo": {"--scope"},
        "help": {"--config", "--scope", "--timeout"},
        "chaos": {"--config", "--scope", "--timeout"},
        "completion": {"--config", "--scope", "--timeout"},
    }
    assert SIX - names == lacks.get(verb, set())


def test_who_forgets_the_dashes_before_a_servers_command_is_told_of_them(inside: Playbill) -> None:
    done = inside("add", "files", "--", "npx", "-y", "server-files", "--config", "x")
    assert "comes behind --" not in done.stderr
    done = inside("add", "files", "npx", "--yes")
    assert done.returncode == 2
    assert "; the command of a server comes behind --: playbill add NAME -- COMMAND ARGUMENTS" in done.stderr


ADD = "`playbill add NAME -- COMMAND` adds a server"


@pytest.mark.parametrize(
    "words", [["list"], ["check"], ["tools"], ["why", "a"], ["run", "--", "true"], ["remove", "a"]]
)
def test_who_has_no_config_is_told_where_it_was_looked_for_and_how_to_begin(
    inside: Playbill, tmp_path: Path, words: list[str]
) -> None:
    done = inside(*words)
    looked = f"no .mcp.json in {tmp_path} or its parents, and no {tmp_path}/home/.config/playbill/mcp.json"
    assert (done.returncode, done.stderr) == (3, f"playbill: {looked}; {ADD}, and makes the file\n")
    assert ADD in inside("list", "--scope", "project").stderr


@pytest.mark.parametrize("words", [["list"], ["tools"], ["run", "--no-watch", "--", "true"]])
def test_who_has_no_servers_is_told_how_to_add_one(
    inside: Playbill, write_config: WriteConfig, words: list[str]
) -> None:
    done = inside(*words[:1], "--config", str(write_config()), *words[1:])
    assert (done.returncode, ADD in done.stderr) == (0, True), done
