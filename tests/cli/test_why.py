"""The verb that explains: in the words of the model, and starting no more than the answer needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.cli import explaining
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.naming import wire_name

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]
Entry = Callable[..., dict[str, Any]]

SILENT = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}


def marks(path: Path, **more: Any) -> dict[str, Any]:
    """A server of three tools that leaves a file when it starts."""
    code = (
        f"import pathlib\npathlib.Path({str(path)!r}).write_text('started')\n"
        "from playbill.actors.servers._stdio import Tool, serve\n"
        "serve('marks', 'Marks', '', [Tool(f't{n}', '', '', {}, (), str) for n in range(3)])\n"
    )
    return {"command": sys.executable, "args": ["-c", code], **more}


def test_why_says_that_a_tool_is_on_the_wire(playbill: Playbill, write_config: WriteConfig, entry: Entry) -> None:
    config = write_config(dice=entry("dice"))
    done = playbill("why", "dice/flip", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tool 'flip' of server 'dice' is on the wire as 'mcp__dice__flip'")
    assert done.stdout.count("\n") == 1
    assert playbill("why", "dice", "flip", "--config", config).stdout == done.stdout


@pytest.mark.parametrize("name", ["a/t1", "mcp__a__t1", "a t1", "a mcp__a__t1"])
@pytest.mark.parametrize(
    ("keys", "verdict", "part"),
    [
        ({"tools": {"exclude": ["t1"]}}, "excluded", "excluded by the entry 'a' ("),
        ({"tools": {"include": ["t2"]}}, "excluded", "not in the include list of the entry 'a' ("),
        ({"disabled": True}, "server_down", "its server is disabled; enable it"),
        ({"timeout": "soon"}, "server_down", "its server is invalid: "),
    ],
)
def test_nothing_is_started_when_the_config_alone_answers(
    inside: Playbill,
    write_config: WriteConfig,
    tmp_path: Path,
    name: str,
    keys: dict[str, Any],
    verdict: str,
    part: str,
) -> None:
    started = tmp_path / "started"
    config = write_config(a=marks(started, **keys))
    done = inside("why", *name.split(), "--config", config, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert (value["schema"], value["config"], value["server"], value["tool"]) == (1, str(config), "a", "t1")
    assert value["verdict"] == verdict
    assert part in value["reason"]
    assert value["sentence"].endswith(value["reason"])
    assert not started.exists()
    assert inside("why", *name.split(), "--config", config).stdout == f"{value['sentence']}\n"


def test_nothing_is_started_of_a_project_that_nobody_trusts_and_how_to_is_said(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    write_config(**{"the a": marks(started)}).rename(tmp_path / ".mcp.json")
    for name in ("the a", "the a/t1"):
        done = inside("why", name)
        assert (done.returncode, done.stderr) == (0, "")
        assert "trust it to let it start (`playbill trust 'the a'`)" in done.stdout
    assert not started.exists()


def test_only_the_servers_are_started_that_the_answer_needs(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    def started() -> set[str]:
        found = {path.name for path in tmp_path.glob("s-*")}
        for name in found:
            (tmp_path / name).unlink()
        return found

    config = write_config(
        a=marks(tmp_path / "s-a"),
        b=marks(tmp_path / "s-b", tools={"pin": ["t2"]}),
        c=marks(tmp_path / "s-c", tools={"pin": ["t0"]}),
        d=marks(tmp_path / "s-d", priority=1),
        off=marks(tmp_path / "s-off", disabled=True),
    )
    asked = {
        "d/t1": {"s-d", "s-b", "s-c"},  # first by priority, but pins go before it
        "a/t1": {"s-a", "s-b", "s-c", "s-d"},
        "b/t2": {"s-b"},  # a pin, and the first of them
        "c/t0": {"s-b", "s-c"},
        "off/t0": set(),
    }
    for name, expected in asked.items():
        done = inside("why", name, "--config", config)
        assert (done.returncode, done.stderr) == (0, "")
        assert started() == expected, name
    assert inside("why", "d/nothing", "--config", config).returncode == 2
    assert started() == {"s-d"}


def test_a_tool_over_the_budget_is_told_its_rank_among_all(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    config = write_config(a=marks(tmp_path / "a"), b=marks(tmp_path / "b"), c=marks(tmp_path / "c"))
    done = inside("why", "b/t1", "--budget", "4", "--config", config, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert (value["verdict"], value["rank"], value["wanted"], value["budget"]) == ("over_budget", 5, 9, 4)
    assert "it is number 5 of 9 tools and the budget is 4: disable 1 tool before it" in value["sentence"]
    assert inside("why", "b/t0", "--budget", "4", "--config", config).stdout.count("on the wire as") == 1


def test_a_wire_name_that_does_not_tell_its_server_is_found_among_all(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(**{"my notes": entry("notes")}, clock=entry("clock"))
    listed = json.loads(inside("tools", "--json", "--config", config).stdout)
    wire = {tool["tool"]: tool["wire_name"] for tool in listed["servers"][0]["tools"]}["titles"]
    done = inside("why", wire, "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"tool 'titles' of server 'my notes' is on the wire as '{wire}'")
    done = inside("why", wire[:-1], "--config", config)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"did you mean {wire!r}" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dise", "no server named 'dise' is configured in {config} (did you mean 'dice'?)"),
        ("dise/flip", "no server named 'dise' is configured in {config} (did you mean 'dice/flip'?)"),
        ("dice/flop", "server 'dice' has no tool named 'flop'; did you mean 'flip'?"),
        (
            "dice/mcp__dice__flip",
            "server 'dice' has no tool named 'mcp__dice__flip'; that is the wire name of tool 'flip' of server 'dice'",
        ),
        ("mcp__dice__flop", "server 'dice' has no tool named 'flop'; did you mean 'flip'?"),
        ("dice/", "'dice/' names no tool: write SERVER/TOOL, or only the server"),
    ],
)
def test_a_name_of_nothing_exits_2_with_the_nearest_one(
    inside: Playbill, write_config: WriteConfig, entry: Entry, name: str, said: str
) -> None:
    config = write_config(dice=entry("dice"))
    done = inside("why", name, "--config", config)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"playbill: {said.format(config=config)}\n"


def named(tool: str) -> dict[str, Any]:
    """A server of one tool, called so."""
    code = (
        "from playbill.actors.servers._stdio import Tool, serve\n"
        f"serve('one', 'One', '', [Tool({tool!r}, '', 'Says.', {{}}, (), str)])\n"
    )
    return {"command": sys.executable, "args": ["-c", code]}


def test_a_tool_without_a_name_is_explained_where_there_is_one(inside: Playbill, write_config: WriteConfig) -> None:
    done = inside("why", "one/", "--config", write_config(one=named("")))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tool '' of server 'one' is ")


@pytest.mark.parametrize(
    ("exclude", "code", "said"),
    [([], 2, "'a/' names no tool"), ([""], 0, "tool '' of server 'a' is not on the wire: excluded by the entry 'a'")],
)
def test_whether_a_server_that_does_not_run_has_a_tool_without_a_name_is_told_by_its_lists(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path, exclude: list[str], code: int, said: str
) -> None:
    started = tmp_path / "started"
    config = write_config(a=marks(started, disabled=not exclude, tools={"exclude": exclude}))
    done = inside("why", "a/", "--config", config)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert not started.exists()


@pytest.mark.parametrize(
    ("name", "said", "other"),
    [
        ("mcp__a__t1", "'mcp__a__t1' is also the wire name of tool 't1' of server 'a', if it has one: ", "a/t1"),
        ("a/t1", "'a/t1' is also the name of tool 't1' of server 'a', if it has one: ", "mcp__a__t1"),
        ("a/", None, None),
        ("b", None, None),
    ],
)
def test_a_server_that_is_called_like_a_tool_is_explained_with_a_word_of_that_tool(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path, name: str, said: str | None, other: str | None
) -> None:
    config = write_config(a=marks(tmp_path / "started"), **{name: {**SILENT, "disabled": True}})
    done = inside("why", name, "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    first, *more = done.stdout.splitlines()
    assert first == f"server {name!r} is disabled; enable it"
    assert more == ([] if said is None else [f"{said}ask for it as {other!r}"])
    also = json.loads(inside("why", name, "--config", config, "--json").stdout)["also"]
    assert also == (None if said is None else "a/t1")


@pytest.mark.parametrize("name", ["silent", "silent/x"])
def test_a_server_that_is_not_ready_in_time_exits_4_and_is_explained_all_the_same(
    inside: Playbill, write_config: WriteConfig, name: str
) -> None:
    config = write_config(silent=SILENT)
    done = inside("why", name, "--config", config, "--timeout", "0.5", "--json")
    assert (done.returncode, done.stderr) == (4, "")
    value = json.loads(done.stdout)
    assert value["phase"] == "starting"
    assert "starting: it has not answered yet" in value["sentence"]


def test_a_server_that_dies_exits_4_with_its_error_and_what_comes_next(
    inside: Playbill, write_config: WriteConfig
) -> None:
    config = write_config(bad={"command": sys.executable, "args": ["-c", "import sys; sys.exit('I will not')"]})
    done = inside("why", "bad/tool", "--config", config, "--json")
    assert (done.returncode, done.stderr) == (4, "")
    value = json.loads(done.stdout)
    assert "I will not" in value["error"]
    assert value["error"] in value["sentence"]
    assert value["retry_in"] is None or value["retry_in"] >= 0


def test_another_server_that_is_needed_and_not_ready_is_named_and_exits_4(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(silent=SILENT, dice=entry("dice"))
    done = inside("why", "dice/flip", "--config", config, "--timeout", "3")
    assert done.returncode == 4
    assert "is on the wire" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("playbill: server 'silent' is not ready, so its tools are not counted: ")


def test_a_server_that_was_not_asked_for_a_wire_name_and_is_not_ready_is_named_too(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(**{"my notes": entry("notes")}, silent=SILENT)
    done = inside("why", wire_name("my notes", "titles"), "--config", config, "--timeout", "3")
    assert done.returncode == 4
    assert "is on the wire" in done.stdout
    assert done.stderr.startswith("playbill: server 'silent' is not ready, so its tools are not counted: ")


def test_what_is_mended_of_a_server_is_told_though_all_of_it_is_sent(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    done = inside("why", "m", "--config", write_config(m=marks(tmp_path / "started")))
    assert (done.returncode, done.stdout.count("; mended: description: was empty")) == (0, 3)


def test_a_server_is_explained_with_what_is_not_sent_of_it(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(dice=entry("dice", tools={"exclude": ["flip"]}))
    done = inside("why", "dice", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rest = done.stdout.splitlines()
    assert head == "server 'dice' is ready; 3 of 4 tools on the wire, 1 excluded"
    (flip,) = [line for line in rest if "not on the wire" in line]
    assert flip.startswith("tool 'flip' of server 'dice' is not on the wire: excluded by the entry 'dice' (")
    value = json.loads(inside("why", "dice", "--config", config, "--json").stdout)
    assert (value["server"], value["tool"], value["phase"]) == ("dice", None, "ready")
    assert value["verdicts"] == {"on_wire": 3, "excluded": 1}
    assert {tool["tool"]: tool["verdict"] for tool in value["tools"]}["flip"] == "excluded"


def test_tools_and_why_and_a_refused_call_say_the_same(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(dice=entry("dice", tools={"exclude": ["flip"]}), clock=entry("clock", disabled=True))
    listed = json.loads(inside("tools", "--json", "--config", config).stdout)
    reason = {tool["tool"]: tool["reason"] for tool in listed["servers"][0]["tools"]}["flip"]
    assert json.loads(inside("why", "dice/flip", "--json", "--config", config).stdout)["reason"] == reason
    assert inside("call", "dice/flip", "--config", config).stderr.endswith(f"is not offered: {reason}\n")
    assert reason in inside("tools", "--config", config).stdout


def test_an_unknown_profile_exits_2_with_the_nearest_one(
    inside: Playbill, write_config: WriteConfig, entry: Entry
) -> None:
    config = write_config(dice=entry("dice"))
    for verb in (["why", "dice/flip"], ["tools"]):
        done = inside(*verb, "--profile", "opanai", "--config", config)
        assert (done.returncode, done.stdout) == (2, "")
        assert "did you mean 'openai'" in done.stderr
    assert inside("why", "dice/flip", "--profile", "openai", "--config", config).returncode == 0
    assert inside("tools", "--budget", "-1", "--config", config).returncode == 2


def test_tools_says_what_was_mended_and_when_the_profiles_limit_is_near(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path
) -> None:
    many = tmp_path / "many.py"
    many.write_text(
        "import sys\nfrom playbill.actors.servers._stdio import Tool, serve\n"
        "serve('many', 'Many', '', [Tool(f't{n}', '', '', {}, (), str) for n in range(130)])\n"
    )
    config = write_config(many={"command": sys.executable, "args": [str(many)]})
    done = inside("tools", "--budget", "200", "--config", config)
    assert done.returncode == 5
    assert "warning: the budget of 200 is above the 128 tools that profile 'portable' takes" in done.stderr
    assert "mostly from many (130)" in done.stderr
    assert "profile 'portable' takes 128: disable 2 tools before it" in done.stdout
    quiet = inside("tools", "--budget", "200", "--config", config, "--quiet")
    assert "warning" not in quiet.stderr
    value = json.loads(inside("tools", "--budget", "200", "--json", "--config", config).stdout)
    assert value["limit_warning"].startswith("the budget of 200 is above")
    mended = {line for tool in value["servers"][0]["tools"] for line in tool["mended"]}
    assert mended, "a description that is empty is one thing that the portable profile does not take"
    assert "MENDED" in done.stdout
    assert next(iter(mended)) in done.stdout


@pytest.mark.parametrize("entry", [ServerEntry("a", command="x", exclude=("w",)), ServerEntry("a", disabled=True)])
def test_nothing_is_said_to_be_mended_of_a_tool_that_nobody_has_listed(entry: ServerEntry) -> None:
    answer = explaining._from_config(entry, "w", {})
    assert answer is not None
    assert answer.tool is not None
    assert answer.tool.mended == ()
    assert "mended" not in answer.tool.sentence


def test_why_says_what_a_server_calls_itself(playbill: Playbill, write_config: WriteConfig, entry: Entry) -> None:
    config = write_config(notes=entry("notes"))
    done = playbill("why", "notes", "--config", str(config))
    assert done.returncode == 0
    assert done.stdout.endswith("server 'notes' calls itself 'Notes' 1\n")
