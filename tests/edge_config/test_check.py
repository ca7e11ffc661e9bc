"""What `check` finds in a file, and where: real files; the machine is given."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.edge.config.check import Finding, check_file, check_shadows
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.trust import TrustStore

ENVIRON = {"PATH": "/nowhere", "HOME": "/home/me"}


def check(path: Path, text: str, **environ: str) -> list[Finding]:
    path.write_text(text)
    return check_file(FileStore(path), {**ENVIRON, **environ})


def said(findings: list[Finding]) -> list[str]:
    return [f"{each.severity} {each.line}:{each.column} {each.path}: {each.message}" for each in findings]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    return tmp_path / "mcp.json"


def test_a_right_file_has_no_findings(file: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "./run"}, "b": {"url": "https://x.example/"}}}'
    assert check(file, text) == []


def test_what_cannot_be_read_is_one_error_with_its_place(file: Path) -> None:
    (found,) = check(file, '{\n  "mcpServers": {"a": {"command": "x",, }}\n}')
    assert (found.severity, found.file, found.line) == ("error", str(file), 2)
    file.unlink()
    (found,) = check_file(FileStore(file))
    assert (found.severity, found.line, found.message) == ("error", None, "there is no such file")


def test_each_thing_that_is_wrong_with_an_entry_has_its_own_place(file: Path) -> None:
    text = """{
  "mcpServers": {
    "a": {"command": "./run", "args": ["x", 3], "env": {"A": 1}},
    "b": {"comand": "x"},
    "c": {"command": "./run", "disabeld": true, "tools": {"exclud": []}},
    "d": {"command": "./run", "args": [], "args": []},
    "e": {"command": "./run"},
    "e": {"command": "./run"}
  }
}"""
    assert said(check(file, text)) == [
        "error 3:45 mcpServers.a.args[1]: expected a string, found the number 3 (write it in quotes)",
        "error 3:62 mcpServers.a.env.A: expected a string, found the number 1 (write it in quotes)",
        "error 4:5 mcpServers.b: there is no command and no url here (did you mean 'command' by 'comand'?)",
        "warning 4:11 mcpServers.b.comand: unknown key (did you mean 'command'?)",
        "warning 5:31 mcpServers.c.disabeld: unknown key (did you mean 'disabled'?)",
        "warning 5:59 mcpServers.c.tools.exclud: unknown key (did you mean 'exclude'?)",
        "error 6:43 mcpServers.d.args: this key is there twice (lines 6, 6)",
        "error 8:5 mcpServers.e: this server is there 2 times (lines 7, 8); keep one",
    ]


@pytest.mark.parametrize(
    ("entry", "place", "part"),
    [
        ('"command": "nosuch"', "1:34 mcpServers.a.command", "'nosuch' is not found in PATH"),
        ('"command": "./none"', "1:34 mcpServers.a.command", "there is no program"),
        ('"command": "./mcp.json"', "1:34 mcpServers.a.command", "is not executable"),
        ('"command": "./run", "args": ["${NO}"]', "1:52 mcpServers.a.args[0]", "${NO} is not set"),
        ('"command": "./run", "env": {"A": "${NO}"}', "1:56 mcpServers.a.env.A", "${NO} is not set"),
        ('"serverUrl": "https://${NO}/"', "1:36 mcpServers.a.serverUrl", "${NO} is not set"),
        ('"url": "https://x/", "headers": {"X-a": "${NO}"}', "mcpServers.a.headers.X-a", "${NO} is not set"),
        ('"command": "./run", "args": ["${input:key}"]', "mcpServers.a.args[0]", "PLAYBILL_INPUT_KEY"),
        ('"command": "./run", "envFile": "none.env"', "mcpServers.a.envFile", "no such file"),
        ('"command": "./run", "cwd": "none"', "mcpServers.a.cwd", "there is no folder"),
        (
            '"command": "./run", "tools": {"include": ["t", "u"], "exclude": ["t"]}',
            "mcpServers.a.tools.exclude",
            "'t' is in the allow-list too",
        ),
    ],
)
def test_what_looks_wrong_or_would_not_work_here_is_a_warning(file: Path, entry: str, place: str, part: str) -> None:
    (found,) = check(file, f'{{"mcpServers": {{"a": {{{entry}}}}}}}')
    assert found.severity == "warning"
    assert place in said([found])[0]
    assert part in found.message
    assert found.server == "a"


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        (f'"command": "./{"x" * 300}"', "there is no program"),
        (f'"command": "{"x" * 300}"', "is not found in PATH"),
        (f'"command": "./run", "cwd": "{"x" * 300}"', "there is no folder"),
        ('"command": "./shut/run"', "shut/run cannot be looked at"),
        ('"command": "./run", "cwd": "shut/in"', "shut/in cannot be looked into"),
    ],
    ids=["long path", "long name", "long folder", "shut program", "shut folder"],
)
def test_what_may_not_be_looked_at_is_a_warning_too(
    file: Path, monkeypatch: pytest.MonkeyPatch, entry: str, part: str
) -> None:
    stat = os.stat

    def refuse(path: Any, *args: Any, **keys: Any) -> os.stat_result:
        if "/shut/" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *args, **keys)

    monkeypatch.setattr(os, "stat", refuse)
    (found,) = check(file, f'{{"mcpServers": {{"a": {{{entry}}}}}}}')
    assert found.severity == "warning"
    assert part in found.message


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("https://", "no host"),
        ("https://x:99999/", "a port"),
        ("https://[::1/", "IPv6"),
        ("x.example", "begins with http"),
    ],
)
def test_a_url_that_leads_nowhere_is_an_error_or_a_warning_if_this_machine_makes_it_one(
    file: Path, value: str, part: str
) -> None:
    (found,) = check(file, f'{{"mcpServers": {{"a": {{"serverUrl": "{value}"}}}}}}')
    assert (found.severity, found.path) == ("error", "mcpServers.a.serverUrl")
    assert part in found.message
    note, found = check(file, '{"mcpServers": {"a": {"url": "${WHERE}"}}}', WHERE=value)
    assert (note.severity, note.message) == ("note", "WHERE is taken from the environment")
    assert (found.severity, found.path) == ("warning", "mcpServers.a.url")
    assert part in found.message


def test_everything_that_is_missing_is_found_and_not_only_the_first(file: Path) -> None:
    text = """{"mcpServers": {"a": {
      "command": "./run", "envFile": "none.env",
      "args": ["${ONE}", "${TWO:-x}", "${input:in}"],
      "env": {"A": "${ONE}", "B": "${THREE}"}
    }}}"""
    messages = "\n".join(said(check(file, text)))
    assert all(word in messages for word in ("none.env", "${ONE}", "${THREE}", "${input:in}"))
    assert "TWO" not in messages
    whole = check(file, text.replace("none.env", "run").replace("${input:in}", ""), ONE="1", THREE="3")
    assert {each.severity for each in whole} == {"note"}


def test_what_comes_from_the_environment_is_noted_by_name_and_never_by_value(file: Path) -> None:
    (file.parent / "e.env").write_text("FILED=f\n")
    text = """{"mcpServers": {"a": {"command": "./run", "envFile": "e.env",
  "args": ["${TOKEN}${FILED}${OWN}${EMPTY:-x}${NO:-x}", "${env:TOKEN}"],
  "env": {"OWN": "${TOKEN}", "IN": "${input:in}"}
}}}"""
    found = check(file, text, TOKEN="s3cret", EMPTY="", FILED="no", OWN="no", PLAYBILL_INPUT_IN="1nput")
    assert said(found) == [
        "note 2:12 mcpServers.a.args[0]: TOKEN is taken from the environment",
        "note 2:57 mcpServers.a.args[1]: TOKEN is taken from the environment",
        "note 3:18 mcpServers.a.env.OWN: TOKEN is taken from the environment",
        "note 3:36 mcpServers.a.env.IN: PLAYBILL_INPUT_IN is taken from the environment",
    ]


@pytest.mark.parametrize(
    ("value", "part"), [("a\nb", "a line break"), ("\u00e4", "the character U+00E4"), ("a\x7f", "the character U+007F")]
)
def test_a_variable_that_cannot_be_sent_in_a_header_is_a_warning(file: Path, value: str, part: str) -> None:
    text = '{"mcpServers": {"a": {"url": "https://x/", "headers": {"X-K": "${K}"}}}}'
    (found,) = check(file, text, K=value)
    assert (found.severity, found.path) == ("warning", "mcpServers.a.headers.X-K")
    assert found.message == f"${{K}} holds {part}, which cannot be sent in a header"


def test_what_is_missing_does_not_make_more_look_wrong(file: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "${NO}/x", "cwd": "${NO}", "env": {"PATH": "${NO}"}}}}'
    assert {each.message for each in check(file, text)} == {"${NO} is not set"}


def test_a_disabled_server_need_not_work(file: Path) -> None:
    assert check(file, '{"mcpServers": {"a": {"command": "nosuch", "args": ["${NO}"], "disabled": true}}}') == []


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('"2025-11-26"', "'2025-11-26' (did you mean '2025-11-25'?)"),
        ('"2025-12"', "'2025-12' (did you mean '2025-11-25'?)"),
        ('"2027-01-01"', "'2027-01-01' (did you mean '2026-07-28'?)"),
        ('"latest"', "'latest'"),
    ],
)
def test_a_version_of_the_protocol_that_is_none_is_an_error_with_the_nearest_one(
    file: Path, value: str, found: str
) -> None:
    expected = "expected a version of the protocol (2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28), found "
    text = '{"mcpServers": {"a": {"command": "./run",\n  "protocolVersion": VALUE}}}'.replace("VALUE", value)
    assert said(check(file, text)) == [f"error 2:22 mcpServers.a.protocolVersion: {expected}{found}"]


def test_a_version_of_the_protocol_is_a_string_and_its_key_has_one_name(file: Path) -> None:
    assert said(check(file, '{"mcpServers": {"a": {"command": "./run", "protocolVersion": 2025}}}')) == [
        "error 1:62 mcpServers.a.protocolVersion: expected a string, found the number 2025 (write it in quotes)"
    ]
    assert said(check(file, '{"mcpServers": {"a": {"command": "./run", "protocol_version": "2025-11-25"}}}')) == [
        "warning 1:43 mcpServers.a.protocol_version: unknown key (did you mean 'protocolVersion'?)"
    ]
    assert check(file, '{"mcpServers": {"a": {"command": "./run", "protocolVersion": "2025-11-25"}}}') == []


def test_the_unit_of_a_time_is_a_note(file: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "./run", "timeout": 30, "connectTimeout": 5000}}}'
    assert said(check(file, text)) == [
        "note 1:54 mcpServers.a.timeout: read as seconds: 30 s (from 1000 on it is milliseconds)",
        "note 1:76 mcpServers.a.connectTimeout: read as milliseconds: 5 s (from 1000 on it is milliseconds)",
    ]


@pytest.mark.parametrize("text", ['{"mcpServers": {}}', '{"mcpServers": null}', '{"other": 1}'])
def test_a_file_without_servers_is_noted_once(file: Path, text: str) -> None:
    (found,) = check(file, text)
    assert found.severity == "note"
    assert "no servers" in found.message
    assert found.line == 1


def test_what_is_said_of_the_rest_of_the_file_has_a_place_too(file: Path) -> None:
    text = '{\n  "servers": {},\n  "inputs": [{"id": 3}],\n  "mcpServers": {"a": {"command": "./run"}}\n}'
    assert said(check(file, text)) == [
        "warning 2:3 servers: not read, because mcpServers is there too",
        "warning 3:3 inputs[0]: expected an id, a string",
    ]


def test_a_bare_map_is_checked_as_well(file: Path) -> None:
    found = check(file, '{"a": {"command": "./run", "disabeld": true}, "b": {"command": "nosuch"}}')
    assert [each.path for each in found] == ["a.disabeld", "b.command"]


def test_an_entry_that_nobody_approved_is_warned_of(file: Path, tmp_path: Path) -> None:
    file.write_text('{"mcpServers": {"my a": {"command": "./run"}}}')
    store = FileStore(file, trust=TrustStore(tmp_path / "trust.json"))
    (found,) = check_file(store, ENVIRON)
    assert "playbill trust 'my a'" in found.message
    store.approve("my a", store.load().get("my a"))
    assert check_file(store, ENVIRON) == []


def test_an_entry_that_is_hidden_is_found_where_it_stands(file: Path, tmp_path: Path) -> None:
    file.write_text('{"mcpServers": {"a": {"command": "./run"}}}')
    far = tmp_path / "far.json"
    far.write_text('{"mcpServers": {\n  "b": {"command": "x"},\n  "a": {"command": "x"}}}')
    (found,) = check_shadows(FileStore(file).load(), FileStore(far))
    assert (found.severity, found.file, found.line, found.column) == ("warning", str(far), 3, 3)
    assert f"{file}:1" in found.message
    far.write_text("{")
    assert check_shadows(FileStore(file).load(), FileStore(far)) == []


def test_what_looks_like_a_default_and_is_none_is_warned_of(file: Path) -> None:
    args = '"${NOPE-z}", "${X:+y}", "${X:=y}", "${x%.*}", "${TOKEN:-z}", "$NOPE"'
    text = f'{{"mcpServers": {{"a": {{"command": "./run", "args": [{args}]}}}}}}'
    as_it_is = "is passed on as it is (a default is written ${NAME:-text})"
    assert [each.split(" ", 2)[2] for each in said(check(file, text))] == [
        f"mcpServers.a.args[0]: ${{NOPE-z}} {as_it_is}",
        f"mcpServers.a.args[1]: ${{X:+y}} {as_it_is}",
        f"mcpServers.a.args[2]: ${{X:=y}} {as_it_is}",
    ]


def test_what_only_an_editor_knows_is_told_with_all_else_that_is_missing(file: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "./run", "args": ["${file}", "${config:x}", "${file}"], "env": {"K": "${NO}"}}}}'
    found = said(check(file, text))
    assert [each.split(" ", 2)[2] for each in found] == [
        "mcpServers.a.args[0]: ${file} cannot be had here: only an editor knows it",
        "mcpServers.a.args[1]: ${config:x} cannot be had here: only an editor knows it",
        "mcpServers.a.env.K: ${NO} is not set",
    ]
    assert all(each.startswith("warning") for each in found)


def test_an_empty_name_of_a_server_is_warned_of(file: Path) -> None:
    text = '{"mcpServers": {"": {"command": "./run"}}}'
    assert said(check(file, text)) == ["warning 1:17 mcpServers['']: the name of this server is empty: give it one"]
