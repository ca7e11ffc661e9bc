from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.model.naming import MAX_WIRE_NAME, wire_name

LEGAL = re.compile(r"mcp__[A-Za-z0-9_-]{1,58}")
SUFFIX = re.compile(r"__[a-z2-7]{12}$")

# Any code point, lone surrogates too, and many names that are nearly legal or nearly the same.
any_text = st.text(st.characters(exclude_categories=()), max_size=80)
tricky = st.text(alphabet="aAb_-.é/", max_size=6)
names = st.one_of(any_text, tricky, st.sampled_from(["", "_", "__", "a", "a__b", "mcp__a__b", "x" * 63, "x" * 64]))


@settings(max_examples=150)
@given(names, names)
def test_a_wire_name_is_legal_for_any_text(server: str, bare: str) -> None:
    name = wire_name(server, bare)
    assert LEGAL.fullmatch(name), name
    assert len(name) <= MAX_WIRE_NAME == 63


@given(st.lists(st.tuples(names, names), unique=True, max_size=10))
def test_other_pairs_get_other_wire_names(pairs: list[tuple[str, str]]) -> None:
    assert len({wire_name(*pair) for pair in pairs}) == len(pairs)


def test_all_short_pairs_of_a_tricky_alphabet_get_different_wire_names() -> None:
    parts = ["".join(p) for n in range(4) for p in product("a_-.", repeat=n)]
    made = {wire_name(server, bare) for server in parts for bare in parts}
    assert len(made) == len(parts) ** 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a__b", "c"), ("a", "b__c")),
        (("a_", "b"), ("a", "_b")),
        (("a", "b"), ("a", "B")),
        (("Git", "log"), ("git", "log")),
        (("a b", "c"), ("a-b", "c")),
        (("a", "bé"), ("a", "bè")),
        (("", "ab"), ("ab", "")),
        (("ab", "c"), ("a", "bc")),
        (("github", "github__list"), ("github", "list")),
        (("github", "mcp__github__list"), ("github", "list")),
        (("x" * 80, "t"), ("x" * 81, "t")),
        (("s", "t" * 80), ("s", "t" * 81)),
    ],
)
def test_candidates_that_would_collide_do_not(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert wire_name(*one) != wire_name(*other)


def test_a_tool_named_as_another_ones_wire_name_would_end_does_not_collide_with_it() -> None:
    suffixed = wire_name("s", "a.b")
    forged = suffixed.removeprefix("mcp__s__")
    assert wire_name("s", forged) != suffixed


@pytest.mark.parametrize(
    ("server", "bare"), [("git", "git_log"), ("a-b", "c_"), ("_a", "b"), ("A1", "Z-9"), ("a", "x" * 55)]
)
def test_plain_parts_are_joined_as_they_are(server: str, bare: str) -> None:
    assert wire_name(server, bare) == f"mcp__{server}__{bare}"


@pytest.mark.parametrize(
    ("server", "bare"),
    [
        ("a.b", "c"),
        ("a", "b c"),
        ("a__b", "c"),
        ("a", "b__c"),
        ("a_", "b"),
        ("a", "_b"),
        ("", "b"),
        ("a", ""),
        ("a", "x" * 56),
        ("é", "b"),
        ("a\n", "b"),
        ("a", "b\n"),
    ],
)
def test_a_part_that_is_altered_or_ambiguous_gets_a_hash_of_at_least_50_bits(server: str, bare: str) -> None:
    assert SUFFIX.search(wire_name(server, bare)), wire_name(server, bare)


def test_cut_names_show_the_beginning_of_both_parts() -> None:
    name = wire_name("long-server-name-that-goes-on", "and_a_tool_with_a_name_that_is_longer_still")
    assert name.startswith("mcp__long-server-name-t__and_a_tool_with_a_name_")
    assert len(name) == MAX_WIRE_NAME


def test_known_names_never_change() -> None:
    # Wire names end up in prompts, transcripts and allow-lists: a change of them is a breaking change.
    assert wire_name("filesystem", "read_file") == "mcp__filesystem__read_file"
    assert wire_name("my server", "tool.one") == "mcp__my-server__tool-one__ivmeeujaflop"
    assert wire_name("", "") == "mcp______xj3iwmy73bwo"
