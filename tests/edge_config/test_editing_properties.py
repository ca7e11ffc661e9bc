"""For any document and any edit: the new text says what the edit means, and nothing else of it has changed.

Documents are drawn as values and written out with drawn spacing, comments, trailing commas, line ends and BOM. Deterministic:
hypothesis derives its examples from the test itself.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from attrs import evolve
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from playbill.actors.edge.config.edit import Draft, edit_text
from playbill.actors.edge.config.jsonc_walk import parse
from playbill.actors.edge.config.read import Reader, read_config
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool, apply_edit
from playbill.actors.model.errors import PlaybillError

many = settings(
    max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)

NAMES = ["github", "a.b", "x y", "ö//", 'q"t', "/*", "servers", "\\"]
TOOLS = ["t", "read", "//u", "ä", 'a"b', "*/"]
names = st.sampled_from(NAMES)
tools = st.sampled_from(TOOLS)
words = st.sampled_from(["npx", "-y", "C:\\x", "http://x/*y*/", "é", "", "{}", "a,]", "// no", '"', "${V}"])
some_tools = st.lists(tools, max_size=3)
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
entries = st.fixed_dictionaries(
    {"command": st.sampled_from(["npx", "uvx"])},
    optional={
        "args": st.lists(words, max_size=3),
        "env": st.dictionaries(st.sampled_from(["A", "B"]), words, max_size=2),
        "disabled": st.booleans() | st.none(),
        "enabled": st.booleans(),
        "timeout": st.sampled_from([5, 60000, 0.5]),
        "disabledTools": some_tools,
        "excludeTools": some_tools,
        "enabledTools": some_tools,
        "includeTools": some_tools,
        "tools": st.none()
        | st.fixed_dictionaries({}, optional={k: some_tools | st.none() for k in ("exclude", "include", "pin", "x")}),
        "custom": odd,
        "oauth": odd,
    },
)
servers = st.dictionaries(names, entries, max_size=3)
roots = st.one_of(
    st.tuples(
        servers, st.dictionaries(st.sampled_from(["inputs", "$schema", "z"]), odd, max_size=2), st.booleans()
    ).map(lambda t: {**(t[1] if t[2] else {}), "mcpServers": t[0], **(t[1] if not t[2] else {})}),
    servers.map(lambda s: {"servers": s}),
    st.dictionaries(names.filter(lambda n: n != "servers"), entries, min_size=1, max_size=2),
    st.just({}),
    st.just({"mcpServers": None}),
    st.just({"$schema": "x"}),
)
new_entries = st.builds(
    ServerEntry,
    names,
    command=st.just("new"),
    args=st.lists(words, max_size=2),
    env=st.dictionaries(st.just("K"), words, max_size=1),
    include=st.none() | some_tools.map(lambda t: tuple(dict.fromkeys(t))),
    exclude=some_tools.map(lambda t: tuple(dict.fromkeys(t))),
    disabled=st.booleans(),
    timeout=st.sampled_from([None, 0.5, 30, 1500.5]),
    priority=st.sampled_from([0, 2]),
)
edits = st.one_of(
    st.builds(AddServer, new_entries, st.booleans()),
    st.builds(RemoveServer, names),
    st.builds(SetTool, names, tools, st.booleans()),
    st.builds(SetPin, names, tools, st.booleans()),
    st.builds(SetEnabled, names, st.booleans()),
)


class Writer:
    """Writes a value as JSONC in a style that follows from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.eol = rng.choice(["\n", "\n", "\r\n", "\r"])
        self.unit = rng.choice(["  ", "    ", "\t", " "])
        self.style = rng.choice(["lines", "lines", "mixed", "inline", "tight"])
        self.comments = rng.random() < 0.5
        self.trailing = rng.random() < 0.5
        self.count = 0

    def maybe(self) -> bool:
        return self.rng.random() < 0.5

    def comment(self, line: bool) -> str:
        if not self.comments or self.rng.random() < 0.7:
            return ""
        self.count += 1
        body = self.rng.choice(['"', "}", ",", "x", "[", ""])
        kinds = [f"/* {self.count} {body} */", f"/*{self.count}{self.eol}{body}*/"]
        if line:
            kinds.append(f"// {self.count} {body}")
        return " " + self.rng.choice(kinds)

    def write(self, value: Any, indent: str = "") -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=self.maybe())
        opener, closer = "{}" if isinstance(value, dict) else "[]"
        lines = self.style == "lines" or (self.style == "mixed" and self.maybe())
        inner = indent + self.unit
        members = list(value.items()) if isinstance(value, dict) else [(None, each) for each in value]
        gap = "" if self.style == "tight" else " "
        parts = [opener]
        if not members and self.maybe():
            return opener + self.comment(False) + (self.eol + indent if lines else "") + closer
        for i, (key, each) in enumerate(members):
            if lines:
                above = self.comment(True)
                parts.append(self.eol + (inner + above + self.eol if above else "") + inner)
            elif i:
                parts.append(gap)
            if key is not None:
                parts.append(json.dumps(key) + ":" + gap)
            parts.append(self.write(each, inner if lines else indent))
            last = i + 1 == len(members)
            if not last or (self.trailing and self.maybe()):
                parts.append(self.comment(False) + ",")
            if lines:
                parts.append(self.comment(True))
        tail = (self.eol + indent) if members and lines else self.comment(False)
        return "".join(parts) + tail + closer


@st.composite
def documents(draw: st.DrawFn) -> str:
    writer = Writer(draw(st.integers(0, 2**32)))
    head = draw(st.sampled_from(["", "\ufeff", " ", "// top" + writer.eol, "\ufeff/* top */"]))
    text = head + writer.write(draw(roots)) + draw(st.sampled_from(["", writer.eol, writer.eol * 2, " // end"]))
    assume(_readable(text))
    return text


@st.composite
def documents_and_names(draw: st.DrawFn) -> tuple[str, str]:
    """A document with at least one server that can be read, and the name of one."""
    text = draw(documents())
    good = [e.name for e in read_config(text).servers if e.error is None]
    assume(good)
    return text, draw(st.sampled_from(good))


def _readable(text: str) -> bool:
    try:
        read_config(text)
    except PlaybillError:
        return False
    return True


def said(config: Config) -> list[ServerEntry]:
    """What a configuration says, wherever it says it."""
    return [evolve(e, line=None, source=None, error=None if e.error is None else "wrong") for e in config.servers]


def comments(text: str) -> list[str]:
    """The comments, found by a lexer other than the one under test."""
    parts = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', text, re.DOTALL)
    return [each for each in parts if not each.startswith('"')]


def without(value: Any, name: str) -> Any:
    """A document without one server, and without what an empty one may lack."""
    if not isinstance(value, dict):
        return value
    key = next((k for k in ("mcpServers", "servers") if k in value), None)
    if key is None:
        return {k: v for k, v in value.items() if k != name}
    inner = {k: v for k, v in (value[key] or {}).items() if k != name}
    out = {**value, key: inner}
    return out if inner else {k: v for k, v in out.items() if k != key}


@many
@given(documents(), edits)
def test_the_new_text_says_what_the_edit_means(text: str, edit: Edit) -> None:
    before = read_config(text)
    after, (refused,) = edit_text(text, [edit])
    meant: Config | None = None
    why: type[PlaybillError] | None = None
    try:
        meant = apply_edit(before, edit)
    except PlaybillError as error:
        why = type(error)
    if meant is None:
        assert why is type(refused)
        assert after == text
        return
    if refused is not None:
        assert after == text
        entry = before.get(edit.server)
        in_the_way = isinstance(edit, AddServer) and entry is None
        assert in_the_way or entry is None or entry.error is not None, refused
        return
    if isinstance(edit, SetTool) and not edit.on and meant is not before:
        # Hidden by a list of hidden tools, or taken out of the one of allowed tools: as much is allowed.
        there, entry = read_config(after).get(edit.server), before.get(edit.server)
        assert entry is not None
        assert there is not None
        if there.exclude == entry.exclude:
            assert there.include == tuple(each for each in entry.include or () if each != edit.bare)
            assert not there.allows(edit.bare)
            meant = evolve(meant, servers=tuple(there if e.name == edit.server else e for e in meant.servers))
    assert said(read_config(after)) == said(meant)
    if meant is before:
        assert after == text


@many
@given(documents(), edits)
def test_nothing_else_of_the_text_changes(text: str, edit: Edit) -> None:
    document = Reader().read(text)
    after, (refused,) = edit_text(text, [edit])
    if refused is not None or after == text:
        assert after == text
        return
    assert list(without(parse(text), edit.server).items()) == list(without(parse(after), edit.server).items())
    there = document.member(edit.server)
    if isinstance(edit, RemoveServer):
        assert there is not None
        inside = comments(text[there.at : there.end])
        assert comments(after) == [each for each in comments(text) if each not in inside]
        return
    if there is None:
        assert comments(after) == comments(text)
        return
    # An entry's own text is all that changes, and in it no comment is lost.
    behind = len(text) - there.end
    assert after[: there.at] == text[: there.at]
    assert after[len(after) - behind :] == text[there.end :]
    if not isinstance(edit, AddServer):
        assert comments(after) == comments(text)


@many
@given(documents_and_names(), tools, st.booleans())
def test_hiding_a_tool_and_showing_it_again_gives_back_every_byte(drawn: tuple[str, str], tool: str, pin: bool) -> None:
    text, name = drawn
    entry = read_config(text).get(name)
    assert entry is not None
    assume(tool not in entry.pin if pin else entry.allows(tool))
    edit = SetPin if pin else SetTool
    hidden, (first,) = edit_text(text, [edit(name, tool, pin)])
    assume(first is None)
    shown, (second,) = edit_text(hidden, [edit(name, tool, not pin)])
    assert second is None
    raw = entry_of(text, name)
    own = raw.get("tools")
    in_tools = pin or not any(raw.get(key) is not None for key in ("disabledTools", "excludeTools"))
    key = "pin" if pin else "exclude"
    null = own.get(key, 1) is None if isinstance(own, dict) else "tools" in raw and own is None
    if in_tools and null:
        # A null where the list goes is a key that is not there: it is not put back. Nothing else is said, and no comment lost.
        assert without_nulls(parse(shown)) == without_nulls(parse(text))
        assert comments(shown) == comments(text)
        return
    assert parse(shown) == parse(text)
    assert tight(shown) == tight(text)
    if tight(text) == text:
        assert shown == text


def entry_of(text: str, name: str) -> Any:
    raw = parse(text)
    return raw.get("mcpServers", raw.get("servers", raw))[name]


def without_nulls(value: Any) -> Any:
    """A value without members that are null, and without the objects that are empty for want of them."""
    if not isinstance(value, dict):
        return value
    inner = {key: without_nulls(each) for key, each in value.items() if each is not None}
    return {key: each for key, each in inner.items() if each != {}}


def tight(text: str) -> str:
    """A text without the blanks within brackets that hold nothing, or nothing but comments."""
    parts = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[ \t\r\n]+|.', text, re.DOTALL)
    out: list[str] = []
    at = 0
    while at < len(parts):
        end = at + 1
        if parts[at] in "[{":
            while parts[end].isspace() or parts[end].startswith(("//", "/*")):
                end += 1
            if parts[end] in "]}":
                out += (parts[at], *(each for each in parts[at + 1 : end] if not each.isspace()))
                at = end
                continue
        out.append(parts[at])
        at += 1
    return "".join(out)


@many
@given(documents(), new_entries)
def test_adding_a_server_and_removing_it_again_gives_back_every_byte(text: str, entry: ServerEntry) -> None:
    document = Reader().read(text)
    assume(document.config.get(entry.name) is None)
    added, (first,) = edit_text(text, [AddServer(entry)])
    assume(first is None)  # of a map without a key of its own, this one may be in the way
    removed, (second,) = edit_text(added, [RemoveServer(entry.name)])
    assert second is None
    assert comments(removed) == comments(text)
    if document.at is None:
        # There was no map of servers, or a null: an empty one is left.
        before, after = parse(text), parse(removed)
        key = document.key or "mcpServers"
        assert {**before, key: {}} == after
        return
    assert tight(removed) == tight(text)
    if document.entries or tight(text) == text:
        assert removed == text


@many
@given(documents_and_names())
def test_stopping_a_server_and_starting_it_again_gives_back_every_byte(drawn: tuple[str, str]) -> None:
    text, name = drawn
    entry = read_config(text).get(name)
    assume(entry is not None and not entry.disabled)
    stopped, _ = edit_text(text, [SetEnabled(name, False)])
    assert read_config(stopped).servers != read_config(text).servers
    started, _ = edit_text(stopped, [SetEnabled(name, True)])
    raw = entry_of(text, name)
    if raw.get("disabled", 0) is None and not any(raw.get(key) is not None for key in ("enabled", "isActive")):
        assert comments(started) == comments(text)
        assert {**entry_of(started, name), "disabled": None} == raw
        return
    assert started == text


@many
@given(documents(), st.lists(edits, max_size=6))
def test_a_batch_is_the_same_as_its_edits_one_by_one(text: str, batch: list[Edit]) -> None:
    at_once, refused = edit_text(text, batch)
    step = text
    for edit, why in zip(batch, refused, strict=True):
        step, (alone,) = edit_text(step, [edit])
        assert type(alone) is type(why)
    assert at_once == step


@many
@given(documents(), st.lists(edits, max_size=4))
def test_a_reader_that_remembers_reads_the_same_as_a_new_one(text: str, batch: list[Edit]) -> None:
    reader = Reader()
    document = reader.read(text)
    draft = Draft(reader, document)
    for edit in batch:
        try:
            draft.edit(edit)
        except PlaybillError:
            continue
    after = draft.finish()
    fresh = read_config(after.source.text)
    assert said(after.config) == said(fresh)
    assert after.config.warnings == fresh.warnings
    again = reader.read(text, document.config)
    assert said(again.config) == said(document.config)
    changed = {e.server for e in batch}
    for old in document.config.servers:
        if old.name not in changed and old.error is None:
            assert again.config.get(old.name) is old
            assert after.config.get(old.name) is old
