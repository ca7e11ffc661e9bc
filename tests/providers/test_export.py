"""`Catalog.for_provider`: the exact JSON, nothing dropped, nothing renamed, and what would be refused is refused here first."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from playbill.actors import Catalog, NativeTool, ProfileMismatch, WireTool
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.projection import project
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

from .nasty import NASTY_TOOLS
from .rules import violations
from .sdk import PROVIDERS, check_tools, names, schemas

TEXT = {"type": "string"}
ASK = {"type": "object", "properties": {"q": TEXT}, "required": ["q"]}


def tool(name: str = "mcp__a__ask", **keys: Any) -> WireTool:
    keys = {"server": "a", "bare": name, "description": "Asks.", "input_schema": ASK} | keys
    return WireTool(wire_name=name, **keys)


def catalog(*tools: WireTool, profile: Profile = PORTABLE) -> Catalog:
    return Catalog(1, tools, (), "", profile)


def projected(servers: dict[str, list[ToolDef]], profile: Profile = PORTABLE, natives: Any = ()) -> Catalog:
    entries = tuple(ServerEntry(name, command="run") for name in servers)
    statuses = {
        name: ServerStatus(
            lifecycle=Lifecycle(stage="running", generation=1),
            report=Report(generation=1, connected=True, ready=True),
            tools=tuple(tools),
            tools_generation=1,
        )
        for name, tools in servers.items()
    }
    return project(ConfigState(1, Config(entries)), statuses, natives, Budget(None), profile=profile).catalog


# --- the shapes


def test_each_provider_gets_its_own_json() -> None:
    one = catalog(tool(title="Ask"))
    about = {"name": "mcp__a__ask", "description": "Asks."}
    assert one.for_provider("openai") == [{"type": "function", "function": {**about, "parameters": ASK}}]
    assert one.for_provider("openai-responses") == [{"type": "function", **about, "parameters": ASK, "strict": False}]
    assert one.for_provider("anthropic") == [{**about, "input_schema": ASK}]
    assert one.for_provider("gemini") == [{"functionDeclarations": [{**about, "parametersJsonSchema": ASK}]}]
    assert one.for_provider("bedrock") == [{"toolSpec": {**about, "inputSchema": {"json": ASK}}}]
    assert one.for_provider("mcp") == [{**about, "title": "Ask", "inputSchema": ASK}]


def test_all_of_gemini_is_one_tool_and_nothing_is_none() -> None:
    two = catalog(tool("mcp__a__x"), tool("mcp__a__y")).for_provider("gemini")
    assert [len(each["functionDeclarations"]) for each in two] == [2]
    assert [catalog().for_provider(name) for name in PROVIDERS] == [[]] * len(PROVIDERS)


def test_a_tool_without_a_description_has_none_in_json_either() -> None:
    bare = catalog(tool(description=None))
    for name in ("openai", "openai-responses", "anthropic", "gemini", "mcp"):
        assert "description" not in json.dumps(bare.for_provider(name))


def test_the_dicts_are_the_callers_and_the_schemas_those_of_the_catalog() -> None:
    one = catalog(tool())
    for name in PROVIDERS:
        made = one.for_provider(name)
        (schema,) = schemas(name, made)
        assert schema is one.tools[0].input_schema
        made[0]["cache_control"] = {"type": "ephemeral"}
        assert "cache_control" not in json.dumps(one.for_provider(name))
        with pytest.raises(TypeError, match="read-only"):
            schema["type"] = "string"


def test_an_unknown_provider_is_told_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"no provider 'antropic'; did you mean 'anthropic'\? \(they are: openai, "):
        catalog().for_provider("antropic")
    with pytest.raises(ValueError, match="no provider ''"):
        catalog().for_provider("")


# --- what the providers' own SDKs and rules say


SERVERS = {
    "files": [
        ToolDef("read", title="Read", description="Reads.", input_schema=ASK),
        ToolDef("list", description="Lists."),
    ],
    "a__b": [ToolDef("c d", description="", input_schema={"type": "object", "properties": None, "required": None})],
    "nasty": NASTY_TOOLS,
    "": [ToolDef("", description=" ")],
    "sérvér-" * 20: [ToolDef("t" * 300, description="Long."), ToolDef("t" * 301, description="Longer.")],
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_catalog_for_all_goes_to_each_with_the_names_of_its_tools(provider: str) -> None:
    made = projected(SERVERS)
    assert len(made.tools) > 15
    sent = made.for_provider(provider)
    check_tools(provider, sent)
    assert violations(provider, sent) == []
    assert violations(provider, sent, portable=True) == []
    assert names(provider, sent) == [each.wire_name for each in made.tools]
    assert json.loads(json.dumps(sent)) == sent


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_catalog_for_one_goes_to_it(provider: str) -> None:
    made = projected(SERVERS, PROFILES[provider])
    sent = made.for_provider(provider)
    check_tools(provider, sent)
    assert violations(provider, sent) == []
    assert names(provider, sent) == [each.wire_name for each in made.tools]


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_a_strict_catalog_says_so(provider: str) -> None:
    made = projected(SERVERS, PROFILES["openai"].in_strict_mode())
    assert len(made.tools) > 5
    sent = made.for_provider(provider)
    check_tools(provider, sent)
    assert violations(provider, sent, strict=True) == []
    for schema in schemas(provider, sent):
        assert_strict(schema)
    loose = made.for_provider(provider, strict=False)
    assert violations(provider, loose) == []
    assert names(provider, loose) == names(provider, sent)
    plain = projected({"files": SERVERS["files"]}, PROFILES["openai"].in_strict_mode())
    assert "strict" not in json.dumps(plain.for_provider("anthropic"))


def assert_strict(schema: Any) -> None:
    if isinstance(schema, dict):
        if isinstance(properties := schema.get("properties"), dict):
            assert sorted(schema["required"]) == sorted(properties)
        for value in schema.values():
            assert_strict(value)
    elif isinstance(schema, list):
        for value in schema:
            assert_strict(value)


def test_strict_is_asked_of_what_can_be_strict_only() -> None:
    closed = {**ASK, "additionalProperties": False}
    assert catalog(tool(input_schema=closed)).for_provider("openai", strict=True)[0]["function"]["strict"] is True
    with pytest.raises(ProfileMismatch, match=r"would refuse 1 of 1 tools .*profile='openai-strict'"):
        catalog(tool()).for_provider("openai", strict=True)
    almost = evolve(PROFILES["openai"].in_strict_mode(), name="almost", strict=False)
    with pytest.raises(ProfileMismatch, match="would refuse 1 of 1 tools"):
        catalog(tool(), profile=almost).for_provider("openai", strict=True)
    with pytest.raises(ValueError, match="'anthropic' has no strict mode"):
        catalog(tool()).for_provider("anthropic", strict=True)


def test_the_check_by_rules_sees_what_it_is_for() -> None:
    bad = [
        tool("mcp__a b"),
        tool(input_schema={"type": "object", "properties": {}, "anyOf": [{}]}),
        tool(input_schema={"type": "object", "properties": {"a": {"$ref": "#/x"}}}),
        tool(input_schema={"type": "object", "properties": {"a b": {}}}),
        tool(input_schema={"type": "object", "properties": {"a": True}}),
        tool(input_schema={"type": "object", "properties": {"a": {"type": "array"}}}),
        tool(input_schema={"properties": {}}),
        tool(input_schema={"type": "object", "properties": {}, "required": None}),
        tool(description=" "),
    ]
    for each in bad:
        sent = catalog(each, profile=PROFILES["mcp"]).for_provider("mcp")
        assert violations("mcp", sent, portable=True) != [], each


# --- what would be refused


def test_what_a_provider_would_refuse_is_told_and_nothing_is_sent() -> None:
    union: dict[str, Any] = {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}
    loose = catalog(tool("mcp__a__ok"), tool("mcp__a__u", input_schema=union), profile=PROFILES["mcp"])
    assert len(loose.for_provider("mcp")) == 2
    with pytest.raises(ProfileMismatch) as caught:
        loose.for_provider("anthropic")
    error = caught.value
    assert (error.provider, error.profile) == ("anthropic", "anthropic")
    assert [name for name, _ in error.flaws] == ["mcp__a__u"]
    assert str(error) == (
        f"'anthropic' would refuse 1 of 2 tools ('mcp__a__u': {error.flaws[0][1]}); "
        "the catalog was made for 'mcp': open the host or a view with profile='anthropic'"
    )
    assert "anyOf" in error.flaws[0][1]
    assert "\n" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.flaws, copy.copy(error).profile) == (str(error), error.flaws, "anthropic")


@pytest.mark.parametrize(
    ("provider", "bad", "reason"),
    [
        ("openai", tool("mcp__a__b c"), "names that match"),
        ("openai", tool("m" * 65), "names that match"),
        ("gemini", tool("0x"), "names that match"),
        ("gemini", tool("m" * 64), "names that match"),
        ("bedrock", tool(description=None), "no description"),
        ("bedrock", tool(description=" \n"), "no description"),
        ("openai", tool(input_schema={"type": "object"}), "properties"),
        ("openai-responses", tool(input_schema={"type": "string"}), "type"),
        ("anthropic", tool(input_schema={"type": "object", "properties": {"a b": TEXT}}), "names of properties"),
    ],
)
def test_name_description_and_schema_are_looked_at(provider: str, bad: WireTool, reason: str) -> None:
    with pytest.raises(ProfileMismatch, match=reason):
        catalog(tool(), bad, profile=PROFILES["mcp"]).for_provider(provider)


def test_names_and_descriptions_are_looked_at_whatever_the_catalog_was_made_for() -> None:
    for bad in (tool("no name"), tool(description="")):
        with pytest.raises(ProfileMismatch, match="would refuse 1 of 1"):
            catalog(bad).for_provider("bedrock")


def test_of_many_refused_tools_three_are_named_and_all_are_there() -> None:
    many = catalog(*(tool(f"no {n}") for n in range(7)), profile=PROFILES["mcp"])
    with pytest.raises(
        ProfileMismatch, match=r"refuse 7 of 7 tools \('no 0': .*'no 2': [^']+'openai'[^']+; and 4 more\)"
    ) as error:
        many.for_provider("openai")
    assert [name for name, _ in error.value.flaws] == [f"no {n}" for n in range(7)]


def test_too_many_tools_are_refused_with_the_budget_that_would_do() -> None:
    full = catalog(*(tool(f"mcp__a__t{n}") for n in range(128)))
    assert len(full.for_provider("openai")) == 128
    over = evolve(full, tools=(*full.tools, tool("mcp__a__z")))
    for provider in ("openai", "openai-responses", "gemini"):
        with pytest.raises(
            ProfileMismatch, match=r"takes at most 128 tools and there are 129; .*budget of 128"
        ) as error:
            over.for_provider(provider)
        assert error.value.flaws == ()
    assert len(over.for_provider("anthropic")) == 129


def test_a_native_tool_is_looked_at_whatever_the_catalog_was_made_for() -> None:
    native = tool("run", server=None, input_schema={"type": "object", "properties": {}, "oneOf": [{}]})
    made = catalog(native, tool(), profile=PROFILES["openai"])
    with pytest.raises(ProfileMismatch, match=r"'run': .*mend these tools") as error:
        made.for_provider("openai")
    assert "profile=" not in str(error.value)
    with pytest.raises(ProfileMismatch, match=r"'run': .*open the host or a view with profile='openai'"):
        catalog(native, profile=PROFILES["mcp"]).for_provider("openai")
    goes = projected({"a": [ToolDef("x", description="X.")]}, natives=[NativeTool("run", "Runs.", ASK, print)])
    for provider in PROVIDERS:
        assert names(provider, goes.for_provider(provider)) == ["run", "mcp__a__x"]


def test_schemas_judged_for_the_profile_are_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from playbill.actors.model import export

    asked: list[str] = []

    def told(schema: Any, profile: Profile) -> None:
        asked.append(profile.name)

    monkeypatch.setattr(export, "lint", told)
    for provider in PROVIDERS:
        catalog(tool()).for_provider(provider)
        catalog(tool(), profile=PROFILES[provider]).for_provider(provider)
    assert asked == []
    catalog(tool(), profile=PROFILES["mcp"]).for_provider("anthropic")
    catalog(tool(server=None)).for_provider("anthropic")
    assert asked == ["anthropic", "anthropic"]


def test_a_catalog_for_all_satisfies_the_rules_of_each() -> None:
    covered: Callable[[Profile], bool] = lambda each: PORTABLE.schema.covers(each.schema)  # noqa: E731
    assert [name for name in PROVIDERS if not covered(PROFILES[name])] == []
