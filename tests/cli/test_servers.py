"""The servers that ship with the package, as real processes: they speak the legacy era of MCP over stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from playbill.actors import servers

Json = dict[str, Any]


def by_path(name: str) -> list[str]:
    return [sys.executable, str(servers.path(name))]


def by_module(name: str) -> list[str]:
    return [sys.executable, "-m", f"playbill.actors.servers.{name}"]


def talk(command: list[str], *lines: Json | str) -> dict[Any, Json]:
    """Say all lines to a server, end its input, and return its answers by id."""
    text = "".join((line if isinstance(line, str) else json.dumps({"jsonrpc": "2.0", **line})) + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}


def say(server: str, tool: str, *arguments: str, **values: Any) -> tuple[str, bool]:
    """Call one tool; its text, and whether it is an error."""
    params = {"name": tool, "arguments": values}
    result = talk([*by_path(server), *arguments], {"id": 1, "method": "tools/call", "params": params})[1]["result"]
    (block,) = result["content"]
    assert block["type"] == "text"
    return block["text"], result["isError"]


@pytest.mark.parametrize("name", servers.NAMES)
@pytest.mark.parametrize("command", [by_path, by_module])
def test_a_server_shakes_hands_and_lists_its_tools(name: str, command: Any) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    answers = talk(
        command(name),
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": "two", "method": "tools/list"},
        {"id": 3, "method": "ping"},
    )
    assert answers[1]["result"]["protocolVersion"] == "2025-06-18"
    assert answers[1]["result"]["serverInfo"]["name"] == name
    tools = answers["two"]["result"]["tools"]
    assert len({tool["name"] for tool in tools}) == len(tools) >= 4
    assert all(tool["description"].endswith((".", "+2.", "cancellation.")) for tool in tools)
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    assert answers[3]["result"] == {}


def test_an_unknown_version_is_answered_with_the_newest_of_the_legacy_era() -> None:
    answers = talk(by_path("clock"), {"id": 1, "method": "initialize", "params": {"protocolVersion": "2999-01-01"}})
    assert answers[1]["result"]["protocolVersion"] == "2025-11-25"


def test_the_probe_of_newer_eras_is_answered_with_method_not_found() -> None:
    answers = talk(by_path("clock"), {"id": 1, "method": "server/discover", "params": {}})
    assert answers[1]["error"]["code"] == -32601


def test_nonsense_is_answered_and_survived() -> None:
    answers = talk(
        by_path("dice"),
        "this is no JSON",
        "[1, 2]",
        '{"jsonrpc": "2.0", "id": 7, "result": {}}',
        {"id": 1, "method": "tools/call", "params": {"name": "fly"}},
        {"id": 2, "method": "tools/call", "params": {"name": "flip", "arguments": [1]}},
        {"id": 3, "method": "ping"},
    )
    assert answers[None]["error"]["code"] in (-32700, -32600)
    assert (answers[1]["error"]["code"], answers[2]["error"]["code"]) == (-32602, -32602)
    assert 7 not in answers
    assert answers[3]["result"] == {}


@pytest.mark.parametrize(
    ("server", "tool", "values", "text"),
    [
        ("clock", "convert", {"time": "2030-01-31T12:00:00", "zone": "utc"}, "2030-01-31T12:00:00+00:00"),
        (
            "clock",
            "between",
            {"start": "2030-01-02", "end": "2030-01-01T22:00"},
            "-0 days 2 hours 0 minutes (-7200 seconds)",
        ),
        ("notes", "titles", {}, "no notes yet"),
        ("dice", "roll", {"dice": "3d1+2"}, "5  (1 + 1 + 1 + 2)"),
        ("dice", "pick", {"options": ["only"]}, "only"),
    ],
)
def test_a_tool_answers(server: str, tool: str, values: Json, text: str) -> None:
    assert say(server, tool, **values) == (text, False)


@pytest.mark.parametrize(
    ("server", "tool", "values", "part"),
    [
        ("clock", "now", {"zone": "Moon/Base"}, "no time zone 'Moon/Base'"),
        ("clock", "convert", {"time": "noon", "zone": "UTC"}, "'noon' is not an ISO 8601 time"),
        ("clock", "convert", {"zone": "UTC"}, "the argument 'time' is missing"),
        ("clock", "wait", {"seconds": True}, "must be of type number"),
        ("clock", "wait", {"seconds": 601}, "must be 0 to 600, not 601"),
        ("notes", "read", {"title": "x"}, "there is no note 'x'"),
        ("notes", "read", {"name": "x", "title": "y"}, "there is no argument 'name'"),
        ("dice", "roll", {"dice": "two"}, "write 2d6, d20 or 3d8+2"),
        ("dice", "roll", {"dice": "1d0"}, "it must have a side"),
        ("dice", "pick", {"options": [1]}, "must be an array of strings"),
        ("dice", "pick", {"options": []}, "nothing to pick from"),
    ],
)
def test_what_a_tool_cannot_do_is_an_error_that_says_how_to_mend_it(
    server: str, tool: str, values: Json, part: str
) -> None:
    text, is_error = say(server, tool, **values)
    assert is_error
    assert part in text


def test_notes_are_kept_found_and_forgotten() -> None:
    def call(key: int, name: str, **values: str) -> Json:
        return {"id": key, "method": "tools/call", "params": {"name": name, "arguments": values}}

    answers = talk(
        by_path("notes"),
        call(1, "write", title="Milk", text="two litres"),
        call(2, "search", text="LITRE"),
        call(3, "read", title="Milk"),
        call(4, "forget", title="Milk"),
        call(5, "titles"),
    )
    texts = [answers[key]["result"]["content"][0]["text"] for key in range(1, 6)]
    assert texts == ["kept 'Milk' (10 characters)", "Milk", "two litres", "forgot 'Milk'", "no notes yet"]


def test_dice_repeat_themselves_when_seeded() -> None:
    rolls = {say("dice", "roll", "--seed", "7", dice="5d1000") for _ in range(2)}
    assert len(rolls) == 1


def test_a_slow_tool_holds_up_nobody_and_can_be_cancelled() -> None:
    """The end of input ends the server at once, so all must have been answered before: the wait would last 600 s."""
    process = subprocess.Popen(by_path("clock"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        wait = {"name": "wait", "arguments": {"seconds": 600}}
        for message in (
            {"id": 1, "method": "tools/call", "params": wait},
            {"id": 2, "method": "ping"},
            {"method": "notifications/cancelled", "params": {"requestId": 1}},
            {"id": 3, "method": "tools/call", "params": {"name": "wait", "arguments": {"seconds": 0}}},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answered = [json.loads(process.stdout.readline())["id"] for _ in range(2)]
        process.stdin.close()
        rest = process.stdout.read()
    assert (answered, rest, process.returncode) == ([2, 3], "", 0)


def test_a_server_starts_without_anything_but_the_standard_library() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import clock, notes, dice; print(*sys.modules)"
    folder = servers.path("clock").parent
    done = subprocess.run([sys.executable, "-S", "-c", code, str(folder)], capture_output=True, text=True, timeout=30)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) - {"__main__", "clock", "notes", "dice", "_stdio"} <= {
        name for name in loaded if name.startswith("_")
    }
    assert "clock" in loaded


def test_an_unknown_shipped_server_is_refused() -> None:
    with pytest.raises(ValueError, match="only clock, notes, dice"):
        servers.path("sundial")
