"""Whatever servers call themselves and their tools, every part of a row is one line without control characters, and short."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.config import Config
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import ToolDef
from playbill.actors.picker.dialogs import dialog_lines, dialog_title
from playbill.actors.picker.reducer import start, visible
from playbill.actors.picker.rows import rows
from playbill.actors.picker.values import Answer, Failed, LogTail, Review, TrustReview

from .stage import Stage, at, backing_off, entry, listed, opened, press, told

HOSTILE = st.one_of(
    st.sampled_from(
        [
            "\x1b[2J\x1b[31mred",
            "a\nb",
            "a\rb\tc",
            "\u202eevil",
            "\u200b",
            " ",
            "\x00",
            "𝕏" * 300,
            "x" * 3_000,
            "漢字" * 60,
            "\ud800",
            "{0}{name}%s",
            "e\u0301" * 50,
        ]
    ),
    st.text(min_size=1, max_size=20),
)


def parts(value: Any) -> Iterator[str]:
    """Every string of a row that is shown: all but the identity."""
    for attribute in attrs.fields(type(value)):
        if attribute.name == "identity":
            continue
        found = getattr(value, attribute.name)
        yield from (
            [found]
            if isinstance(found, str)
            else [each for each in found if isinstance(each, str)]
            if isinstance(found, tuple)
            else []
        )


def shown_well(text: str) -> bool:
    return all(char.isprintable() for char in text) and len(text) <= 4_000


def stage_of(name: str, bare: str, said: str) -> Stage:
    defs = [ToolDef(bare, title=said, description=f"{said}\n{said}"), ToolDef("plain"), ToolDef(f"{bare}2", title=bare)]
    config = Config(
        [
            entry(name, exclude=("plain",), source=said),
            entry(name + "!", error=said),
            entry(name + "?", trusted=False, args=(said,), env={"A": said}),
        ],
        warnings=(said, f"{name}: {said}"),
    )
    return Stage(config, {name: listed(defs), name + "!": backing_off(12.0)}, cap=1, config_error=said)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_every_part_of_every_row_is_one_short_line(name: str, bare: str, said: str) -> None:
    found = rows(stage_of(name, bare, said).snapshot, 10.0)
    for row in found:
        assert [part for part in parts(row) if not shown_well(part)] == []
        assert found.find(row.identity) is not None


@given(HOSTILE, HOSTILE, HOSTILE)
def test_every_dialog_has_lines_that_can_be_shown(name: str, bare: str, said: str) -> None:
    stage = stage_of(name, bare, said)
    state = opened(stage)
    for identity in [visible(state).identity(place) for place in range(visible(state).top, len(visible(state)))]:
        for key in "ilta?":
            after, operations = press(at(state, *identity), key)
            states = [after]
            for operation in operations:
                states += [told(after, Failed(operation.id, said))]
                payloads: list[str | Review] = [said, Review((said, name), "seal")]
                states += [told(after, Answer(operation.id, payload)) for payload in payloads]
            for each in states:
                assert shown_well(dialog_title(each))
                assert each.status is None or shown_well(each.status.text)
                assert all(map(str.isprintable, dialog_lines(each)))
                assert len(dialog_lines(each)) < 5_000


@given(HOSTILE, HOSTILE)
def test_status_lines_about_hostile_names_are_lines(name: str, said: str) -> None:
    stage = stage_of(name, "tool", said)
    for key in (" ", "d", "R", "t", "p", "l"):
        for identity in [("server", name), ("tool", name, "tool"), ("server", name + "!"), ("server", name + "?")]:
            state, operations = press(at(opened(stage), *identity), key)
            for operation in operations:
                state = told(state, Failed(operation.id, said))
            assert state.status is None or shown_well(state.status.text)


def test_a_schema_that_is_nested_too_deeply_or_huge_does_not_stop_the_details() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    huge = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(20_000)}}
    defs = [ToolDef("huge", input_schema=huge), ToolDef("long", description="word\n" * 50_000)]
    snapshot = Stage(Config([entry("git")]), {"git": listed(defs)}).snapshot
    snapshot = with_schema(snapshot, deep)
    for place in range(2, 4):
        state = start(snapshot, 0.0)
        state, _ = press(evolve(state, cursor=visible(state).identity(place)), "i")
        assert 5 < len(dialog_lines(state)) < 2_100


def with_schema(snapshot: Snapshot, schema: Any) -> Snapshot:
    """The same snapshot, but that its first tool has a schema that no server could have got through."""
    server = snapshot.model.servers[0]
    tool = object.__new__(type(server.tools[0]))
    for attribute in attrs.fields(type(tool)):
        object.__setattr__(tool, attribute.name, getattr(server.tools[0], attribute.name))
    object.__setattr__(tool, "input_schema", schema)
    server = evolve(server, tools=(tool, *server.tools[1:]))
    return evolve(snapshot, model=evolve(snapshot.model, servers=(server,)))


def test_a_log_and_a_review_keep_their_lines_apart() -> None:
    stage = stage_of("git", "log", "x")
    state, (fetch,) = press(at(opened(stage), "server", "git"), "l")
    state = told(state, Answer(fetch.id, "\x1b[31mone\n\n  two\tx\r\nthree"))
    assert isinstance(state.dialog, LogTail)
    assert dialog_lines(state) == (" [31mone", "", "  two   x", "three")
    state, (fetch,) = press(at(opened(stage), "server", "git?"), "t")
    state = told(state, Answer(fetch.id, Review(("a\nb", "c"), "seal")))
    assert isinstance(state.dialog, TrustReview)
    assert dialog_lines(state) == ("a\\nb", "c")
