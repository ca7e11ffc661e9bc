"""Reading a configuration: entries as values, one wrong entry at a time, and nothing read twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playbill.actors.edge.config.read import Reader, read_config
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.errors import ConfigError


def one(entry: Any, **more: Any) -> ServerEntry:
    """The only entry of a file that holds this one."""
    config = read_config(json.dumps({"mcpServers": {"x": entry}, **more}), "f.json")
    (found,) = config.servers
    return found


def wrong(entry: Any) -> str:
    """Why this entry is wrong."""
    error = one(entry).error
    assert error is not None
    return error


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_config(text, "f.json")
    return caught.value


def test_an_entry_is_read_key_by_key() -> None:
    entry = one(
        {
            "command": "npx", "args": ["-y", "a"], "env": {"A": "${B}"}, "cwd": "sub", "envFile": ".env", "type": "stdio",
            "timeout": 30, "connectTimeout": 5000, "priority": 2, "disabled": True,
            "protocolVersion": "2025-11-25",
            "tools": {"exclude": ["a"], "include": ["b"], "pin": ["c"]},
        }
    )  # fmt: skip
    assert entry == ServerEntry(
        "x", command="npx", args=("-y", "a"), env={"A": "${B}"}, cwd="sub", env_file=".env", type="stdio", timeout=30,
        protocol_version="2025-11-25",
        connect_timeout=5, priority=2, disabled=True, exclude=("a",), include=("b",), pin=("c",), source="f.json", line=1,
    )  # fmt: skip


@pytest.mark.parametrize("key", ["url", "serverUrl", "httpUrl"])
def test_a_url_has_three_names(key: str) -> None:
    entry = one({key: "https://h/mcp", "headers": {"A": "b"}, "type": "streamable_http"})
    assert (entry.url, entry.headers, entry.type, entry.error) == ("https://h/mcp", {"A": "b"}, "http", None)


@pytest.mark.parametrize("word", ["http", "streamable-http", "streamableHttp", "streamable_http", "STREAMABLE HTTP"])
@pytest.mark.parametrize("key", ["type", "transport"])
def test_a_transport_has_many_spellings(word: str, key: str) -> None:
    assert one({"url": "https://h", key: word}).type == "http"


@pytest.mark.parametrize(
    ("keys", "include", "exclude"),
    [
        ({"disabledTools": ["a"], "excludeTools": ["b", "a"], "tools": {"exclude": ["c"]}}, None, ("c", "a", "b")),
        ({"enabledTools": ["a"], "includeTools": ["b"]}, ("a", "b"), ()),
        ({"enabledTools": []}, (), ()),
        ({"tools": {"include": None, "exclude": None}, "enabledTools": None}, None, ()),
        ({"tools": None}, None, ()),
        ({"alwaysAllow": ["a"], "autoApprove": ["b"]}, None, ()),
        ({"tools": ["*"]}, None, ()),
    ],
)
def test_tool_lists_are_joined_and_approval_lists_are_none(keys: Any, include: Any, exclude: Any) -> None:
    entry = one({"command": "c", **keys})
    assert (entry.include, entry.exclude, entry.error) == (include, exclude, None)


@pytest.mark.parametrize(
    ("keys", "disabled"),
    [({}, False), ({"disabled": True}, True), ({"enabled": False}, True), ({"enabled": True, "disabled": True}, True)],
)
def test_disabled_and_enabled_are_both_read(keys: Any, disabled: bool) -> None:
    assert one({"command": "c", **keys}).disabled is disabled


@pytest.mark.parametrize(("written", "seconds"), [(999, 999), (1000, 1), (60000, 60), (0.5, 0.5), (None, None)])
def test_a_timeout_is_seconds_below_1000_and_milliseconds_above(written: Any, seconds: float | None) -> None:
    assert one({"command": "c", "timeout": written}).timeout == seconds


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('"headers": {"A": "x\\r\\ny"}', "headers.A: a line break cannot be sent in a header"),
        ('"headers": {"A": "x\\u0000"}', "headers.A: a NUL character"),
        ('"headers": {"A": "x\\u0007"}', "headers.A: the character U+0007 cannot be sent"),
        ('"headers": {"A": "Bearer \u2014"}', "headers.A: the character U+2014 cannot be sent"),
        ('"headers": {"A b": "x"}', "'A b' cannot be the name of a header"),
        ('"headers": {"A:": "x"}', "'A:' cannot be the name of a header"),
        ('"headers": {"": "x"}', "'' cannot be"),
        ('"headers": ["A: x"]', "headers: expected an object of strings, found a list"),
        ('"headers": {"A": 1}', "headers.A: expected a string, found the number 1"),
        ('"timeout": 1e999', "timeout: expected a number, found an infinite number"),
        (f'"timeout": {"9" * 400}', "timeout: expected a number, found a number that is too large"),
        ('"type": "http", "serverUrl": "https://[::1/"', "IPv6"),
    ],
    ids=lambda value: value[:40],
)
def test_what_cannot_be_sent_or_meant_is_an_error_with_its_path(keys: str, words: str) -> None:
    url = "" if "serverUrl" in keys else '"url": "https://x.example/", '
    (entry,) = read_config(f'{{"mcpServers": {{"a": {{{url}{keys}}}}}}}').servers
    assert entry.error is not None
    assert words in entry.error


@pytest.mark.parametrize(
    "url",
    [
        "https://x",
        "HTTP://x:1/",
        "http://[::1]:8080/mcp",
        "https://${HOST}/",
        "https://x:${PORT}/",
        "${URL}",
        "https://u:p@x/?q",
    ],
)
def test_a_url_that_may_lead_somewhere_is_none(url: str) -> None:
    (entry,) = read_config(f'{{"mcpServers": {{"a": {{"url": "{url}", "headers": {{"X-a_b": "a\\tb ~"}}}}}}}}').servers
    assert entry.error is None


def test_an_empty_list_of_tools_is_told_how_to_allow_none() -> None:
    (warning,) = read_config('{"mcpServers": {"a": {"command": "c", "tools": []}}}').warnings
    assert "an empty list is not read (write tools.include: [] to allow none)" in warning


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"command": "c", "args": "a b"}, "x.args: expected a list of strings, found a string"),
        ({"command": "c", "args": ["a", 3]}, "x.args[1]: expected a string, found the number 3 (write it in quotes)"),
        ({"command": "c", "args": [None]}, "x.args[0]: expected a string, found null"),
        ({"command": "c", "env": {"PORT": 80}}, "x.env.PORT: expected a string, found the number 80"),
        ({"command": "c", "env": {"A=B": "x"}}, "x.env['A=B']: 'A=B' cannot be a name"),
        ({"command": "c", "env": []}, "x.env: expected an object of strings, found a list"),
        ({"command": "c", "disabled": "yes"}, "x.disabled: expected true or false, found a string"),
        ({"command": "c", "timeout": -1}, "x.timeout: expected a time above 0, found the number -1"),
        ({"command": "c", "timeout": True}, "x.timeout: expected a number, found true"),
        ({"command": "c", "tools": {"exclude": "a"}}, "x.tools.exclude: expected a list of strings, found a string"),
        ({"command": "c", "tools": 3}, "x.tools: expected an object, found the number 3"),
        ({"command": 3}, "x.command: expected a string, found the number 3"),
        ({"command": " "}, "x.command: expected a program, found an empty string"),
        ({"command": "a\0b"}, "x.command: a NUL character cannot be passed on"),
        ({"command": "c", "args": ["\ud800"]}, "x.args[0]: half of a surrogate pair cannot be passed on"),
        ({"type": "htpp", "url": "https://h"}, "x.type: expected stdio, http or sse, found 'htpp' (did you mean 'http'?)"),
        ({"type": "http", "command": "c"}, "x: its type is http, but there is no url here"),
        ({"type": "stdio", "url": "https://h"}, "x: its type is stdio, but there is no command here"),
        ({"url": "localhost:80"}, "x.url: expected a URL that begins with http:// or https://"),
        ({"comand": "c"}, "x: there is no command and no url here (did you mean 'command' by 'comand'?)"),
        ({"link": "https://h"}, "x: there is no command and no url here (did you mean 'url' by 'link'?)"),
        ({"transport": {"url": "u"}}, "x: there is no command and no url here (found transport.url)"),
        ({}, "x: there is no command and no url here"),
        ({"command": "c", "working_directory": "d"}, "x.working_directory: unknown key (did you mean 'cwd'?)"),
        (None, "x: expected an object, found null"),
        ("npx", "x: expected an object, found a string"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_entry_is_said_in_one_line(entry: Any, message: str) -> None:
    error = wrong(entry)
    assert error.startswith("f.json:1:")
    assert f": mcpServers.{message}" in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("key", "value", "meant"),
    [
        *((key, ["x"], "args") for key in ("arg", "arguments", "argss")),
        *((key, {"A": "b"}, "env") for key in ("enviroment", "environments", "environment", "envs", "env_vars")),
        *((key, "x", "cwd") for key in ("work_dir", "workdir", "workingDir", "cwdd")),
        *((key, "x", "envFile") for key in ("dotenv", "env_file", "envfile", "envFiles")),
    ],
)
def test_a_key_without_which_a_server_would_run_wrongly_is_an_error_of_it(key: str, value: Any, meant: str) -> None:
    assert f".x.{key}: unknown key (did you mean {meant!r}?)" in wrong({"command": "c", key: value})


@pytest.mark.parametrize(("key", "value"), [("agents", ["x"]), ("envs2", "x"), ("args_old", ["x"]), ("dwc", "x")])
def test_a_key_that_only_looks_a_bit_like_one_that_decides_what_runs_is_warned_about(key: str, value: Any) -> None:
    config = read_config(json.dumps({"mcpServers": {"x": {"command": "c", key: value}}}))
    assert config.servers[0].error is None
    assert [each.split(":")[0] for each in config.warnings] == [f"mcpServers.x.{key}"]


@pytest.mark.parametrize(
    ("entry", "warning"),
    [
        ({"url": "https://a", "httpUrl": "https://b"}, "x.httpUrl: not read, because url is there too"),
        ({"httpUrl": "https://b", "serverUrl": "https://a"}, "x.httpUrl: not read, because serverUrl is there too"),
        ({"url": "https://a", "httpUrl": "https://a"}, None),
        ({"command": "c", "headers": {"K": "v"}}, "x.headers: not read: a server with a command gets none"),
        ({"command": "c", "headers": {}}, None),
        (
            {"command": "c", "disabled": False, "enabled": False},
            "x.disabled: does not count, because enabled stops the server",
        ),
        (
            {"command": "c", "disabled": True, "isActive": True},
            "x.isActive: does not count, because disabled stops the server",
        ),
        ({"command": "c", "disabled": False, "enabled": True}, None),
        ({"url": "https://a", "type": "http", "transport": "sse"}, "x.transport: not read, because type is there too"),
    ],
)
def test_of_keys_that_say_different_things_it_is_said_which_counts(entry: Any, warning: str | None) -> None:
    config = read_config(json.dumps({"mcpServers": {"x": entry}}))
    assert config.servers[0].error is None
    assert config.warnings == (() if warning is None else (f"mcpServers.{warning}",))


@pytest.mark.parametrize("key", ["mcp_servers", "context_servers", "mcp-servers"])
def test_a_second_map_of_servers_under_another_key_is_warned_about(key: str) -> None:
    config = read_config(json.dumps({key: {"b": {"command": "d"}}, "mcpServers": {"a": {"command": "c"}}}))
    assert [e.name for e in config.servers] == ["a"]
    assert config.warnings == (f"{key}: not read, because mcpServers is there too",)


def test_a_wrong_entry_fails_alone_and_everything_wrong_with_it_is_placed() -> None:
    text = """{
  "mcpServers": {
    "bad": {
      "command": "c",
      "args": "x",
      "env": {"A": "a",
              "PORT": 1},
      "tools": {"exclude": ["t"]}
    },
    "good": {"command": "d"}
  }
}"""
    config = read_config(text, "f.json")
    bad, good = config.servers
    assert bad.error == (
        "f.json:5:15: mcpServers.bad.args: expected a list of strings, found a string; "
        "line 7:23: mcpServers.bad.env.PORT: expected a string, found the number 1 (write it in quotes)"
    )
    assert (bad.line, bad.command, bad.exclude, bad.runnable) == (3, "c", ("t",), False)
    assert (good.line, good.error, good.runnable) == (10, None, True)


def test_unknown_keys_are_warned_about_and_known_ones_of_others_are_not() -> None:
    text = '{"mcpServers": {"x": {"command": "c", "timeuot": 3, "alwaysAllow": [], "tools": {"exlude": []}}}, "privacy": {}}'
    assert read_config(text).warnings == (
        "mcpServers.x.tools.exlude: unknown key (did you mean 'exclude'?)",
        "mcpServers.x.timeuot: unknown key (did you mean 'timeout'?)",
    )


def test_a_command_wins_over_a_url_unless_the_type_says_otherwise() -> None:
    both = {"command": "c", "url": "https://h"}
    assert (one(both).command, one(both).url) == ("c", None)
    assert (one({**both, "type": "sse"}).command, one({**both, "type": "sse"}).url) == (None, "https://h")


@pytest.mark.parametrize("name", ["a b", "github.com/x", "@1/ü", "", '"', "mcpServers", "servers", "\n", "${X}"])
def test_a_server_may_have_any_name(name: str) -> None:
    for text in (
        json.dumps({"mcpServers": {name: {"command": "c"}}}),
        json.dumps({"servers": {name: {"command": "c"}}}),
    ):
        (entry,) = read_config(text).servers
        assert (entry.name, entry.error) == (name, None)


def test_a_server_that_is_there_twice_is_wrong_alone_and_both_lines_are_named() -> None:
    text = '{"mcpServers": {\n"a": {"command": "c"},\n"b": {"command": "c"},\n"a": {"command": "d"}}}'
    a, b = read_config(text, "f").servers
    assert a.error == "f:4:1: mcpServers.a: this server is there 2 times (lines 2, 4); keep one"
    assert b.error is None


def test_a_key_that_is_there_twice_in_an_entry_names_both_lines() -> None:
    text = '{"mcpServers": {"a": {"command": "c",\n "env": {"A": "1",\n "A": "2"},\n "command": "d"}}}'
    (entry,) = read_config(text, "f").servers
    assert entry.error == (
        "f:4:2: mcpServers.a.command: this key is there twice (lines 1, 4); "
        "line 3:2: mcpServers.a.env.A: this key is there twice (lines 2, 3)"
    )


def test_a_server_map_that_is_there_twice_is_refused_with_every_double_key() -> None:
    text = '{"mcpServers": {"a": {"command": "c", "command": "d"}},\n"mcpServers": {}}'
    error = refusal(text)
    assert (
        str(error) == "f.json:2:1: mcpServers: a key is there twice: 'mcpServers' (lines 1, 2); 'command' (lines 1, 1)"
    )


def test_a_foreign_key_that_is_there_twice_is_only_warned_about() -> None:
    config = read_config('{"z": 1,\n"z": 2, "mcpServers": {"a": {"command": "c"}}}')
    assert config.warnings == ("z: this key is there twice (lines 1, 2)",)
    assert config.servers[0].error is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", 'expected an object with "mcpServers" in it, found a list'),
        ("3", "found a plain value"),
        ('{"mcpServers": []}', "f.json:1:16: mcpServers: expected an object of servers by name, found a list"),
        ('{"mcpServers": [{"command": "c", "args": ""}]}', "[0].args: expected a list of strings, found a string"),
        ('{"mcpServers": 3}', "mcpServers: expected an object of servers by name, found a plain value"),
        ('{"tools": [{"command": "c"}]}', "there is no mcpServers key here (found a list under tools)"),
        ('{"mcp": {"servers": {}}}', "found servers under mcp.servers"),
        ('{"extensions": {"a": {"command": "c"}}}', "found servers under extensions"),
        ('{"mcpservers": {}}', "did you mean it by 'mcpservers'?"),
        ("[mcp_servers.a]\ncommand = 'c'\n", "looks like TOML; copy its mcp_servers"),
        ("# x\nmodel = 'y'\n", "looks like TOML"),
        ("# x\nmcpServers:\n  a:\n    command: c\n", "looks like YAML; copy its mcpServers"),
        ("---\nextensions:\n", "looks like YAML; copy its extensions"),
        ("[1, ", "the file ends before the '['"),
    ],
)
def test_another_shape_is_told_for_what_it_is(text: str, words: str) -> None:
    assert words in str(refusal(text))


@pytest.mark.parametrize("text", ["{}", '{"$schema": "x", "privacy": {"a": 1}}'])
def test_a_file_without_any_servers_is_read_with_a_note(text: str) -> None:
    config = read_config(text)
    assert config.servers == ()
    assert "there is no mcpServers key in this file" in config.warnings[0]


def test_an_empty_server_map_is_no_servers_and_no_note() -> None:
    assert read_config('{"mcpServers": {}}') == Config()
    assert read_config('{"mcpServers": null}') == Config()


def test_mcpservers_wins_over_servers() -> None:
    config = read_config('{"servers": {"a": {"command": "c"}}, "mcpServers": {"b": {"command": "c"}}}')
    assert [e.name for e in config.servers] == ["b"]
    assert config.warnings == ("servers: not read, because mcpServers is there too",)
    config = read_config('{"servers": {"a": {"command": "c"}}, "mcpServers": null}')
    assert [e.name for e in config.servers] == ["a"]


def test_a_bare_map_of_entries_is_read() -> None:
    config = read_config('{"$schema": "x", "a": {"command": "c"}, "b": {"serverUrl": "https://h"}, "inputs": []}')
    assert [(e.name, e.error) for e in config.servers] == [("a", None), ("b", None)]


def text_of(count: int, **changed: Any) -> str:
    entries = {f"s{i}": {"command": "npx", "args": [str(i)]} for i in range(count)}
    return json.dumps({"mcpServers": {**entries, **changed}}, indent=2)


def test_a_second_reading_of_the_same_text_is_the_same_value() -> None:
    reader = Reader("f")
    first = reader.read(text_of(5)).config
    assert reader.read(text_of(5), first).config is first
    assert Reader("f").read(text_of(5), first).config is first


def test_only_the_entry_that_changed_is_another_object() -> None:
    first = read_config(text_of(5), "f")
    for again in (Reader("f"), Reader("f")):
        second = again.read("// a comment\n" + text_of(5, s3={"command": "uvx"}), first).config
        same = [a is b for a, b in zip(first.servers, second.servers, strict=True)]
        assert same == [True, True, True, False, True]


def test_an_entry_whose_text_stands_there_again_is_not_structured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader("f")
    first = reader.read(text_of(5)).config
    calls: list[str] = []
    from playbill.actors.edge.config import read as config_read

    real = config_read.read_entry
    monkeypatch.setattr(
        config_read, "read_entry", lambda name, value, **place: calls.append(name) or real(name, value, **place)
    )
    reader.read(text_of(6, s2={"command": "uvx"}), first)
    assert calls == ["s2", "s5"]


def test_an_entry_that_moves_says_its_new_line_when_it_is_wrong() -> None:
    reader = Reader("f")
    first = reader.read('{"mcpServers": {"a": {}}}').config
    second = reader.read('\n{"mcpServers": {"a": {}}}', first).config
    assert first.servers[0].error == "f:1:17: mcpServers.a: there is no command and no url here"
    assert second.servers[0].error == "f:2:17: mcpServers.a: there is no command and no url here"
    assert reader.read('\n{"mcpServers": {"a": {}}}', second).config is second


def test_the_line_of_an_entry_can_be_asked_for() -> None:
    reader = Reader("f")
    text = '{"mcpServers": {"a": {"command": "c", "tools": {"exclude": ["x"]}}}}'
    config = reader.read(text).config
    moved = reader.read("\r\n\r\n" + text, config).config
    assert (config.line("a"), moved.line("a"), moved.line("a", "x"), moved.line("b")) == (1, 3, 3, None)
    assert moved == config
    assert moved.servers[0] is config.servers[0], "an entry that moves is no other entry"


def test_a_text_that_only_moves_is_the_same_configuration_where_no_line_of_it_is_told() -> None:
    reader = Reader("f")
    config = reader.read('{"mcpServers": {"a": {"command": "c"}}}').config
    assert reader.read('\n{"mcpServers": {"a": {"command": "c"}}}', config).config is config
    assert (config.line("a"), config.line("b")) == (1, None)


def test_trust_is_asked_for_each_time_and_only_for_processes() -> None:
    trusted: set[str] = set()
    reader = Reader("f", lambda entry: entry.name in trusted)
    text = '{"mcpServers": {"a": {"command": "c"}, "b": {"url": "https://h"}}}'
    first = reader.read(text).config
    assert [e.trusted for e in first.servers] == [False, True]
    trusted.add("a")
    second = reader.read(text, first).config
    assert [e.trusted for e in second.servers] == [True, True]
    assert second.servers[1] is first.servers[1]


def test_a_file_in_which_everything_is_wrong_has_its_lines_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from playbill.actors.edge.config import jsonc, read

    counted: list[str] = []
    real_lines, real_twice = jsonc.line_starts, read.twice
    monkeypatch.setattr(jsonc, "line_starts", lambda text: counted.append("lines") or real_lines(text))
    monkeypatch.setattr(read, "twice", lambda found: counted.append("twice") or real_twice(found))
    wrong = ",\n".join(f'"s{i // 2}": {{"args": 3}}' for i in range(60)) + ",\n" + ",\n".join(['"s": {}'] * 60)
    config = read_config(f'{{"mcpServers": {{{wrong}}}}}', "f")
    assert [e.error is None for e in config.servers] == [False] * 31
    assert config.servers[3].error == "f:8:1: mcpServers.s3: this server is there 2 times (lines 7, 8); keep one"
    lines = ", ".join(str(61 + i) for i in range(20))
    assert f"this server is there 60 times (lines {lines}, …, 120); keep one" in (config.servers[-1].error or "")
    assert sorted(counted) == ["lines", "twice"]
