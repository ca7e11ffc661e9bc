"""Profiles: the table, and that the portable one is the strictest of all in every point."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.naming import wire_name
from playbill.actors.model.profile import PORTABLE, PROFILES, SchemaRules, find_profile

EDITORS = {"cursor", "vscode", "windsurf"}


def test_all_of_them_are_there_each_with_its_source() -> None:
    assert list(PROFILES) == [
        "portable",
        "openai",
        "openai-responses",
        "openai-strict",
        "anthropic",
        "anthropic-managed",
        "gemini",
        "vertex",
        "bedrock",
        "xai",
        "vscode",
        "windsurf",
        "cursor",
        "mcp",
    ]
    for each in PROFILES.values():
        assert re.search(r"20\d\d-\d\d", each.source), each.name
    counts = {name: each.max_tools for name, each in PROFILES.items()}
    assert (counts["openai"], counts["vertex"], counts["xai"], counts["vscode"]) == (128, 128, 128, 128)
    assert (counts["windsurf"], counts["cursor"], counts["anthropic"], counts["mcp"]) == (100, 40, None, None)


@pytest.mark.parametrize("name", PROFILES)
def test_the_portable_profile_is_at_least_as_strict(name: str) -> None:
    other = PROFILES[name]
    if not other.strict:
        assert PORTABLE.schema.covers(other.schema)
        assert PORTABLE.description or not other.description
    if other.max_tools is not None and name not in EDITORS:
        assert PORTABLE.max_tools is not None
        assert PORTABLE.max_tools <= other.max_tools


@given(st.text(max_size=70), st.text(max_size=70))
def test_every_wire_name_is_one_that_every_profile_takes(server: str, bare: str) -> None:
    name = wire_name(server, bare)
    assert [each.name for each in PROFILES.values() if each.name_flaw(name) is not None] == []


@given(st.text(max_size=66) | st.from_regex(r"[A-Za-z0-9_.:-]{1,66}", fullmatch=True))
def test_a_name_that_the_portable_profile_takes_is_taken_by_all(name: str) -> None:
    if PORTABLE.name_flaw(name) is None:
        assert [each.name for each in PROFILES.values() if each.name_flaw(name) is not None] == []


@pytest.mark.parametrize(
    ("profile", "name", "taken"),
    [
        ("openai", "a" * 64, True),
        ("openai", "a" * 65, False),
        ("openai", "a.b", False),
        ("gemini", "1a", False),
        ("gemini", "_a", True),
        ("gemini", "a" * 64, False),
        ("bedrock", "1-a_", True),
        ("bedrock", "", False),
        ("anthropic", "a\n", False),
        ("mcp", "any name, é", True),
        ("mcp", "", False),
    ],
)
def test_names_are_judged_as_a_whole(profile: str, name: str, taken: bool) -> None:
    assert (PROFILES[profile].name_flaw(name) is None) == taken


def test_covers_is_true_only_where_it_can_be_told() -> None:
    rules = SchemaRules()
    tight = SchemaRules(refs=False, max_depth=3, property_name="a*", deep_names=True)
    assert rules.covers(rules)
    assert tight.covers(rules)
    assert not rules.covers(tight)
    assert not evolve(tight, max_depth=4).covers(tight)
    assert not evolve(tight, property_name="a").covers(tight)
    assert not evolve(tight, deep_names=False).covers(tight)
    assert evolve(tight, max_depth=2).covers(tight)


def test_strict_mode_is_a_profile_of_its_own() -> None:
    strict = PROFILES["openai"].in_strict_mode()
    assert strict == PROFILES["openai-strict"]
    assert strict.strict
    assert (strict.schema.max_depth, strict.schema.max_properties, strict.schema.max_enum) == (10, 5_000, 1_000)
    assert PROFILES["openai-responses"].in_strict_mode().name == "openai-responses-strict"
    assert strict.in_strict_mode().name == "openai-strict"


def test_refusals_add_up_and_count_case() -> None:
    profile = PORTABLE.refusing(["bash", "web_*"], "first-party tools only").refusing(["x"], "no x")
    assert profile.name_flaw("bash") == profile.name_flaw("web_search") == "first-party tools only"
    assert profile.name_flaw("x") == "no x"
    assert profile.name_flaw("Bash") is profile.name_flaw("web") is None
    assert PORTABLE.refused == ()
    assert profile != PORTABLE


def test_a_name_nobody_has_is_answered_with_the_nearest_one() -> None:
    assert find_profile("gemini") is PROFILES["gemini"]
    assert find_profile(PORTABLE) is PORTABLE
    with pytest.raises(ValueError, match="did you mean 'openai'"):
        find_profile("opnai")


def test_only_a_schema_with_references_loads_what_resolves_them() -> None:
    program = """
import sys
import playbill.actors
from playbill.actors import cli
from playbill.actors.model.profile import PORTABLE
from playbill.actors.model.schema.fit import fit
from playbill.actors.model.status import ToolDef
fit(ToolDef("t", input_schema={"anyOf": [{"properties": {"a": True}}]}), "t", PORTABLE)
assert not {"jsonschema", "referencing"} & sys.modules.keys(), "loaded too early"
fit(ToolDef("t", input_schema={"$ref": "#/$defs/a", "$defs": {"a": {}}}), "t", PORTABLE)
assert "referencing" in sys.modules and "jsonschema" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
