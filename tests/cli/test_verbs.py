"""The verbs, run as a person runs them, on real servers."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..forked import Forked

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]
Entry = Callable[..., dict[str, Any]]

PROGRAM = [sys.executable, "-m", "playbill.actors.cli"]


def test_list_shows_what_the_config_says_and_starts_nothing(
    playbill: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    config = write_config(
        good={"command": "touch", "args": [str(started)], "tools": {"exclude": ["a", "b"]}},
        remote={"url": "https://example.com/mcp?token=supersecretvalue123", "type": "sse"},
        only={"command": "x", "tools": {"include": ["a", "b", "c"], "exclude": ["b"]}},
        off={"command": "x", "args": ["--api-key", "supersecretvalue123"], "disabled": True},
    )
    done = playbill("list", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    heads, good, remote, only, off = done.stdout.splitlines()
    assert heads.split() == ["SERVER", "KIND", "RUNS", "TOOLS", "STATE", "SOURCE"]
    assert f"good    stdio  touch {started}" in good
    assert "all but 2" in good
    assert "sse" in remote
    assert "only 2" in only
    assert "disabled" in off
    assert "mcp.json" in off
    assert "supersecretvalue123" not in done.stdout
    assert not started.exists()


def test_list_as_json_has_every_entry_and_no_secret(inside: Playbill, write_config: WriteConfig) -> None:
    secret = "supersecretvalue123"
    config = write_config(
        a={"command": "x", "args": ["--token", secret], "env": {"API_KEY": secret}, "tools": {"exclude": ["t"]}},
        b={"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": f"Bearer {secret}"}},
    )
    done = inside("list", "--json", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    assert secret not in done.stdout
    value = json.loads(done.stdout)
    assert (value["schema"], value["config"]) == (1, str(config))
    a, b = value["servers"]
    assert (a["name"], a["kind"], a["exclude"], a["problem"], a["source"]) == ("a", "stdio", ["t"], None, str(config))
    assert (b["kind"], b["url"]) == ("http", "https://example.com/mcp")


def test_list_imports_neither_mcp_nor_trio_nor_rich(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    config = write_config(a={"command": "x"}, b={"comand": "x"})
    code = (
        "import sys\nfrom playbill.actors.cli.app import run\n"
        f"code = run(['list', '--json', '--config', {str(config)!r}])\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'anyio', 'httpx2', 'rich', 'trio'} & set(sys.modules)\n"
        "print(code, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30
    )
    assert done.stderr.splitlines()[-1] == "3 []"


def test_the_config_of_this_folder_is_found(inside: Playbill, write_config: WriteConfig, tmp_path: Path) -> None:
    write_config(here={"command": "x"}).rename(tmp_path / ".mcp.json")
    assert "here" in inside("list").stdout


def test_tools_lists_every_tool_with_wire_name_and_verdict(
    playbill: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(clock=entry("clock"), dice=entry("dice", tools={"exclude": ["flip"]}))
    done = playbill("tools", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["clock", "ready"], ["dice", "ready"]]
    assert "3 of 4" in lines[2]
    (now,) = [line for line in lines if "mcp__clock__now" in line]
    assert now.split()[:3] == ["mcp__clock__now", "clock/now", "on_wire"]
    (flip,) = [line for line in lines if "mcp__dice__flip" in line]
    assert flip.split()[2] == "excluded"
    assert "exclude" in flip.split("excluded", 1)[1]
    assert "\x1b" not in done.stdout


def test_one_huge_name_does_not_make_every_row_as_wide(inside: Playbill, write_config: WriteConfig) -> None:
    code = (
        "from playbill.actors.servers._stdio import Tool, serve\n"
        "serve('s', 'S', '', [Tool(name, '', 'Says.', {}, (), str) for name in ('ok', 't' * 5000)])\n"
    )
    config = write_config(
        **{"s": {"command": sys.executable, "args": ["-c", code]}, "s" * 300: {"command": "none", "disabled": True}}
    )
    rows = inside("tools", "--config", config).stdout.splitlines()
    assert max(map(len, rows)) < 400
    assert any(f"  s/{'t' * 97}\N{HORIZONTAL ELLIPSIS}  " in row for row in rows)
    assert any("  s/ok  " in row for row in rows)
    tools = json.loads(inside("tools", "--config", config, "--json").stdout)["servers"][0]["tools"]
    assert [tool["tool"] for tool in tools] == ["ok", "t" * 5000]


def test_tools_as_json_and_nothing_else_on_stdout(
    inside: Playbill, write_config: WriteConfig, entry: Entry, tmp_path: Path
) -> None:
    missing = str(tmp_path / "no-such-program")
    config = write_config(clock=entry("clock"), lost={"command": missing}, off=entry("dice", disabled=True))
    done = inside("tools", "--json", "--config", config, "--timeout", "20")
    assert done.returncode == 4
    value = json.loads(done.stdout)
    clock, lost, off = value["servers"]
    assert (clock["phase"], clock["error"], clock["connected"]) == ("ready", None, True)
    assert {tool["verdict"] for tool in clock["tools"]} == {"on_wire"}
    assert clock["tools"][0]["input_schema"]["type"] == "object"
    assert "no-such-program" in lost["error"]
    assert off["phase"] == "disabled"
    (line,) = done.stderr.splitlines()
    assert line.startswith("playbill: server 'lost' is not ready: ")
    assert "no-such-program" in line


def test_tools_over_budget_exits_5_and_says_how_many(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    many = tmp_path / "many.py"
    many.write_text(
        "import sys\nfrom playbill.actors.servers._stdio import Tool, serve\n"
        "serve('many', 'Many', '', [Tool(f't{n}', '', '', {}, (), str) for n in range(103)])\n"
    )
    config = write_config(many={"command": sys.executable, "args": [str(many)]})
    done = inside("tools", "--config", config)
    assert done.returncode == 5
    assert "103 tools over the budget of 100 — 3 MCP tools were dropped" in done.stderr
    assert done.stdout.count("over_budget") == 3


@pytest.mark.parametrize("name", ["clock/convert", "mcp__clock__convert", "clock convert", "clock mcp__clock__convert"])
def test_call_prints_the_answers_text(inside: Playbill, write_config: WriteConfig, entry: Entry, name: str) -> None:
    config = write_config(clock=entry("clock"))
    done = inside("call", *name.split(), '{"time": "2030-01-31T12:00", "zone": "UTC"}', "--config", config)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2030-01-31T12:00:00+00:00\n", "")


def test_call_of_a_server_alone_lists_its_tools_and_calls_none(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(
        clock=entry("clock", tools={"exclude": ["wait"]}), other={"command": "no-such-program"}, off={"url": "x"}
    )
    done = inside("call", "clock", "--config", config)
    assert (done.returncode, done.stderr) == (2, "playbill: 'clock' is a server: name one of these tools behind it\n")
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["TOOL", "ARGUMENTS", "STATE", "DESCRIPTION"]
    assert [line.split()[0] for line in lines] == ["clock/now", "clock/convert", "clock/between", "clock/wait"]
    assert [line.split()[1:3] for line in lines if "excluded" in line] == [["seconds", "excluded"]]
    assert "[zone]" in lines[0]
    told = json.loads(inside("call", "clock", "--json", "--config", config).stdout)
    assert (told["server"], told["tool"]) == ("clock", None)
    assert [tool["tool"] for tool in told["tools"]] == ["now", "convert", "between", "wait"]
    # Who gives arguments meant a tool; nothing is started for that.
    done = inside("call", "other", "{}", "--config", config)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "playbill: 'other' is a server: write SERVER/TOOL, or the tool behind it\n"
    done = inside("call", "other", "--config", config)
    assert (done.returncode, "'other' is not ready: parked: command: 'no-such-program'" in done.stderr) == (4, True)


def test_call_as_json_prints_the_raw_result(inside: Playbill, write_config: WriteConfig, entry: Entry) -> None:
    config = write_config(notes=entry("notes"))
    done = inside("call", "notes/titles", "--json", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)["result"]
    assert value["content"] == [{"type": "text", "text": "no notes yet"}]
    assert value["isError"] is False


def test_call_of_a_tool_that_fails_prints_what_it_says_and_exits_1(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(notes=entry("notes"))
    done = inside("call", "notes/read", '{"title": "x"}', "--config", config)
    assert (done.returncode, done.stdout) == (1, "there is no note 'x'; there are: none\n")
    assert done.stderr == "playbill: tool 'notes/read' reported an error\n"


def test_call_of_a_tool_that_asks_something_says_that_nobody_answers(
    inside: Playbill, write_config: WriteConfig
) -> None:
    server = Path(__file__).parents[1] / "features" / "asks.py"
    config = write_config(
        s={"command": sys.executable, "args": [str(server), "stdio"], "protocolVersion": "2025-11-25"}
    )
    done = inside("call", "s/elicit", "--config", config)
    assert (done.returncode, done.stdout) == (
        1,
        "The server refused the call: Elicitation not supported (error -32600)\n",
    )
    assert done.stderr.splitlines() == [
        "playbill: server 's' asked something (elicitation/create): the command line answers no questions of servers;"
        " call it from a program with handlers",
        "playbill: tool 's/elicit' reported an error",
    ]


def test_call_starts_only_the_server_it_names(
    inside: Playbill, write_config: WriteConfig, entry: Entry, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    config = write_config(notes=entry("notes"), other={"command": "touch", "args": [str(started)]})
    assert inside("call", "mcp__notes__titles", "--config", config).returncode == 0
    assert not started.exists()


def test_call_finds_a_wire_name_that_only_the_servers_can_tell(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(**{"my notes": entry("notes")}, clock=entry("clock"))
    listed = json.loads(inside("tools", "--json", "--config", config).stdout)
    wire = {tool["tool"]: tool["wire_name"] for tool in listed["servers"][0]["tools"]}["titles"]
    assert "my-notes" in wire
    done = inside("call", wire, "--config", config)
    assert (done.returncode, done.stdout) == (0, "no notes yet\n")


def test_call_of_an_excluded_tool_is_refused(inside: Playbill, write_config: WriteConfig, entry: Entry) -> None:
    config = write_config(dice=entry("dice", tools={"exclude": ["flip"]}))
    done = inside("call", "dice/flip", "--config", config)
    assert (done.returncode, done.stdout) == (1, "")
    assert "exclude" in done.stderr


@pytest.mark.parametrize(
    ("entry_text", "part"),
    [
        ({"command": "/no/such/program"}, "/no/such/program"),
        ({"command": sys.executable, "args": ["-c", "import sys; sys.exit('I will not')"]}, "I will not"),
        ({"command": "x", "disabled": True}, "disabled"),
    ],
)
def test_call_to_a_server_that_cannot_take_it_exits_4_with_the_reason(
    inside: Playbill, write_config: WriteConfig, entry_text: dict[str, Any], part: str
) -> None:
    config = write_config(bad=entry_text)
    done = inside("call", "bad/tool", "--config", config, "--timeout", "20")
    assert (done.returncode, done.stdout) == (4, "")
    assert "'bad'" in done.stderr
    assert part in done.stderr
    assert done.stderr.count("\n") == 1


def test_call_that_is_not_answered_in_time_exits_4(inside: Playbill, write_config: WriteConfig, entry: Entry) -> None:
    config = write_config(clock=entry("clock", timeout=0.2))
    done = inside("call", "clock/wait", '{"seconds": 600}', "--config", config)
    assert (done.returncode, done.stdout) == (4, "")
    assert "did not answer within 0.2 s" in done.stderr


@pytest.mark.parametrize("verb", [["tools"], ["call", "silent/tool"]], ids=" ".join)
def test_a_server_that_never_answers_is_waited_for_until_the_timeout(
    inside: Playbill, write_config: WriteConfig, verb: list[str]
) -> None:
    config = write_config(silent={"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]})
    done = inside(*verb, "--config", config, "--timeout", "0.5")
    assert (done.returncode, done.stderr) == (4, "playbill: server 'silent' is not ready: it has not answered yet\n")


def _on_a_terminal(arguments: list[str], cwd: Path, environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    process = Forked([*PROGRAM, *arguments], cwd=cwd, env=environment, stdin=theirs, stdout=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 65536) or b""
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert process.wait(60) == 0
    return seen.decode()


def test_on_a_terminal_there_is_colour_and_what_servers_say_cannot_drive_it(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    config = write_config(**{"a\x1b[2Jb": {"command": "x"}, "[red]c": {"command": "y"}})
    terminal = {**environment, "TERM": "xterm-256color", "COLUMNS": "60"}
    seen = _on_a_terminal(["list", "--config", str(config)], tmp_path, terminal)
    assert "\x1b[1m" in seen
    assert "\x1b[2J" not in seen
    assert "[red]c" in seen


def test_a_reader_that_leaves_early_is_no_error(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    config = write_config(a={"command": "x"})
    process = Forked(
        [*PROGRAM, "list", "--config", str(config)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process:
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_stdout_without_unicode_still_gets_every_row(playbill: Playbill, write_config: WriteConfig) -> None:
    config = write_config(zażółć={"command": "x"})
    done = playbill("list", "--config", config, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "za\\u017c" in done.stdout
    done = playbill("list", "--json", "--config", config, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert json.loads(done.stdout)["servers"][0]["name"] == "zażółć"


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["call", "notes/titles"], 0, "no notes yet\n", ""),
        (["call", "notes/read", "{}"], 1, "the argument 'title' is missing", "reported an error"),
        (["call", "note/read"], 2, "", "(did you mean 'notes/read'?)"),
        (["call", "notes/read", "{"], 2, "", "the arguments are not JSON"),
        (["call", "broken/x"], 3, "", "mcpServers.broken"),
        (["tools"], 3, "mcp__notes__titles", "mcpServers.broken"),
        (["call", "dies/x"], 4, "", "I will not"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_real_program(
    playbill: Playbill,
    write_config: WriteConfig,
    entry: Entry,
    arguments: list[str],
    code: int,
    out: str,
    err: str,
) -> None:
    dies = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('I will not')"]}
    config = write_config(notes=entry("notes"), broken={"comand": "x"}, dies=dies)
    done = playbill(*arguments, "--config", config)
    assert done.returncode == code
    assert out in done.stdout
    assert err in done.stderr
