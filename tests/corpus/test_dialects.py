"""The dialects of other hosts, and the slips of people, each in a file of a few lines: what is read, and what is said.

A line of a table is a file. Where a host's shape is not ours, one clear line says what was found, and where.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from playbill.actors.edge.config.edit import edit_text
from playbill.actors.edge.config.read import read_config
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.edits import SetEnabled, SetTool
from playbill.actors.model.errors import ConfigError

NPX: dict[str, Any] = {"command": "npx", "args": ["-y", "x"]}


def one(entry: Any) -> Config:
    return read_config(json.dumps({"mcpServers": {"x": entry}}), "f.json")


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(text, "f.json")
    said = str(caught.value)
    assert said.startswith("f.json:")
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("host", "entry", "means"),
    [
        (
            "Windsurf",
            {"serverUrl": "https://h/sse", "disabledTools": ["t"]},
            {"url": "https://h/sse", "exclude": ("t",)},
        ),
        ("Cline", {**NPX, "disabled": True, "autoApprove": ["t"], "timeout": 60}, {"disabled": True, "timeout": 60}),
        (
            "Cline, remote",
            {"type": "streamableHttp", "url": "https://h", "timeout": 3600},
            {"type": "http", "timeout": 3.6},
        ),
        ("Roo", {**NPX, "alwaysAllow": ["t"], "watchPaths": ["a"], "disabledTools": ["b"]}, {"exclude": ("b",)}),
        ("Gemini CLI", {**NPX, "cwd": "./a", "trust": True, "includeTools": ["a"]}, {"cwd": "./a", "include": ("a",)}),
        ("Gemini CLI, remote", {"httpUrl": "https://h", "timeout": 600000}, {"url": "https://h", "timeout": 600}),
        ("Amazon Q", {**NPX, "env": {}, "timeout": 120000, "disabled": False}, {"timeout": 120, "env": {}}),
        ("Kiro", {"url": "https://h", "headers": {}, "oauth": {}, "autoApprove": []}, {"url": "https://h"}),
        ("JetBrains", {"command": "C:\\Program Files\\x.exe", "args": []}, {"command": "C:\\Program Files\\x.exe"}),
        ("Copilot CLI", {"type": "local", **NPX, "tools": ["*"]}, {"type": "stdio", "include": None}),
        ("Copilot agent", {"type": "local", **NPX, "tools": ["a", "b"]}, {"include": ("a", "b")}),
        (
            "Visual Studio Code",
            {**NPX, "dev": {"watch": "x"}, "envFile": ".env", "sandboxEnabled": True},
            {"env_file": ".env"},
        ),
        (
            "Cherry Studio",
            {**NPX, "isActive": True, "baseUrl": "", "provider": "p", "logoUrl": "https://l"},
            {"disabled": False},
        ),
        ("Cherry Studio, off", {**NPX, "isActive": False, "longRunning": True, "tags": []}, {"disabled": True}),
        ("LangChain", {"transport": "streamable_http", "url": "http://h"}, {"type": "http"}),
        ("Trae", {**NPX, "fromGalleryId": "x"}, {"command": "npx"}),
        ("Antigravity", {"$typeName": "a.B", **NPX}, {"command": "npx"}),
        ("Zed's words under our key", {"source": "custom", **NPX}, {"command": "npx"}),
        ("Warp", {**NPX, "working_directory": None, "start_on_launch": True}, {"cwd": None}),
        (
            "LM Studio",
            {"url": "https://h/mcp?login", "headers": {"Authorization": "Bearer <T>"}},
            {"url": "https://h/mcp?login"},
        ),
        (
            "nulls for what is not used",
            {"command": "c", "args": None, "env": {"A": None}, "url": None},
            {"args": (), "env": {}},
        ),
    ],
)
def test_an_entry_of_another_host_is_read_as_it_is_meant_there(host: str, entry: Any, means: dict[str, Any]) -> None:
    config = one(entry)
    (read,) = config.servers
    assert read.error is None
    assert config.warnings == ()
    assert {key: getattr(read, key) for key in means} == means


@pytest.mark.parametrize(
    ("slip", "entry", "words"),
    [
        (
            "opencode's list",
            {"command": ["npx", "x"]},
            "x.command: expected a string, found a list (put its first item here",
        ),
        ("opencode's env", {**NPX, "environment": {}}, "x.environment: unknown key (did you mean 'env'?)"),
        ("Goose's env", {**NPX, "envs": {"A": "b"}}, "x.envs: unknown key (did you mean 'env'?)"),
        ("Goose's command", {"cmd": "npx"}, "there is no command and no url here (did you mean 'command' by 'cmd'?)"),
        ("Zed's object", {"command": {"path": "npx", "args": []}}, "found an object (put its path here"),
        ("another case", {"Command": "npx", "Args": []}, "(did you mean 'command' by 'Command'?)"),
        ("an invisible letter", {"com\u200bmand": "npx"}, r"(did you mean 'command' by 'com\u200bmand'?)"),
        ("Cherry Studio's url", {"type": "sse", "baseUrl": "https://h"}, "(did you mean 'url' by 'baseUrl'?)"),
        (
            "a url as command",
            {"command": "https://h/mcp"},
            "x.command: expected a program, found a URL (did you mean 'url'?)",
        ),
        (
            "a socket",
            {"type": "websocket", "url": "ws://h"},
            "x.type: expected stdio, http or sse, found 'websocket'; line 1:",
        ),
        (
            "a Unix socket",
            {"type": "http", "url": "unix:///x"},
            "x.url: expected a URL that begins with http:// or https://",
        ),
        ("a placeholder", {"url": "<your url here>"}, "x.url: expected a URL that begins with http:// or https://"),
        (
            "a port",
            {**NPX, "env": {"PORT": 8080}},
            "x.env.PORT: expected a string, found the number 8080 (write it in quotes)",
        ),
        ("a flag", {**NPX, "env": {"DEBUG": True}}, "x.env.DEBUG: expected a string, found true (write it in quotes)"),
        ("a quoted flag", {**NPX, "disabled": "false"}, "found a string (write false without quotes)"),
        ("a list of env", {**NPX, "env": ["A=b"]}, "x.env: expected an object of strings, found a list"),
        ("args in one", {"command": "npx", "args": "-y x"}, "x.args: expected a list of strings, found a string"),
        ("a time in words", {**NPX, "timeout": "30s"}, "x.timeout: expected a number, found a string"),
        ("nested twice", {"x2": NPX}, "there is no command and no url here (found x2.command)"),
        ("nested transport", {"transport": {"type": "stdio", **NPX}}, "(found transport.command)"),
    ],
)
def test_an_entry_that_would_run_the_wrong_thing_is_told_what_to_write(slip: str, entry: Any, words: str) -> None:
    (read,) = one(entry).servers
    assert read.error is not None
    assert words in read.error


@pytest.mark.parametrize(
    ("slip", "entry", "warnings"),
    [
        (
            "Visual Studio's headers",
            {"url": "https://h", "requestInit": {}},
            ["requestInit: unknown key (did you mean 'headers'?)"],
        ),
        (
            "Codex's headers",
            {"url": "https://h", "http_headers": {}},
            ["http_headers: unknown key (did you mean 'headers'?)"],
        ),
        (
            "Codex's lists",
            {**NPX, "disabled_tools": ["t"]},
            ["disabled_tools: unknown key (did you mean 'disabledTools'?)"],
        ),
        (
            "Cline's transport",
            {"url": "https://h", "transportType": "sse"},
            ["transportType: unknown key (did you mean 'type'?)"],
        ),
        (
            "tools described",
            {**NPX, "tools": [{"name": "t"}]},
            ["tools: a list that is not of names is not read (write tools."],
        ),
        ("two words", {"command": "npx x"}, ["command: this is more than one word (put the rest into args)"]),
        (
            "\\b is no b",
            {"command": "C:\bin\\x", "args": ["\foo"]},
            [
                "command: this holds the control character U+0008 (in JSON a b",
                "args[0]: this holds the control character U+000C",
            ],
        ),
        (
            "\\n and \\t in a path",
            {**NPX, "cwd": "C:\new", "env": {"P": "d:\tmp"}},
            ["cwd: this holds the control character U+000A", "env.P: this holds the control character U+0009"],
        ),
    ],
)
def test_what_looks_wrong_is_warned_about_and_costs_nothing(slip: str, entry: Any, warnings: list[str]) -> None:
    config = one(entry)
    assert config.servers[0].error is None
    assert len(config.warnings) == len(warnings)
    for said, words in zip(config.warnings, warnings, strict=True):
        assert said.startswith(f"mcpServers.x.{words}")


@pytest.mark.parametrize("arg", ["print(1)\nprint(2)\n", "a\tb", "C:\\new", "key: a\nother: b\r\n"])
def test_line_ends_and_tabs_are_not_warned_about_where_they_are_usual(arg: str) -> None:
    assert one({"command": "python", "args": ["-c", arg]}).warnings == ()


@pytest.mark.parametrize(
    ("host", "value", "words"),
    [
        ("Zed", {"context_servers": {"a": {"source": "custom", **NPX}}}, "found servers under context_servers"),
        ("Zed, before", {"context_servers": {"a": {"command": {"path": "x"}}}}, "found servers under context_servers"),
        ("opencode", {"mcp": {"a": {"type": "local", "command": ["x"]}}}, "found servers under mcp"),
        ("Crush", {"mcp": {"a": {"type": "stdio", **NPX}}}, "found servers under mcp"),
        ("Goose", {"extensions": {"a": {"cmd": "npx", "type": "stdio"}}}, "found servers under extensions"),
        ("Codex, as JSON", {"mcp_servers": {"a": NPX}}, "found servers under mcp_servers"),
        ("VS Code's settings", {"mcp": {"inputs": [], "servers": {"a": NPX}}}, "found servers under mcp.servers"),
        ("VS Code, dotted", {"mcp.servers": {"a": NPX}}, "found servers under ['mcp.servers']"),
        (
            "Claude Code's state",
            {"projects": {"/p": {"mcpServers": {"a": NPX}}}},
            "found servers under projects['/p'].mcpServers",
        ),
        (
            "Continue, before",
            {"experimental": {"modelContextProtocolServers": [{"transport": NPX}]}},
            "found servers under experimental.modelContextProtocolServers",
        ),
        ("a bundle's manifest", {"server": {"mcp_config": NPX}}, "found servers under server"),
        (
            "a registry's server.json",
            {"name": "x", "remotes": [{"type": "sse", "url": "https://h"}]},
            "found a list under remotes",
        ),
        ("another case", {"McpServers": {"a": NPX}}, "found servers under McpServers"),
        ("another case, empty", {"MCPServers": {}}, "did you mean it by 'MCPServers'?"),
    ],
)
def test_servers_under_another_key_are_named_with_their_place(host: str, value: Any, words: str) -> None:
    assert f"there is no mcpServers key here ({words})" in refusal(json.dumps(value, indent=1))


@pytest.mark.parametrize(
    ("what", "text", "words"),
    [
        (
            "one server",
            '{"command": "npx", "args": []}',
            ':1:1: this is one server; put it, under a name, into {"mcpServers": {…}}',
        ),
        (
            "a list",
            '[{"name": "a", "command": "npx"}]',
            ':1:1: expected an object with "mcpServers" in it, found a list',
        ),
        (
            "Continue's list",
            '{"mcpServers": [{"name": "a"}]}',
            ":1:16: mcpServers: expected an object of servers by name, found a list",
        ),
        (
            "no braces",
            '"mcpServers": {}',
            ":1:1: the outermost braces are missing: put { before this, and } at the end",
        ),
        ("a brace too many", '{"mcpServers": {}}\n}', ":2:1: extra data after the end of the value: '}'"),
        ("two files", '{"mcpServers": {}}\n{"a": 1}', ":2:1: extra data after the end of the value: '{'"),
        ("a missing comma", '{"mcpServers": {"a": {}\n "b": {}}}', ":2:2: expected ',' or '}', found '\"'"),
        (
            "JSON5",
            "{mcpServers: {}}",
            ":1:2: expected a key in double quotes, found 'mcpServers' (keys are written in double",
        ),
        ("single quotes", "{'mcpServers': {}}", "(strings are written in double quotes)"),
        (
            "curly quotes",
            "{\n “mcpServers”: {}}",
            ":2:2: expected a key in double quotes, found '“' (U+201C: strings are written in",
        ),
        (
            "a space from a web page",
            '{\n\u00a0"mcpServers": {}}',
            ":2:1: expected a key in double quotes, found '\\xa0' (U+00A0: only",
        ),
        (
            "an invisible space",
            '{"mcpServers":\u200b {}}',
            ":1:15: expected a value, found '\\u200b' (U+200B: only plain spaces",
        ),
        (
            "a shell comment",
            '# mine\n{"mcpServers": {}}',
            ":1:1: expected a value, found '#' (a comment begins with //)",
        ),
        (
            "a merge",
            '{\n<<<<<<< HEAD\n"mcpServers": {}}',
            ":2:1: expected a key in double quotes, found '<' (a merge that was not fin",
        ),
        (
            "Markdown",
            '```json\n{"mcpServers": {}}\n```',
            ":1:1: expected a value, found '`' (leave out the ``` lines around it)",
        ),
        ("a web page", "<!DOCTYPE html>\n<html></html>", ":1:1: not JSON: this looks like HTML or XML"),
        (
            "an env file",
            "export GITHUB_TOKEN=abc\n",
            ":1:1: not JSON: this looks like an env file; name it as the envFile of a server",
        ),
        (
            "Codex's TOML",
            '[mcp_servers.a]\ncommand = "x"\n',
            ":1:1: not JSON: this looks like TOML; copy its mcp_servers into a JSON file",
        ),
        (
            "Continue's YAML",
            "name: x\nmcpServers:\n  - name: a\n",
            ":1:1: not JSON: this looks like YAML; copy its mcpServers into a JSO",
        ),
        (
            "a Windows path",
            '{"mcpServers": {\n"a": {"command": "C:\\Users\\x"}}}',
            ":2:21: bad escape \\U in a string (double each backsl",
        ),
        (
            "Python's words",
            '{"mcpServers": {"a": {"disabled": True}}}',
            ":1:35: expected a value, found 'True' (write true)",
        ),
    ],
)
def test_a_text_of_another_kind_is_told_for_what_it_is(what: str, text: str, words: str) -> None:
    assert words in refusal(text)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "x", "version": "1", "scripts": {"a": "b"}, "config": {"servers": {"host": "x"}}},
        {"permissions": {"allow": ["mcp__a__b"]}, "enabledMcpjsonServers": ["a"]},
        {"interface": {"mcpServers": {"use": True}}},
    ],
)
def test_a_file_of_another_program_without_servers_is_read_as_having_none_with_a_note(value: Any) -> None:
    config = read_config(json.dumps(value))
    assert config.servers == ()
    assert "there is no mcpServers key in this file" in config.warnings[0]


def edited(entry: Any, *edits: Any) -> tuple[dict[str, Any], ServerEntry]:
    """An entry's JSON after edits, and what it reads as; each must have been done."""
    text, refused = edit_text(json.dumps({"mcpServers": {"x": entry}}), list(edits))
    assert refused == [None] * len(edits)
    (read,) = read_config(text).servers
    raw: dict[str, Any] = json.loads(text)["mcpServers"]["x"]
    return raw, read


def test_a_server_is_switched_by_the_key_that_its_file_uses() -> None:
    raw, read = edited({**NPX, "isActive": True}, SetEnabled("x", False))
    assert (raw["isActive"], "disabled" in raw, read.disabled) == (False, False, True)
    raw, read = edited({**NPX, "isActive": False, "enabled": False}, SetEnabled("x", True))
    assert (raw["isActive"], raw["enabled"], read.disabled) == (True, True, False)


def test_a_tool_that_a_plain_list_hides_is_added_to_that_list() -> None:
    raw, read = edited({**NPX, "tools": ["a"]}, SetTool("x", "b", True))
    assert raw["tools"] == ["a", "b"]
    assert read.include == ("a", "b")
    raw, read = edited({**NPX, "tools": ["*"]}, SetTool("x", "b", False))
    assert (raw["tools"], raw["disabledTools"], read.exclude) == (["*"], ["b"], ("b",))
    raw, read = edited({**NPX, "enabledTools": ["a"], "tools": ["*"]}, SetTool("x", "b", True))
    assert (raw["tools"], raw["enabledTools"], read.include) == (["*"], ["a", "b"], ("a", "b"))
