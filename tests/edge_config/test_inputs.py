"""Inputs: what a file declares, who may supply them, and what is said when nobody does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Host, InputSpec, Snapshot, open_host
from playbill.actors.edge.config.expand import ExpandError, InputMissing, expand, input_variable
from playbill.actors.edge.config.inputs import Supply, read_inputs
from playbill.actors.edge.config.read import Reader, read_config
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.diff import launch_key

PATIENCE = 30.0
TOKEN = InputSpec("token", "promptString", "A token", password=True)
REGION = InputSpec("region", "pickString", "Where", default="eu-west", options=("eu-west", "us-east"))


def entry(*args: str, inputs: tuple[InputSpec, ...] = (TOKEN, REGION), **keys: Any) -> ServerEntry:
    return ServerEntry("x", command="c", args=args, inputs=inputs, **keys)


def missing(*args: str, **keys: Any) -> str:
    with pytest.raises(InputMissing) as caught:
        expand(entry(*args, **keys), environ={})
    return str(caught.value)


def test_what_a_file_declares_is_in_each_entry() -> None:
    declared = [
        {"id": "token", "type": "promptString", "description": "A token", "password": True},
        {"id": "region", "type": "pickString", "options": ["a", {"label": "B", "value": "b"}], "default": "a"},
        {"id": "bare"},
    ]
    servers = {"x": {"command": "c"}, "y": {"url": "https://h"}}
    for text in (json.dumps({"inputs": declared, "servers": servers}), json.dumps({**servers, "inputs": declared})):
        config = read_config(text)
        assert config.warnings == ()
        for each in config.servers:
            assert each.inputs == (
                InputSpec("token", "promptString", "A token", password=True),
                InputSpec("region", "pickString", options=("a", "b"), default="a"),
                InputSpec("bare", "promptString"),
            )


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (None, []),
        ({"a": 1}, ["inputs: expected a list of inputs, found an object"]),
        (["a", {"name": "b"}], ["inputs[0]: expected an object", "inputs[1]: expected an id, a string"]),
        ([{"id": "a"}, {"id": "a"}], ["inputs[1]: the input 'a' is declared twice; the first counts"]),
        ([{"id": "a", "descripton": "x"}], ["inputs[0].descripton: unknown key (did you mean 'description'?)"]),
        ([{"id": "a", "password": "yes", "default": 3, "options": 4}], []),
    ],
)
def test_a_wrong_declaration_is_warned_about_and_costs_no_server(value: Any, wrong: list[str]) -> None:
    assert read_inputs(value)[1] == wrong
    config = read_config(json.dumps({"inputs": value, "servers": {"x": {"command": "c"}}}))
    assert config.warnings == tuple(wrong)
    assert config.servers[0].runnable


def test_another_declaration_is_no_reason_to_start_a_server_anew() -> None:
    text = '{"inputs": [{"id": "a", "description": "%s"}], "servers": {"x": {"command": "c", "args": ["${input:a}"]}}}'
    reader = Reader("f")
    first = reader.read(text % "one").config
    second = reader.read(text % "two", first).config
    assert [each.servers[0].inputs[0].description for each in (first, second)] == ["one", "two"]
    assert launch_key(first.servers[0]) == launch_key(second.servers[0])
    assert reader.read(text % "two", second).config is second


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("token", "PLAYBILL_INPUT_TOKEN"),
        ("home-assistant.domain", "PLAYBILL_INPUT_HOME_ASSISTANT_DOMAIN"),
        ("é 1", "PLAYBILL_INPUT___1"),
    ],
)
def test_each_input_has_a_variable(id_: str, name: str) -> None:
    assert input_variable(id_) == name
    assert expand(entry(f"${{input:{id_}}}"), environ={name: "given"}).args == ("given",)


def test_the_embedder_comes_before_the_environment_and_that_before_the_default() -> None:
    environ = {"PLAYBILL_INPUT_REGION": "from-env"}
    assert expand(entry("${input:region}"), environ={}).args == ("eu-west",)
    assert expand(entry("${input:region}"), environ=environ).args == ("from-env",)
    assert expand(entry("${input:region}"), environ=environ, inputs={"region": "mine"}).args == ("mine",)
    assert expand(entry("${input:region}"), environ=environ, inputs={"region": None}).args == ("from-env",)


def test_an_input_that_nobody_supplied_says_what_is_declared_and_how_to_supply_it() -> None:
    how = "set PLAYBILL_INPUT_TOKEN, or pass inputs= to open_host"
    assert missing("a", "${input:token}") == f"args[1]: ${{input:token}} was not supplied (A token): {how}"
    assert missing("${input:token}", inputs=()) == (
        f"args[0]: ${{input:token}} is not declared by the file and was not supplied: {how}"
    )
    assert missing("${input:token}", inputs=(REGION,)) == (
        f"args[0]: ${{input:token}} is not declared by the file (declared: region) and was not supplied: {how}"
    )
    pick = InputSpec("token", "pickString", "Which\none", options=("a", "b"))
    assert missing("${input:token}", inputs=(pick,)) == (
        f"args[0]: ${{input:token}} was not supplied (Which one; one of a, b): {how}"
    )


def test_what_is_supplied_is_a_secret_and_what_the_file_says_is_none() -> None:
    inputs = {"token": "pass-word", "region": "us-east", "other": "undeclared"}
    out = expand(entry("${input:token}", "${input:region}", "${input:other}"), environ={}, inputs=inputs)
    assert out.secrets == {"pass-word", "undeclared"}
    assert expand(entry("${input:region}"), environ={}, inputs={"region": "elsewhere"}).secrets == {"elsewhere"}
    hidden = InputSpec("p", "promptString", password=True, default="default-password")
    assert expand(entry("${input:p}", inputs=(hidden,)), environ={}).secrets == {"default-password"}


def test_what_an_input_holds_is_not_read_again() -> None:
    assert expand(entry("${input:token}"), environ={}, inputs={"token": "${input:token}${X}"}).args == (
        "${input:token}${X}",
    )


async def test_a_function_is_asked_for_what_is_needed_and_for_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYBILL_INPUT_REGION", "not this")
    asked: list[InputSpec] = []

    async def ask(spec: InputSpec) -> str | None:
        await trio.lowlevel.checkpoint()
        asked.append(spec)
        return {"token": "t0ken", "region": "us-east"}.get(spec.id)

    supply = Supply(ask)
    monkeypatch.setenv("SET", "there")
    args = ("${input:token}", "${input:token}${input:region}", "${SET:-${input:unneeded}}")
    assert (await supply.expand(entry(*args))).args == ("t0ken", "t0kenus-east", "there")
    assert asked == [TOKEN, REGION]
    assert (await supply.expand(entry("plain"))).args == ("plain",)
    assert len(asked) == 2


async def test_what_a_function_does_not_know_comes_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    supply = Supply(lambda spec: None)
    assert (await supply.expand(entry("${input:region}"))).args == ("eu-west",)
    with pytest.raises(InputMissing, match=r"was not supplied \(A token\)"):
        await supply.expand(entry("${input:token}"))
    monkeypatch.setenv("PLAYBILL_INPUT_TOKEN", "from-env")
    assert (await supply.expand(entry("${input:token}"))).args == ("from-env",)


async def test_two_servers_never_ask_at_the_same_time(autojump_clock: trio.testing.MockClock) -> None:
    now = most = 0

    async def ask(spec: InputSpec) -> str:
        nonlocal now, most
        now += 1
        most = max(now, most)
        await trio.sleep(1)
        now -= 1
        return "v"

    supply = Supply(ask)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(supply.expand, entry("${input:token}", "${input:region}"))
    assert most == 1


def _fails(spec: InputSpec) -> str:
    raise LookupError("the\nvault is shut")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (_fails, "args[0]: ${input:token} could not be supplied: LookupError: the vault is shut"),
        (lambda spec: 3, "args[0]: ${input:token} was supplied as int, not as a string"),
        ({"token": 3}, "args[0]: ${input:token} was supplied as int, not as a string"),
        ({"token": "a\0b"}, "args[0]: ${input:token} holds a NUL character, which cannot be passed on"),
    ],
)
async def test_a_supplier_that_fails_is_named(ask: Any, words: str) -> None:
    with pytest.raises(ExpandError) as caught:
        await Supply(ask).expand(entry("${input:token}"))
    assert str(caught.value) == words


@pytest.mark.parametrize("wrong", [{"inputs": "token"}, {"inherit_env": "PATH"}, {"inputs": 3}])
async def test_what_is_no_supplier_is_refused_at_once(wrong: Any, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    with pytest.raises(TypeError, match="not"):
        async with open_host(tmp_path / "mcp.json", **wrong):
            raise AssertionError("the host opened")


SERVER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message.get("method") == "tools/list":
        shown = json.dumps([sys.argv[1:], dict(os.environ)])
        result = {"tools": [{"name": "env", "description": shown, "inputSchema": {"type": "object"}}]}
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def configured(path: Path, **keys: Any) -> Path:
    server = {"command": sys.executable, "args": ["-I", "-S", "-c", SERVER, "${input:token}"], **keys}
    declared = [{"id": "token", "type": "promptString", "description": "A token", "password": True}]
    lacking = {**server, "args": ["${input:nobody}"]}
    path.write_text(json.dumps({"inputs": declared, "servers": {"x": server, "lacking": lacking}}))
    return path


async def until(host: Host, name: str, *phases: str) -> Snapshot:
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            if snapshot.model.server(name).phase in phases:
                return snapshot
    raise AssertionError("the host closed")


async def test_a_server_starts_with_its_inputs_and_one_that_lacks_them_fails_alone(tmp_path: Path) -> None:
    async def ask(spec: InputSpec) -> str | None:
        await trio.lowlevel.checkpoint()
        return "s3cret-token" if spec.id == "token" else None

    async with open_host(configured(tmp_path / "mcp.json"), inputs=ask) as host:
        snapshot = await until(host, "x", "ready")
        args, _ = json.loads(snapshot.model.server("x").tools[0].description or "")
        assert args == ["s3cret-token"]
        assert "s3cret-token" not in repr(snapshot.model.server("x").args)
        lacking = (await until(host, "lacking", "backing_off", "parked")).model.server("lacking")
        assert lacking.error == (
            "args[0]: ${input:nobody} is not declared by the file (declared: token) and was not supplied:"
            " set PLAYBILL_INPUT_NOBODY, or pass inputs= to open_host"
        )


@pytest.mark.parametrize(
    ("inherit", "there"),
    [((), set()), (["PLAYBILL_TEST_A"], {"PLAYBILL_TEST_A"}), (True, {"PLAYBILL_TEST_A", "PLAYBILL_TEST_B"})],
)
async def test_a_server_inherits_more_only_where_that_is_asked_for(
    inherit: Any, there: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYBILL_TEST_A", "a")
    monkeypatch.setenv("PLAYBILL_TEST_B", "b")
    monkeypatch.setenv("PLAYBILL_INPUT_TOKEN", "from-env")
    path = configured(tmp_path / "mcp.json")
    async with open_host(path, inherit_env=inherit) as host:
        snapshot = await until(host, "x", "ready")
        args, environ = json.loads(snapshot.model.server("x").tools[0].description or "")
        assert args == ["from-env"]
        assert {name for name in environ if name.startswith("PLAYBILL_TEST")} == there


async def test_a_value_that_cannot_be_sent_costs_its_server_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYBILL_TEST_BAD", "s3cret\nX-Evil: 1")
    path = configured(tmp_path / "mcp.json")
    value = json.loads(path.read_text())
    value["servers"]["bad"] = {"url": "http://127.0.0.1:9/", "headers": {"X-K": "Bearer ${PLAYBILL_TEST_BAD}"}}
    path.write_text(json.dumps(value))
    async with open_host(path, inputs={"token": "t"}) as host:
        bad = (await until(host, "bad", "backing_off", "parked")).model.server("bad")
        assert bad.error == "headers.X-K: ${PLAYBILL_TEST_BAD} holds a line break, which cannot be sent in a header"
        await until(host, "x", "ready")
