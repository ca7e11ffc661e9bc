"""`resources`, `prompts`, `read` and `prompt`, of a real server that has them and of one that has none."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.cli import verbs
from playbill.actors.model.meant import meant_by, variables_of
from playbill.actors.model.offers import Resource, ResourceTemplate

from .conftest import WriteConfig, shipped
from .test_json import check

LINES = """
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    method, uri = said.get("method"), (said.get("params") or {}).get("uri")
    text = {"uri": uri, "text": "one\\ntwo\\n"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}, "serverInfo": {"name": "l", "version": "1"}}
    result = {"initialize": hello, "resources/list": {"resources": []}, "resources/read": {"contents": [text]}}.get(method)
    answer = {"result": result} if result and uri != "x://b" else {"error": {"code": -32601, "message": "unknown"}}
    if uri == "x://b":
        answer = {"error": {"code": -32002, "message": "no such", "data": {"uri": uri}}}
    if "id" in said:
        print(json.dumps({"jsonrpc": "2.0", "id": said["id"], **answer}), flush=True)
"""
"""A server over stdio whose text ends in a newline, and whose refusal names the URI in its data."""

SERVER = Path(__file__).resolve().parents[1] / "features" / "server.py"


@pytest.fixture
def config(write_config: WriteConfig) -> str:
    return str(write_config(stage={"command": sys.executable, "args": [str(SERVER), "stdio"]}, clock=shipped("clock")))


def test_what_servers_offer_besides_tools_is_listed_for_people(inside: Callable[..., Any], config: str) -> None:
    done = inside("resources", "--config", config)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["SERVER", "URI", "NAME", "TYPE", "DESCRIPTION"]
    assert rows[1][:4] == ["stage", "stage://notes", "Notes", "text/plain"]
    assert ["stage", "stage://scenes/{act}/{scene}", "A", "scene"] in [row[:4] for row in rows]
    done = inside("prompts", "stage", "--config", config)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:4] == ["stage", "audition", "part", "[mood]"]


def test_the_same_as_json(inside: Callable[..., Any], config: str) -> None:
    value = check("resources", inside("resources", "--json", "--config", config).stdout)
    stage, clock = value["servers"]
    assert [each["uri"] for each in stage["resources"]] == ["stage://notes", "stage://picture"]
    assert len(stage["resources"][0]["icons"]) == 1
    assert (clock["phase"], clock["resources"], clock["list_error"]) == ("ready", [], None)
    value = check("prompts", inside("prompts", "--json", "stage", "--config", config).stdout)
    assert [each["name"] for each in value["servers"][0]["prompts"][0]["arguments"]] == ["part", "mood"]


def test_one_is_read_or_filled_in(inside: Callable[..., Any], config: str) -> None:
    assert inside("read", "stage", "stage://scenes/2/3", "--config", config).stdout == "act 2, scene 3\n"
    assert inside("read", "stage", "stage://picture", "--config", config).stdout == "[image/png, 3 bytes]\n"
    value = check("read", inside("read", "stage", "stage://notes", "--json", "--config", config).stdout)
    assert value["result"]["contents"][0]["text"] == "the ghost enters"
    arguments = json.dumps({"part": "Yorick"})
    done = inside("prompt", "stage", "audition", arguments, "--config", config)
    assert done.stdout == "user: Read Yorick, grave\n"
    value = check("prompt", inside("prompt", "stage", "audition", arguments, "--json", "--config", config).stdout)
    assert value["prompt"] == "audition"


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        (["read", "stage", "stage://nots"], 1, "did you mean 'stage://notes'?"),
        (["prompt", "stage", "audtion"], 2, "did you mean 'audition'?"),
        (["prompt", "stage", "audition", '{"part": 3}'], 2, "'part'"),
        (["prompt", "stage", "audition", "{"], 2, "not JSON"),
        (["read", "stge", "x"], 2, "did you mean 'stage'?"),
        (["resources", "clok"], 2, "did you mean 'clock'?"),
        (["read", "clock", "x"], 1, "no resources"),
        (["prompt", "clock", "x"], 1, "no prompts"),
        (["read", "stage", "Notes"], 1, "did you mean 'stage://notes'?"),
        (["read", "stage", "stage://scenes/{act}/{scene}"], 2, "is a template: fill in {act}, {scene}"),
        (["prompt", "stage", "audition"], 2, "prompt 'audition' needs 'part'; it takes part [mood]"),
        (["prompt", "stage", "audition", '{"part": "a", "moot": "b"}'], 2, "has no 'moot'; it takes part [mood]"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else None,
)
def test_what_is_not_there_is_said_with_what_may_have_been_meant(
    inside: Callable[..., Any], config: str, typed: list[str], code: int, words: str
) -> None:
    done = inside(*typed, "--config", config)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1 or "server" in done.stderr


def test_the_examples_in_the_help_are_true_of_the_shipped_server(
    inside: Callable[..., Any], write_config: WriteConfig
) -> None:
    config = write_config(notes=shipped("notes"))
    for verb, said in (
        ("resources", "note:///titles"),
        ("prompts", "summary  title"),
        ("read", "no notes yet\n"),
        ("prompt", "user: Sum up the note 'Act one' in one sentence; read it first.\n"),
    ):
        (example,) = re.findall(r"Example: playbill (.*)", inspect.getdoc(getattr(verbs, verb)) or "")
        done = inside(*shlex.split(example), "--config", config)
        assert (done.returncode, done.stderr) == (0, "")
        assert said in done.stdout
    assert "there is: note:///titles (error -32602)" in inside("read", "notes", "x://y", "--config", config).stderr


def test_a_server_alone_lists_what_it_has_and_none_is_said_in_words(inside: Callable[..., Any], config: str) -> None:
    for verb, listed, words in (
        ("read", "stage://scenes/{act}/{scene}", "name the URI of a resource behind it"),
        ("prompt", "audition  part [mood]", "name a prompt behind it"),
    ):
        done = inside(verb, "stage", "--config", config)
        assert done.returncode == 2
        assert listed in done.stdout
        assert words in done.stderr
    for verb in ("resources", "prompts"):
        done = inside(verb, "clock", "--config", config)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"playbill: 'clock': no {verb}\n")


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("play://cast", None),
        ("play://cst", "play://cast"),
        ("The cast", "play://cast"),
        ("play://act/2/of/3", None),
        ("play://act/2/fo/3", "play://cast"),
        ("act", "play://act/{n}/of/{all}"),
        ("play://acts", "play://cast"),
    ],
)
def test_a_uri_that_fits_what_is_listed_is_not_doubted(uri: str, meant: str | None) -> None:
    resources = [Resource("play://cast", name="cast", title="The cast")]
    templates = [ResourceTemplate("play://act/{n}/of/{all}", name="act")]
    assert meant_by(uri, resources, templates) == meant
    assert variables_of("play://act/{n}/of/{all}", templates) == ["{n}", "{all}"]
    assert variables_of("play://{other}", templates) == []


def test_a_text_that_ends_in_a_newline_gets_no_second_one_and_a_uri_is_not_told_twice(
    inside: Callable[..., Any], write_config: WriteConfig
) -> None:
    config = write_config(lines={"command": sys.executable, "args": ["-c", LINES]})
    assert inside("read", "lines", "x://a", "--config", config).stdout == "one\ntwo\n"
    done = inside("read", "lines", "x://b", "--config", config)
    assert done.stderr == "playbill: server 'lines' does not give resource 'x://b': no such (error -32002)\n"


def test_a_server_that_is_not_ready_makes_exit_code_4_and_the_others_are_listed(
    inside: Callable[..., Any], write_config: WriteConfig
) -> None:
    config = write_config(clock=shipped("clock"), dead={"command": "no-such-program"})
    for verb in ("resources", "prompts"):
        done = inside(verb, "--config", config, "--json")
        assert done.returncode == 4
        assert [each["name"] for each in check(verb, done.stdout)["servers"]] == ["clock", "dead"]
    assert inside("read", "dead", "x", "--config", config).returncode == 4
