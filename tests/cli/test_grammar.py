"""The grammar: verbs, options and names, and what is said when one is mistyped."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from playbill.actors import Config, PluginModel, ServerEntry, ServerState, ToolState, UnknownTool
from playbill.actors.cli.app import _verb_first, run
from playbill.actors.cli.calling import _find, _sorted_out, origin_of
from playbill.actors.cli.errors import CliError
from playbill.actors.cli.names import subject
from playbill.actors.model.naming import wire_name

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("list --json", "list --json"),
        ("--json list", "list --json"),
        ("--config x list", "list --config x"),
        ("--config=x --json call a {}", "call --config=x --json a {}"),
        ("--scope user add a -- x --scope", "add --scope user a -- x --scope"),
        ("--help", "--help"),
        ("--json --help", "--help"),
        ("--config x --version", "--version"),
        ("", ""),
    ],
)
def test_options_may_stand_before_the_verb(typed: str, read: str) -> None:
    assert _verb_first(typed.split()) == read.split()


@pytest.mark.parametrize("typed", ["--json", "--config x", "--config", "--verbose --config=x", "--quiet -- list"])
def test_options_without_a_verb_say_what_is_missing(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(typed.split()) == 2
    out, err = capsys.readouterr()
    assert err == "playbill: there is no verb beside the options; see playbill --help\n"
    assert out.startswith('{"schema"') is (typed == "--json")


@pytest.mark.parametrize("before", ["--verbose", "--quiet", "--json"])
@pytest.mark.parametrize("verb", ["pick", "help", "--help", "--version"])
def test_an_alias_with_options_is_good_for_every_verb(
    before: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [before, verb] if verb != "pick" else [before, verb, "--help"]
    assert run(words) == 0
    assert len(capsys.readouterr().out) > 5


@pytest.mark.parametrize(
    ("typed", "where"),
    [
        (["lsit"], "playbill --help"),
        (["list", "--jsn"], "playbill list --help"),
        (["check", "extra"], "playbill check --help"),
        (["tools", "--budget", "many"], "playbill tools --help"),
        (["why"], "playbill why --help"),
    ],
)
def test_a_mistake_points_to_the_help_of_its_verb(
    typed: list[str], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == 2
    err = capsys.readouterr().err
    assert re.search(rf"[Ss]ee {where}", err), err
    assert "JSON with spaces" not in err


VERBS = ["demo", "list", "tools", "call", "resources", "prompts", "read", "prompt", "add", "remove"]
VERBS += ["enable", "disable", "trust", "check", "chaos", "help"]


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Example: playbill {verb}" in out
    assert "\x1b" not in out


def test_the_help_names_every_verb_and_the_exit_codes(playbill: Playbill) -> None:
    done = playbill("--help")
    assert done.returncode == 0
    assert all(word in done.stdout for word in (*VERBS, "--version", "Exit codes"))
    assert playbill().stdout == done.stdout
    assert playbill("help").stdout == done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_help_explains_a_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([verb, "--help"])
    asked = capsys.readouterr().out
    assert run(["help", verb]) == 0
    assert capsys.readouterr().out == asked


def test_help_for_a_verb_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "trst"]) == 2
    assert "did you mean 'trust'?" in capsys.readouterr().err


def test_the_version_is_the_distributions(playbill: Playbill) -> None:
    done = playbill("--version")
    assert (done.returncode, done.stdout) == (0, f"playbill {version('playbill')}\n")


@pytest.mark.parametrize(
    ("typed", "part"),
    [
        (["lsit"], 'Did you mean "list"?'),
        (["list", "--jsn"], "did you mean '--json'?"),
        (["list", "--timeout", "soon"], "--timeout"),
        (["list", "--timeout", "-1"], "above 0"),
        (["list", "--timeout", "nan"], "above 0"),
        (["list", "extra"], "too many arguments: 'extra'"),
        (["call"], "NAME"),
        (["call", "clock/now", '{"zone":', '"UTC"}'], "JSON with spaces needs quotes"),
        (["call", "clock/now", '{"a":', "1,", '"b":', "2}"], "JSON with spaces needs quotes"),
        (["list", "--config"], "--config"),
    ],
)
def test_a_mistyped_command_is_one_line_and_exit_2(
    typed: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert part in err
    assert err.startswith("playbill: ")
    assert err.count("\n") == 1


def test_a_mistyped_verb_ends_the_real_program_the_same(playbill: Playbill) -> None:
    done = playbill("lsit")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'Did you mean "list"?' in done.stderr


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_its_extra_the_command_says_what_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from playbill.actors.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    how = "install playbill with its extra 'cli' (in a clone: pip install '.[cli]')"
    assert done.stderr == f"playbill: the command line needs {missing}: {how}\n"


def _config(*names: str) -> Config:
    return Config(tuple(ServerEntry(name, command="x") for name in names))


@pytest.mark.parametrize(
    ("names", "typed", "origin"),
    [
        (["clock"], "clock/now", ("clock", "now")),
        (["@scope", "@scope/server"], "@scope/server/do/it", ("@scope/server", "do/it")),
        (["clock"], "mcp__clock__now", ("clock", "now")),
        (["a", "a-b"], "mcp__a-b__c", ("a-b", "c")),
        (["clock"], "now", None),
        (["clock"], "mcp__clok__now", None),
        (["a b"], wire_name("a b", "c"), None),
    ],
)
def test_a_name_tells_its_server_where_it_can(names: list[str], typed: str, origin: Any) -> None:
    found = origin_of(_config(*names), typed)
    assert (found and (found[0].name, found[1])) == origin


def _model() -> PluginModel:
    tools = [ToolState(bare=bare, enabled=True, wire_name=wire_name("clock", bare), verdict="on_wire") for bare in "ab"]
    now = ToolState(bare="now", enabled=True, wire_name="mcp__clock__now", verdict="on_wire")
    return PluginModel(servers=(ServerState(name="clock", phase="ready", tools=(now, *tools)),))


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("clock/nwo", "clock/now"),
        ("mcp__clock__nwo", "clock/now"),
        ("mcp__clok__now", "mcp__clock__now"),
        ("now", "clock/now"),
        ("????", None),
    ],
)
def test_an_unknown_tool_is_answered_with_the_nearest_that_there_is(name: str, near: str | None) -> None:
    with pytest.raises(UnknownTool) as caught:
        _find(_model(), name, origin_of(_config("clock"), name))
    assert caught.value.near == near


@pytest.mark.parametrize(
    ("given", "tool", "arguments"),
    [
        ([], None, "{}"),
        (['{"a": 1}'], None, '{"a": 1}'),
        ([" {"], None, " {"),
        (["now"], "now", "{}"),
        (["now", '{"a": 1}'], "now", '{"a": 1}'),
        (["now", "[]"], "now", "[]"),
    ],
)
def test_what_follows_a_server_is_its_tool_and_what_begins_with_a_brace_arguments(
    given: list[str], tool: str | None, arguments: str
) -> None:
    assert _sorted_out(_config("clock"), "clock", given) == (tool, arguments)


def test_what_follows_a_tool_is_arguments_however_they_look() -> None:
    assert _sorted_out(_config("clock"), "clock/now", ["[]"]) == (None, "[]")


def test_two_tools_at_once_are_told_to_be_one_too_many() -> None:
    with pytest.raises(CliError, match="'dice/roll' is a tool already: name one at a time, not 'dice/flip' too"):
        subject(_config("dice"), "dice/roll", "dice/flip")
