"""Input schemas that a provider refuses, with the whole request, or that a client library refuses, with the whole list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from jsonschema import Draft202012Validator
from playbill.actors import Host, ToolState, open_host
from playbill.actors.model.profile import PROFILES

from .conftest import PATIENCE, Project, fake

GOOD = {"type": "object", "properties": {"a": {"type": "string"}}}
ABSENT = object()


def listing(**schemas: Any) -> dict[str, Any]:
    """A server of tools with these schemas, as raw JSON."""
    tools = [
        {"name": name, "description": name, **({} if schema is ABSENT else {"inputSchema": schema})}
        for name, schema in schemas.items()
    ]
    return fake(tools=[tools])


def states(host: Host) -> dict[str, ToolState]:
    return {tool.bare: tool for tool in host.snapshot().model.server("a").tools}


def sent(host: Host) -> dict[str, Any]:
    """The schemas that go to the provider, by bare name."""
    return {tool.bare: json.loads(json.dumps(tool.input_schema)) for tool in host.snapshot().catalog.tools}


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def resolves(schema: Any, reference: str) -> bool:
    """Whether a reference leads somewhere within its own schema."""
    if not reference.startswith("#"):
        return False
    for part in reference.lstrip("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, dict) and part in schema:
            schema = schema[part]
        elif isinstance(schema, list) and part.isdigit() and int(part) < len(schema):
            schema = schema[int(part)]
        else:
            return False
    return True


def is_told(host: Host, bare: str, rule: str | None = None) -> None:
    """A tool that is left out is in the model by server and name, with a rule, and a reason that `why` says too."""
    state = states(host)[bare]
    assert state.verdict == "quarantined"
    assert state.rule
    assert state.path
    told = host.why("a", bare)
    assert (told.verdict, told.rule, told.path) == ("quarantined", state.rule, state.path)
    assert f"tool {bare!r} of server 'a' is quarantined: " in str(told)
    assert rule is None or state.rule == rule


async def test_b059_odd_schemas_are_mended_where_their_meaning_is_clear_and_else_cost_their_own_tool_only(
    project: Project,
) -> None:
    clear = {
        "absent": ABSENT,
        "null": None,
        "empty": {},
        "no_type": {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        "nullable": {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
    }
    unclear = {"list": [], "text": "x", "string": {"type": "string"}}
    project.write(a=listing(first=GOOD, **clear, **unclear, last=GOOD))
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        schemas = sent(host)
        assert set(schemas) == {"first", "last", *clear}
        for name, schema in schemas.items():
            assert schema["type"] == "object", name
            assert isinstance(schema["properties"], dict), name
            assert states(host)[name].mended or name in ("first", "last")
        assert schemas["no_type"]["required"] == ["a"]
        assert schemas["nullable"]["properties"]["a"]["type"] == "string"
        for name in unclear:
            is_told(host, name)


async def test_b063_schemas_of_nothing_but_their_dialect_are_those_of_tools_that_take_any_object(
    project: Project,
) -> None:
    dialect = {"$schema": "http://json-schema.org/draft-07/schema#"}
    project.write(
        a=listing(**{f"t{n}": dialect for n in range(14)}),
        b=listing(**{f"t{n}": GOOD for n in range(9)}, bad={"type": "array"}),
    )
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        usable = [tool.bare for tool in host.snapshot().catalog.tools if tool.server == "a"]
        assert len(usable) == 14
        for tool in host.snapshot().catalog.tools:
            schema = json.loads(json.dumps(tool.input_schema))
            assert schema["type"] == "object"
            Draft202012Validator.check_schema(schema)
        assert sum(tool.server == "b" for tool in host.snapshot().catalog.tools) == 9
        assert host.why("b", "bad").verdict == "quarantined"
        assert not host.snapshot().model.server("a").list_error
        assert not host.snapshot().model.server("b").list_error


REFERRING: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "into_defs": (
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "integer"}}},
        [{}, {"p": 1}],
        [{"p": "x"}],
    ),
    "into_properties": (
        {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"$ref": "#/properties/x"}}},
        [{"x": 1, "y": 2}],
        [{"y": "no"}],
    ),
    "with_siblings": (
        {
            "type": "object",
            "properties": {"p": {"$ref": "#/$defs/P", "description": "a P", "minimum": 5}},
            "$defs": {"P": {"type": "integer", "maximum": 9}},
        },
        [{"p": 7}],
        [{"p": 3}, {"p": 10}, {"p": "x"}],
    ),
    "chain": (
        {
            "type": "object",
            "properties": {"p": {"$ref": "#/$defs/A"}},
            "$defs": {
                "A": {"$ref": "#/$defs/B"},
                "B": {"type": "array", "items": {"$ref": "#/$defs/C"}},
                "C": {"enum": [1]},
            },
        },
        [{"p": [1, 1]}],
        [{"p": [2]}, {"p": 1}],
    ),
    "any_of": (
        {
            "type": "object",
            "properties": {"p": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}},
            "required": ["p"],
            "$defs": {"P": {"type": "object", "properties": {"q": {"$ref": "#/$defs/Q"}}}, "Q": {"type": "string"}},
        },
        [{"p": None}, {"p": {"q": "x"}}],
        [{}, {"p": {"q": 1}}],
    ),
    "closed": (
        {
            "type": "object",
            "properties": {"p": {"$ref": "#/$defs/P"}},
            "additionalProperties": False,
            "required": ["p"],
            "$defs": {"P": {"type": "integer"}},
        },
        [{"p": 1}],
        [{}, {"p": 1, "q": 2}],
    ),
}


async def test_b107_references_are_inlined_for_who_needs_it_and_the_tools_kept_and_their_meaning(
    project: Project,
) -> None:
    project.write(a=listing(**{name: schema for name, (schema, _, _) in REFERRING.items()}))
    async with open_host(project.path) as host:  # for all providers: also for those that take no reference
        assert await host.ready(timeout=PATIENCE)
        schemas = sent(host)
        assert set(schemas) == set(REFERRING)
        for name, (advertised, good, bad) in REFERRING.items():
            assert list(references(schemas[name])) == []
            for schema in (advertised, schemas[name]):
                judge = Draft202012Validator(schema)
                assert all(judge.is_valid(value) for value in good), name
                assert not any(judge.is_valid(value) for value in bad), name
        assert schemas["with_siblings"]["properties"]["p"]["description"] == "a P"


@pytest.mark.parametrize("profile", PROFILES)
async def test_b108_nothing_that_is_sent_dangles_under_any_profile_and_keywords_of_the_root_stay(
    project: Project, profile: str
) -> None:
    project.write(a=listing(**{name: schema for name, (schema, _, _) in REFERRING.items()}))
    async with open_host(project.path, profile=profile) as host:
        assert await host.ready(timeout=PATIENCE)
        schemas = sent(host)
        assert set(schemas) == set(REFERRING)
        for name, schema in schemas.items():
            assert all(resolves(schema, each) for each in references(schema)), name
        closed = schemas["closed"]
        assert (closed["additionalProperties"], closed["required"]) == (False, ["p"])


def fan(levels: int) -> dict[str, Any]:
    """A schema that doubles with each level when it is inlined."""
    defs = {
        f"L{n}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/L{n + 1}"} for side in ("l", "r")}}
        for n in range(levels)
    }
    return {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/L0"}},
        "$defs": {**defs, f"L{levels}": {"type": "string"}},
    }


RECURSIVE: dict[str, dict[str, Any]] = {
    "tree": {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
        },
    },
    "root_itself": {"type": "object", "properties": {"next": {"$ref": "#"}}},
    "mutual": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {
            "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
            "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        },
    },
    "to_itself_only": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/A"}},
    },
    "fan": fan(25),
}


@pytest.mark.parametrize("profile", PROFILES)
async def test_b109_recursive_and_exploding_schemas_end_soon_and_cost_at_most_their_own_tools(
    project: Project, profile: str
) -> None:
    project.write(a=listing(good=GOOD, **RECURSIVE, fine=fan(4)))
    with trio.fail_after(PATIENCE):
        async with open_host(project.path, profile=profile) as host:
            assert await host.ready(timeout=PATIENCE)
            schemas = sent(host)
            assert {"good", "fine"} <= set(schemas)
            for name in RECURSIVE:
                if name not in schemas:
                    is_told(host, name)
                else:
                    assert all(resolves(schemas[name], each) for each in references(schemas[name]))
            assert max(len(json.dumps(schema)) for schema in schemas.values()) < 200_000
            if not PROFILES[profile].schema.refs:
                # What has no end cannot be said without references.
                assert set(schemas) == {"good", "fine"}


async def test_b110_a_reference_to_nothing_costs_its_own_tool_and_no_reference_is_ever_fetched(
    project: Project,
) -> None:
    touched: list[str] = []

    async def server(stream: trio.SocketStream) -> None:
        touched.append("connected")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, server, [listener])
        dangling = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}}
        remote = {"type": "object", "properties": {"a": {"$ref": f"http://127.0.0.1:{port}/schema.json#/$defs/A"}}}
        absolute = {"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}
        base = {"$id": f"http://127.0.0.1:{port}/base", "type": "object", "properties": {"a": {"$ref": "other.json"}}}
        bad = {"dangling": dangling, "remote": remote, "file": absolute, "relative": base}
        project.write(a=listing(**{f"good{n}": GOOD for n in range(9)}, **bad))
        for profile in PROFILES:
            async with open_host(project.path, profile=profile) as host:
                assert await host.ready(timeout=PATIENCE)
                schemas = sent(host)
                assert {name for name in schemas if name.startswith("good")} == {f"good{n}" for n in range(9)}
                if not PROFILES[profile].schema.refs:
                    assert len(schemas) == 9
                for name in bad:
                    if name not in schemas:
                        is_told(host, name)
                host.snapshot().catalog.for_provider("mcp")
        # If anybody had asked, it would have been heard by now: who asks after this is answered behind it.
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            assert await stream.receive_some() == b""
        assert touched == ["connected"]
        nursery.cancel_scope.cancel()
