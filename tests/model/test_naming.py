from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from itertools import combinations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from playbill.actors.model import naming
from playbill.actors.model.naming import MAX_WIRE_NAME, may_be_of, wire_name
from playbill.actors.model.nearest import nearest
from playbill.actors.model.profile import PROFILES

LEGAL = re.compile(r"mcp__[A-Za-z0-9_-]{1,58}")
SUFFIX = re.compile(r"__[a-z2-7]{12}$")

# Any code point, lone surrogates too, and many names that are nearly legal or nearly the same.
any_text = st.text(st.characters(exclude_categories=()), max_size=80)
tricky = st.text(alphabet="aAb_-.é/", max_size=6)
names = st.one_of(any_text, tricky, st.sampled_from(["", "_", "__", "a", "a__b", "mcp__a__b", "x" * 63, "x" * 64]))
huge = st.builds(lambda text, times: text * times, st.text(st.characters(exclude_categories=()), min_size=1, max_size=3),
                 st.integers(1, 3000))  # fmt: skip

STRANGE = [
    "\N{PARTY POPPER}\N{PARTY POPPER}",
    "\N{FAMILY}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{VARIATION SELECTOR-16}",
    "\N{ARABIC LETTER ALEF}\N{ARABIC LETTER BEH}",
    "\N{RIGHT-TO-LEFT OVERRIDE}evil",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "cafe\N{COMBINING ACUTE ACCENT}",
    "\ud800",
    "a\udfff",
    "a\nb",
    "a\x1b[2Jb",
    "\0",
    "\x7f\x80",
    "\N{LATIN SMALL LETTER DOTLESS I}",
    "\N{FULLWIDTH LATIN SMALL LETTER A}",
    "\N{ARABIC-INDIC DIGIT ONE}",
    "\N{NO-BREAK SPACE}",
    " ",
    ".",
    "/",
    "-",
]


def _legal_everywhere(name: str) -> None:
    assert LEGAL.fullmatch(name), name
    assert len(name) <= MAX_WIRE_NAME == 63
    for profile in PROFILES.values():
        assert re.fullmatch(profile.tool_name, name), (profile.name, name)


@settings(max_examples=150)
@given(names, names)
@example("", "")
@example("1", "1")
@example("-", "-")
def test_a_wire_name_is_legal_for_every_provider_whatever_the_text(server: str, bare: str) -> None:
    _legal_everywhere(wire_name(server, bare))


@pytest.mark.parametrize("strange", STRANGE)
def test_strange_names_are_legal_and_not_parted_from_themselves(strange: str) -> None:
    for pair in ((strange, "tool"), ("server", strange), (strange, strange)):
        _legal_everywhere(wire_name(*pair))


def test_strange_names_stay_different_whichever_part_they_are_in() -> None:
    # Composed and decomposed forms, full-width forms, and all that becomes the same dash.
    parts = ["tool", *STRANGE]
    made = {wire_name(server, bare) for server in parts for bare in parts}
    assert len(made) == len(parts) ** 2
    composed, other = "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"
    assert unicodedata.normalize("NFC", other) == composed
    assert wire_name(composed, "x") != wire_name(other, "x")


@settings(max_examples=30)
@given(huge, huge)
def test_enormous_names_are_legal_and_differ_by_their_last_character(server: str, bare: str) -> None:
    name = wire_name(server, bare)
    _legal_everywhere(name)
    assert len({name, wire_name(server + "x", bare), wire_name(server, bare + "x")}) == 3


def test_a_megabyte_is_a_name_too_and_is_not_kept() -> None:
    before = naming._kept.cache_info().currsize
    megabyte = "x" * 1_000_000
    made = {wire_name(megabyte, "a"), wire_name("a", megabyte), wire_name(megabyte, megabyte), wire_name(megabyte, "b")}
    assert len(made) == 4
    assert {len(name) for name in made} <= set(range(MAX_WIRE_NAME + 1))
    assert naming._kept.cache_info().currsize == before
    assert (naming._kept.cache_info().maxsize or 0) * naming._CACHED * 4 <= 1 << 24, "16 MB at most are kept"


@given(st.lists(st.tuples(names, names), unique=True, max_size=10))
def test_other_pairs_get_other_wire_names(pairs: list[tuple[str, str]]) -> None:
    assert len({wire_name(*pair) for pair in pairs}) == len(pairs)


@given(names, names)
def test_a_name_depends_on_its_pair_alone_and_not_on_what_is_remembered(server: str, bare: str) -> None:
    assert wire_name(server, bare) == naming._make(server, bare) == wire_name("".join(server), "".join(bare))


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
        (("1", "1:x"), ("11", ":x")),
    ],
)
def test_candidates_that_would_collide_do_not(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert wire_name(*one) != wire_name(*other)


def test_names_that_become_equal_when_made_legal_do_not_collide() -> None:
    alike = ["a b", "a_b", "A-b", "a-b", "a.b", "a/b", "a__b", "a\tb", "A b", "a\N{NO-BREAK SPACE}b"]
    for one, other in combinations(alike, 2):
        assert wire_name(one, "t") != wire_name(other, "t")
        assert wire_name("s", one) != wire_name("s", other)


def test_case_alone_parts_two_names_as_written() -> None:
    # No provider folds case. A hash behind every name with a capital would part them in other letters too, at the price of
    # longer and changed names for every server that writes getThing: so they differ by case, and by nothing else.
    assert wire_name("git", "Log") == "mcp__git__Log"
    assert wire_name("git", "log") == "mcp__git__log"


def test_a_tool_that_carries_its_servers_prefix_keeps_it() -> None:
    assert wire_name("github", "github_create") == "mcp__github__github_create"
    assert wire_name("github", "mcp__github__x").startswith("mcp__github__mcp__github__x__")
    assert wire_name("mcp", "x") == "mcp__mcp__x"


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


KNOWN = [
    ("filesystem", "read_file", "mcp__filesystem__read_file"),
    ("my server", "tool.one", "mcp__my-server__tool-one__ivmeeujaflop"),
    ("", "", "mcp______xj3iwmy73bwo"),
    ("github", "create_issue", "mcp__github__create_issue"),
    ("GitHub", "createIssue", "mcp__GitHub__createIssue"),
    ("github", "mcp__github__x", "mcp__github__mcp__github__x__plprc35wyehp"),
    ("a__b", "c", "mcp__a__b__c__x46ayoog4nlt"),
    ("a", "b__c", "mcp__a__b__c__iwdovqrfudv3"),
    ("a_", "b", "mcp__a___b__3tmhb7iygxwf"),
    ("a", "_b", "mcp__a___b__k5k7zrfbihgr"),
    ("a b", "c", "mcp__a-b__c__eckkipk32ep6"),
    ("a_b", "c", "mcp__a_b__c"),
    ("A-b", "c", "mcp__A-b__c"),
    ("admin", "admin.list", "mcp__admin__admin-list__nfvonvflngle"),
    ("files", "files/read", "mcp__files__files-read__aiuso4atmhrs"),
    ("s", "1x", "mcp__s__1x"),
    ("s", "\U0001f389", "mcp__s__-__2mpego4c4zda"),
    ("caf\xe9", "x", "mcp__caf-__x__p53nqcku5kwv"),
    ("cafe\u0301", "x", "mcp__cafe-__x__bgdxkutmy2hx"),
    ("s", "\ud800", "mcp__s__-__z7ejosqtmoj6"),
    ("s", "a\nb", "mcp__s__a-b__jugspcjt5dvc"),
    ("\u0645\u0631", "\u0628", "mcp__--__-__773v74aih2x2"),
    ("", "x", "mcp____x__3pg5kjlzacyo"),
    ("x", "", "mcp__x____ku7rehi6z3zk"),
    ("x" * 63, "y" * 63, "mcp__xxxxxxxxxxxxxxxxxx__yyyyyyyyyyyyyyyyyyyyyyyy__e2v3z5p7rv3c"),
    ("s", "x" * 1_000_000, "mcp__s__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx__ysvqkwklxtod"),
    ("s", "a" * 55, "mcp__s__aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("s", "a" * 56, "mcp__s__aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa__dcrxsq2qf27d"),
    ("server-name-of-thirty-characters", "t" * 50, "mcp__server-name-of-thi__tttttttttttttttttttttttt__kvlbyaxcov7f"),
]


@pytest.mark.parametrize(("server", "bare", "known"), KNOWN)
def test_known_names_never_change(server: str, bare: str, known: str) -> None:
    # Wire names end up in prompt caches, transcripts and allow-lists: a change of one is a breaking change.
    assert wire_name(server, bare) == known


def test_names_are_the_same_in_every_process() -> None:
    code = (
        "from playbill.actors.model.naming import wire_name\n"
        "print([wire_name(a, b) for a in ('a b', '\\ud800', 'x' * 99) for b in ('', 'y.z')])"
    )
    command = [sys.executable, "-c", code]
    said = {
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("0", "1")
    }
    here = [wire_name(a, b) for a in ("a b", "\ud800", "x" * 99) for b in ("", "y.z")]
    assert said == {f"{here}\n"}


# What was meant instead of a name that is none.


@pytest.mark.parametrize(
    ("name", "valid", "near"),
    [
        ("list_issue", ["create_issue", "list_issues", "merge"], "list_issues"),
        ("LIST_ISSUES", ["list_issues"], "list_issues"),
        ("zzz", ["list_issues"], None),
        ("", ["a"], None),
        ("a", [""], None),
        ("", [""], None),
        ("a", [], None),
        ("x" * 1_000_000, ["x" * 64 + "y"], "x" * 64 + "y"),
        ("\ud800a", ["\ud800b", "\ud800aa"], "\ud800aa"),
    ],
)
def test_the_nearest_name_is_found_if_one_is_near(name: str, valid: list[str], near: str | None) -> None:
    assert nearest(name, valid) == near


@given(any_text, st.lists(any_text, max_size=20))
def test_the_nearest_name_is_one_of_those_given(name: str, valid: list[str]) -> None:
    assert nearest(name, valid) in (None, *valid)


def test_the_nearest_of_many_huge_names_is_found_with_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    from playbill.actors.model import nearest as module

    compared: list[int] = []

    class Counting(module.SequenceMatcher):  # type: ignore[type-arg]
        def ratio(self) -> float:
            compared.append(len(self.a) + len(self.b))
            return super().ratio()

    monkeypatch.setattr(module, "SequenceMatcher", Counting)
    names = [f"list_all_issues_{n:05}" + "x" * 10_000 for n in range(10_000)]
    assert nearest("list_all_isues_04321" + "x" * 10_000, names) == names[4321]
    assert len(compared) <= 100
    assert max(compared) <= 2 * 64


@settings(max_examples=300)
@given(names | huge, names | huge)
@example("x" * 60, "y" * 60)
@example("x" * 18, "y" * 60)
@example("x" * 41, "")
@example("", "")
@example("a\nb", "c\nd")
def test_a_wire_name_may_be_of_the_server_whose_it_is(server: str, bare: str) -> None:
    assert may_be_of(wire_name(server, bare), server)


def test_a_wire_name_is_of_few_others() -> None:
    servers = ["", "a", "a__b", "a b", "A", "ab", "b", "x" * 18, "x" * 60, "x" * 60 + "y", "y" * 60]
    for server, may in {
        "a": {"a"},
        "a b": {"a b"},
        "a__b": {"a__b", "a"},
        "x" * 60: {"x" * 60, "x" * 60 + "y"},
    }.items():
        assert {other for other in servers if may_be_of(wire_name(server, "t"), other)} == may, server
    assert not may_be_of("mcp__a__" + "t" * 60, "a")
    assert not may_be_of("mcp__a__", "a")
    assert not may_be_of("own", "a")
