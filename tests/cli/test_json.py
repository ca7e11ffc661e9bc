"""What ``--json`` prints: of every verb, what the schema in the docs says, and an error where there is no answer."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from playbill.actors.cli import chaos as chaos_verb
from playbill.actors.cli import showing
from playbill.actors.cli.app import app
from playbill.actors.cli.errors import CliError, Exit
from playbill.actors.testing.chaos import Judged
from playbill.actors.testing.plans import draw

from ..forked import Forked
from .conftest import PROGRAM, shipped
from .test_scopes_and_trust import write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = json.loads((DOCS / "cli.schema.json").read_text("utf-8"))
WITHOUT = {"help", "pick"}
"""The verbs that print for a person only: with ``--json`` they print but errors so."""


def closed(schema: Any) -> Any:
    """The schema with no room for keys that it does not name: readers are promised that keys may be added, tests are not."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if "properties" in inner and "additionalProperties" not in inner:
        inner["additionalProperties"] = False
    return inner


def check(verb: str, text: str) -> Any:
    """What was printed, once it is found to be what the schema says of the verb, and ASCII's one document."""
    value = json.loads(text)
    strict = {"$defs": closed(SCHEMA["$defs"]), "$ref": f"#/$defs/{verb}"}
    assert [error.message for error in Draft202012Validator(strict).iter_errors(value)] == []
    Draft202012Validator(SCHEMA).validate(value)
    return value


def verbs() -> set[str]:
    """All verbs that the grammar has."""
    return {verb for verb in app if not verb.startswith("-")}


def test_the_schema_is_one_and_has_each_verb() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]) == (verbs() - WITHOUT) | {"failed"}


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for key, value in schema.items():
            if key != "$defs":
                yield from _names(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _names(each)


@pytest.mark.parametrize("verb", sorted(SCHEMA["$defs"]))
def test_each_key_is_in_the_docs_too(verb: str) -> None:
    sections = re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", (DOCS / "cli.md").read_text("utf-8"), re.M)
    wanted = "JSON" if verb == "failed" else f"`{verb}`"
    section = next(body for head, body in sections if wanted in head.split(", "))
    assert [name for name in _names(SCHEMA["$defs"][verb]) if not re.search(rf"\b{name}\b", section)] == []


def test_the_verbs_that_start_nothing(inside: Playbill, write_config: WriteConfig, tmp_path: Path) -> None:
    config = write_config(
        a={"command": "x", "args": ["${NO_SUCH}"], "tools": {"exclude": ["t"]}, "disabled": True},
        b={"url": "https://x.example/", "headers": {"A": "b"}},
        bad={"comand": 3},
    )
    value = check("list", inside("list", "--json", "--config", config).stdout)
    assert [each["name"] for each in value["servers"]] == ["a", "b", "bad"]
    assert check("check", inside("check", "--json", "--config", config).stdout)["errors"] == 1
    config = write_config(a={"command": "x"})
    assert check("add", inside("add", "n", "--json", "--config", config, "--", "y").stdout)["created"] is False
    assert check("disable", inside("disable", "n/t", "--json", "--config", config).stdout)["tool"] == "t"
    assert check("disable", inside("disable", "n", "--json", "--config", config).stdout)["tool"] is None
    assert check("enable", inside("enable", "n", "--json", "--config", config).stdout)["changed"] is True
    assert check("remove", inside("remove", "n", "--json", "--config", config).stdout)["server"] == "n"
    assert check("completion", inside("completion", "bash", "--json").stdout)["file"] is None
    write(tmp_path / ".mcp.json", a={"command": "x", "env": {"A": "1"}})
    assert check("trust", inside("trust", "a", "--yes", "--json").stdout)["approved"][0]["env"] == ["A"]
    assert check(
        "why", inside("why", "a", "--json", "--config", write_config(a={"command": "x", "disabled": True})).stdout
    )


def test_the_verbs_that_start_servers(inside: Playbill, write_config: WriteConfig) -> None:
    config = write_config(clock=shipped("clock", tools={"exclude": ["wait"]}), dead={"command": "no-such-program"})
    value = check("tools", inside("tools", "--json", "--budget", "2", "--config", config).stdout)
    assert {tool["verdict"] for tool in value["servers"][0]["tools"]} == {"on_wire", "excluded", "over_budget"}
    for name in ("clock/now", "clock/wait", "clock"):
        assert check("why", inside("why", name, "--json", "--config", config).stdout)["server"] == "clock"
    assert check("why", inside("why", "dead", "--json", "--config", config).stdout)["phase"] == "parked"
    value = check("call", inside("call", "clock/now", "--json", "--config", config).stdout)
    assert (value["server"], value["tool"], value["result"]["isError"]) == ("clock", "now", False)
    value = check("call", inside("call", "clock/now", '{"zone": "No/Where"}', "--json", "--config", config).stdout)
    assert value["result"]["isError"] is True


def test_the_demo(inside: Playbill) -> None:
    assert check("demo", inside("demo", "--json").stdout)["ok"] is True


def test_chaos_and_its_failure(inside: Playbill, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("chaos", inside("chaos", "--seed", "4", "--json").stdout)["ok"] is True
    wrong = Judged(draw(1, "connection"), "liveness", ("it never ended",), frozenset(), (), 1.0, 1)
    monkeypatch.setattr(chaos_verb, "examine", lambda _: wrong)
    monkeypatch.setattr(chaos_verb, "shrunk", lambda _: wrong)
    done = inside("chaos", "--seed", "4", "--json")
    assert (done.returncode, check("chaos", done.stdout)["kind"]) == (11, "liveness")


def test_each_line_of_run(playbill: Playbill, write_config: WriteConfig) -> None:
    config = write_config(clock=shipped("clock"), dead={"command": "no-such-program"})
    done = playbill("run", "--json", "--no-watch", "--timeout", "30", "--config", config, "--", "true")
    lines = [check("run", line) for line in done.stderr.splitlines()]
    assert {"server", "catalog"} <= {line["event"] for line in lines}
    assert lines[-1]["event"] == "catalog" or any(line.get("phase") == "ready" for line in lines)
    assert done.stdout == ""


WRONG = [
    (["lst"], 2, "usage", None),
    (["list", "--jsn"], 2, "usage", None),
    (["--scoop", "list"], 2, "usage", None),
    (["list", "--quiet", "--verbose"], 2, "usage", None),
    (["list", "--config", "none.json"], 3, "config", "ConfigError"),
    (["tools", "--config", "none.json"], 3, "config", "ConfigError"),
    (["remove", "clok"], 2, "usage", "UnknownServer"),
    (["enable", "clok"], 2, "usage", "UnknownServer"),
    (["trust", "clok"], 2, "usage", "UnknownServer"),
    (["add", "clock", "--", "x"], 2, "usage", None),
    (["call", "clok/now"], 2, "usage", "UnknownServer"),
    (["call", "clock/now", "[1]"], 2, "usage", None),
    (["call", "clock/nwo"], 2, "usage", "UnknownTool"),
    (["call", "clock/wait"], 1, "failure", "ToolNotOffered"),
    (["call", "dead/x"], 4, "server", None),
    (["why", "clok"], 2, "usage", "UnknownServer"),
    (["tools", "--profile", "opnai"], 2, "usage", None),
    (["run", "--", "no-such-program"], 2, "usage", None),
    (["chaos", "--replay", "none"], 2, "usage", None),
    (["demo", "--config", "mcp.json"], 2, "usage", None),
    (["completion", "tcsh"], 2, "usage", None),
]


@pytest.mark.parametrize(
    ("words", "code", "kind", "error"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_an_error_is_json_too_and_the_line_for_a_person_stays(
    inside: Playbill, write_config: WriteConfig, words: list[str], code: int, kind: str, error: str | None
) -> None:
    config = write_config(clock=shipped("clock", tools={"exclude": ["wait"]}), dead={"command": "no-such-program"})
    at = words.index("--") if "--" in words else len(words)
    named = [] if "--config" in words or words[0] in ("chaos", "completion", "lst") else ["--config", str(config)]
    done = inside(*words[:at], "--json", *named, *words[at:])
    assert done.returncode == code, done.stderr
    text = done.stderr.splitlines()[0] if words[0] == "run" else done.stdout
    if words[0] == "run":  # its lines are on stderr beside a command
        text = next(line for line in done.stderr.splitlines() if '"failed"' in line)
    failed = check("failed", text)["failed"]
    assert (failed["exit_code"], failed["kind"], failed["error"]) == (code, kind, error)
    assert f"playbill: {failed['message']}" in done.stderr.splitlines()


def test_an_error_of_the_config_tells_its_place_in_parts(inside: Playbill, write_config: WriteConfig) -> None:
    config = write_config('{\n"mcpServers": {"a": }}')
    failed = check("failed", inside("tools", "--json", "--config", config).stdout)["failed"]
    assert (failed["file"], failed["line"]) == (str(config), 2)
    assert failed["column"] is not None
    assert check("failed", inside("remove", "b", "--json", "--config", write_config(a={"command": "x"})).stdout)
    failed = check("failed", inside("remove", "aa", "--json", "--config", write_config(aaa={"command": "x"})).stdout)
    assert failed["failed"]["near"] == "aaa"


def test_where_there_is_an_answer_there_is_no_second_document(inside: Playbill, write_config: WriteConfig) -> None:
    done = inside("tools", "--json", "--config", write_config(dead={"command": "no-such-program"}))
    assert done.returncode == 4
    check("tools", done.stdout)


def test_what_goes_wrong_after_the_answer_is_no_second_document(
    inside: Playbill, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise CliError(Exit.FAILURE, "too late")

    monkeypatch.setattr(showing, "verdict", fails)
    done = inside("tools", "--json", "--config", write_config())
    assert (done.returncode, done.stderr) == (1, "playbill: too late\n")
    check("tools", done.stdout)


def test_json_behind_the_dashes_is_the_commands_own(inside: Playbill) -> None:
    done = inside("run", "--scope", "nowhere", "--", "x", "--json")
    assert (done.returncode, done.stdout) == (2, "")


def test_an_interrupted_verb_says_so_as_json(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    marker = tmp_path / "there"
    script = f"import pathlib, time; pathlib.Path({str(marker)!r}).touch(); time.sleep(600)"
    config = write_config(hung={"command": PROGRAM[0], "args": ["-c", script]})
    process = Forked(
        [*PROGRAM, "tools", "--json", "--config", str(config)],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not marker.exists():
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert check("failed", out)["failed"]["kind"] == "interrupted"
