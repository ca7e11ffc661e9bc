"""Reports of the areas toggle, slow-start and tool-budget, as a person sees them at the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import servers
from playbill.actors.cli import app

Line = Callable[..., "subprocess.CompletedProcess[str]"]

SERVER = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(servers.path("clock").parent)!r})
from _stdio import Tool, serve

marker, fails, *names = sys.argv[1:]
with open(marker, "a") as file:
    file.write("x")
if Path(marker).stat().st_size <= int(fails):
    sys.exit("not yet")
serve("many", "1", "", [Tool(name, "", "", {{}}, (), lambda: "done") for name in names])
"""


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    """Runs a command line in the test's folder, as somebody without any config of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = app.run([*words[:1], "--config", "mcp.json", *words[1:]])
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run


@pytest.fixture
def server(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Makes entries for a server of tools, which leaves a mark at each start, and fails at the first ones if it is told so."""
    (tmp_path / "many.py").write_text(SERVER)

    def make(name: str, *tools: str, fails: int = 0, **more: Any) -> dict[str, Any]:
        return {"command": sys.executable, "args": ["many.py", f"{name}.started", str(fails), *tools], **more}

    return make


def write(**entries: Any) -> None:
    """Write the config in this folder."""
    Path("mcp.json").write_text(json.dumps({"mcpServers": entries}))


def rows(text: str) -> dict[str, list[str]]:
    """The cells of a table in a pipe, by the first one; columns are two blanks apart."""
    split = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines() if line.strip()]
    return {cells[0]: cells[1:] for cells in split}


def test_b124_a_disabled_server_is_shown_so_and_not_started(line: Line, server: Callable[..., Any]) -> None:
    write(
        a=server("a", "t", disabled=True), b=server("b", "t", enabled=False), c=server("c", "t", isActive=False),
        d=server("d", "t"),
    )  # fmt: skip
    listed = rows(line("list").stdout)
    done = line("tools")
    seen = rows(done.stdout)
    assert done.returncode == 0
    for name in "abc":
        assert "disabled" in listed[name]
        assert seen[name][0] == "disabled"
        assert not Path(f"{name}.started").exists()
    assert [name for name in seen if name.startswith("mcp__")] == ["mcp__d__t"]
    assert "disabled" in line("why", "a").stdout


def test_b127_a_hidden_tool_stays_hidden_whatever_else_is_edited(line: Line, server: Callable[..., Any]) -> None:
    write(a=server("a", "one", "two", "three"), b=server("b", "t"))
    assert line("disable", "a/one").returncode == 0
    assert "disabled a/two" in line("disable", "mcp__a__two").stdout  # the name that the model sees is understood too
    assert line("disable", "b").returncode == 0
    assert line("add", "c", "--", "x").returncode == 0
    assert line("remove", "c").returncode == 0
    assert line("enable", "b").returncode == 0
    seen = rows(line("tools").stdout)
    assert [seen[f"mcp__a__{name}"][1] for name in ("one", "two", "three")] == ["excluded", "excluded", "on_wire"]
    assert json.loads(Path("mcp.json").read_text())["mcpServers"]["a"]["tools"]["exclude"] == ["one", "two"]


def test_b128_after_many_quick_toggles_the_list_shows_the_last_one(line: Line, server: Callable[..., Any]) -> None:
    write(a=server("a", "t"))
    for number in range(20):
        verb = "enable" if number % 2 else "disable"
        assert f"{verb}d 'a' in" in line(verb, "a").stdout
        assert ("disabled" in rows(line("list").stdout)["a"]) is (verb == "disable")
    assert "is enabled already" in line("enable", "a").stdout
    assert not Path("a.started").exists()


@pytest.mark.parametrize(
    ("lists", "shown", "word"),
    [
        ({"include": ["a"]}, {"a"}, "only 1"),
        ({"exclude": ["a"]}, {"b", "c"}, "all but 1"),
        ({"include": []}, set(), "only 0"),
        ({"include": ["a", "b"], "exclude": ["a"]}, {"b"}, "only 1"),
    ],
)
def test_b129_what_a_list_does_to_a_new_tool_is_shown(
    line: Line, server: Callable[..., Any], lists: dict[str, list[str]], shown: set[str], word: str
) -> None:
    write(s=server("s", "a", tools=lists))
    assert word in rows(line("list").stdout)["s"]
    line("tools")
    write(s=server("s", "a", "b", "c", tools=lists))  # the server has learnt two tools
    seen = rows(line("tools").stdout)
    assert {name for name in "abc" if seen[f"mcp__s__{name}"][1] == "on_wire"} == shown
    for name in {"a", "b", "c"} - shown:
        assert "entry 's'" in line("why", f"s/{name}").stdout


def test_b121_a_server_whose_first_start_fails_is_waited_for_and_shown_as_restarted(
    line: Line, server: Callable[..., Any]
) -> None:
    write(flaky=server("flaky", "t", fails=1), well=server("well", "t"))
    done = line("tools", "--verbose")
    assert done.returncode == 0
    assert json.loads(line("tools", "--json").stdout)["servers"][0]["phase"] == "ready"
    assert rows(done.stdout)["flaky"][0] == "ready"
    assert "RESTARTS" in done.stdout
    assert "server 'flaky': down: the server exited with code 1: not yet" in done.stderr


def test_b121_a_server_that_never_starts_is_told_with_its_reason(line: Line, server: Callable[..., Any]) -> None:
    write(broken=server("broken", "t", fails=99), well=server("well", "t"))
    done = line("tools")
    assert done.returncode == 4
    assert "playbill: server 'broken' is not ready: backing off: the server exited with code 1: not yet" in done.stderr
    assert "mcp__well__t" in done.stdout


def test_b122_a_slow_server_is_added_at_once_and_then_shown_as_starting(line: Line) -> None:
    write()
    slow = "import time; time.sleep(600)"
    done = line("add", "slow", "--", sys.executable, "-c", slow)
    assert (done.returncode, done.stderr) == (0, "")
    assert "slow" in rows(line("list").stdout)
    done = line("tools", "--timeout", "0.3")
    assert done.returncode == 4
    assert rows(done.stdout)["slow"][0] == "starting"
    assert "playbill: server 'slow' is not ready: it has not answered yet" in done.stderr
    assert "slow" in json.loads(Path("mcp.json").read_text())["mcpServers"]


def test_b066_a_huge_server_crowds_out_no_other_and_the_warning_names_it(
    line: Line, server: Callable[..., Any]
) -> None:
    many = [f"t{number:03}" for number in range(60)]
    write(
        huge=server("huge", *many, tools={"pin": ["t059"]}, priority=-1), small=server("small", "x", "y", "z"),
        other=server("other", "x"),
    )  # fmt: skip
    done = line("tools", "--budget", "20")
    seen = rows(done.stdout)
    assert done.returncode == 5
    assert [seen[name][1] for name in ("mcp__small__x", "mcp__small__z", "mcp__other__x", "mcp__huge__t059")] == [
        "on_wire"
    ] * 4
    assert "playbill: 64 tools over the budget of 20" in done.stderr
    assert "huge" in done.stderr
    assert seen["mcp__huge__t058"][1] == "over_budget"
    assert "budget is 20" in line("why", "huge/t058", "--budget", "20").stdout


@pytest.mark.parametrize("order", ["abc", "cab"])
def test_b069_which_tools_are_hidden_is_shown_and_follows_the_order_of_the_file(
    line: Line, server: Callable[..., Any], order: str
) -> None:
    tools = [f"t{number:02}" for number in range(20)]
    write(**{name: server(name, *tools) for name in order})
    done = line("tools", "--budget", "40")
    seen = rows(done.stdout)
    assert done.returncode == 5
    hidden = {name for name, cells in seen.items() if name.startswith("mcp__") and cells[1] == "over_budget"}
    assert hidden == {f"mcp__{order[-1]}__{tool}" for tool in tools}
    assert "number 60 of 60 tools and the budget is 40" in seen[f"mcp__{order[-1]}__t19"][2]
