"""Whatever is pressed and whatever happens, in whatever order: what always holds of a picker."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.model.config import Config
from playbill.actors.model.edits import AddServer, RemoveServer
from playbill.actors.model.phase import WORDS
from playbill.actors.model.plain import flat, line, quoted
from playbill.actors.model.status import ServerStatus
from playbill.actors.model.why import why, why_server
from playbill.actors.picker.dialogs import dialog_lines, dialog_title, key_hints
from playbill.actors.picker.keys import TABLE
from playbill.actors.picker.reducer import State, reduce, start, visible
from playbill.actors.picker.rows import rows
from playbill.actors.picker.state import server_of
from playbill.actors.picker.values import (
    Answer,
    Closed,
    Done,
    Event,
    Failed,
    HeaderRow,
    Key,
    NoticeRow,
    Operation,
    Quit,
    Resized,
    Review,
    ServerRow,
    Tick,
    ToolRow,
)
from playbill.actors.picker.wishes import changes

from .stage import CONNECTED, NATIVE, NO_LOGIN, STARTING, Stage, backing_off, entry, parked, tools

PLAIN = ("git", "web", "db", "a", "log", "get")
HOSTILE = ("\x1b[2J", "a\nb", "\u202e", " ", "漢字" * 40, "e\u0301", "{}", "git ", "GIT", "mcp__git", "x" * 300)

KEYS = [
    *sorted({key for bindings in TABLE.values() for each in bindings for key in each.keys}),
    "x",
    "g",
    "t",
    "漢",
    "backspace",
    "delete",
    "ctrl u",
    "left",
    "f5",
    "\x1b",
    "mouse press",
    "",
]


def statuses(names: tuple[str, ...]) -> st.SearchStrategy[ServerStatus | None]:
    lists = st.lists(st.sampled_from(names), max_size=4)
    down = lists.map(lambda found: tools(*found))
    return st.one_of(
        st.sampled_from([None, STARTING, CONNECTED, NO_LOGIN, backing_off(105.0), parked()]),
        lists.map(lambda found: tools(*found)),
        down.map(lambda ready: parked(110.0, tools=ready.tools, tools_generation=1)),
    )


def steps(names: tuple[str, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    name = st.sampled_from(names)
    return st.one_of(
        st.tuples(st.just("key"), st.sampled_from(KEYS)),
        st.tuples(st.just("key"), st.sampled_from(KEYS)),
        st.tuples(st.just("key"), st.sampled_from([" ", "d", "j", "k", "t", "enter", "/", "esc", "p"])),
        st.tuples(st.just("status"), name, statuses(names)),
        st.tuples(st.just("entry"), name, st.sampled_from(["add", "remove", "untrust", "break", "disable", "exclude"])),
        st.tuples(st.just("order"), st.randoms(use_true_random=False)),
        st.tuples(st.just("cap"), st.sampled_from([None, 0, 1, 3])),
        st.tuples(st.just("land"), st.integers(0, 5), st.sampled_from(["done", "failed", "answer", "review"])),
        st.tuples(st.just("late"), st.integers(0, 99), st.sampled_from(["done", "failed", "answer", "review"])),
        st.tuples(st.just("tick"), st.floats(0, 1_000)),
        st.tuples(st.just("size"), st.integers(-3, 50)),
        st.tuples(st.just("config"), st.sampled_from([None, "mcp.json:3:1: no\nJSON"])),
    )


def edited(stage: Stage, name: str, how: str) -> None:
    there = stage.config.get(name)
    if there is None:
        stage.edit(AddServer(entry(name, trusted=how != "untrust", error="no command" if how == "break" else None)))
    elif how == "remove":
        stage.edit(RemoveServer(name))
    else:
        changed: dict[str, Any] = {
            "add": {"disabled": False, "trusted": True, "error": None},
            "untrust": {"trusted": False},
            "break": {"error": f"{name} is wrong"},
            "disable": {"disabled": not there.disabled},
            "exclude": {"exclude": () if there.exclude else (name, "log")},
        }[how]
        servers = [evolve(each, **changed) if each is there else each for each in stage.config.servers]
        stage.config = evolve(stage.config, servers=servers)


def landed(stage: Stage, number: int, operation: Operation | None, how: str) -> Event:
    if how == "failed":
        return Failed(number, "it was\nrefused \x1b[0m")
    if how == "answer":
        return Answer(number, "some\nlines \x1b[0m")
    if how == "review":
        return Answer(number, Review(("it would run",), f"seal {number}"))
    return Done(number, stage.snapshot) if operation is None else stage.answer(operation)


def event_of(stage: Stage, state: State, step: tuple[Any, ...]) -> Event:
    """Do to the world what a step says, and what the picker hears of it."""
    match step:
        case ("key", key):
            return Key(key)
        case ("status", name, status):
            stage.statuses = {**stage.statuses, name: status or ServerStatus()}
        case ("entry", name, how):
            edited(stage, name, how)
        case ("order", random):
            servers = list(stage.config.servers)
            random.shuffle(servers)
            stage.config = evolve(stage.config, servers=servers)
        case ("cap", cap):
            stage.cap = cap
        case ("config", error):
            stage.config_error = error
        case ("land", which, how):
            if state.flights:
                operation = state.flights[which % len(state.flights)]
                return landed(stage, operation.id, operation, how)
        case ("late", number, how):
            return landed(stage, number, next((each for each in state.flights if each.id == number), None), how)
        case ("tick", now):
            return Tick(now)
        case ("size", size):
            return Resized(size)
    return stage.news()


def agrees(state: State) -> None:
    """What is shown is what the catalog, the warnings and `why` say of the same snapshot (invariant 2)."""
    snapshot, shown = state.snapshot, list(visible(state))
    model, sent = snapshot.model, [(tool.server, tool.bare) for tool in snapshot.catalog.tools]
    header = shown[0]
    assert isinstance(header, HeaderRow)
    assert header.on_wire == sum(server is not None for server, _ in sent)
    assert header.native == sum(server is None for server, _ in sent)
    assert (header.servers, header.budget) == (len(model.servers), model.budget)
    assert header.ready == [each.phase for each in model.servers].count("ready")
    assert header.busy == sum(map(changes, state.flights))
    notices = {each.identity: each for each in shown if isinstance(each, NoticeRow)}
    told = {
        ("config-error",): None if model.config_error is None else line(model.config_error),
        ("warning", "budget"): model.budget_warning(),
        ("warning", "limit"): model.limit_warning(),
    }
    assert {key: text for key, text in told.items() if text is not None} == {key: n.text for key, n in notices.items()}
    if (over := notices.get(("warning", "budget"))) is not None:
        assert over.more == model.budget_details()
    touched = {(getattr(each, "server", None), getattr(each, "bare", None)) for each in state.flights}
    for row in shown:
        if isinstance(row, ToolRow):
            _, server, bare = row.identity
            tool = model.tool(server, bare)
            assert tool is not None
            assert (row.verdict, row.verdict == "on_wire") == (tool.verdict, (server, bare) in sent)
            said = f"tool {quoted(bare)} of server {quoted(server)} is {row.words}"
            assert said == str(why(snapshot, server, bare, state.now))
            if (server, bare) not in touched:
                assert (row.check, row.pinned) == ("on" if tool.enabled else "off", tool.pinned)
        if isinstance(row, ServerRow):
            name = row.identity[1]
            server_state = model.server(name)
            assert server_state is not None
            assert row.phase == server_state.phase
            assert (row.error or "").endswith(flat(server_state.error or server_state.list_error or ""))
            assert WORDS[row.phase] in str(why_server(snapshot, name))
            assert row.phase == "backing_off" or row.state.startswith(WORDS[row.phase])
            if row.count is not None and row.count != "no tools":
                assert int(row.count.split()[0]) == sum(server == name for server, _ in sent)
            if (name, None) not in touched:
                assert row.check == ("off" if row.phase in ("disabled", "stopping") else "on")


def check(state: State) -> None:
    """What holds of every state."""
    agrees(state)
    shown = visible(state)
    model = state.snapshot.model
    # The cursor is on a row.
    place = shown.find(state.cursor)
    assert place is not None
    assert place >= shown.top
    assert shown.identity(place) == state.cursor == shown[place].identity
    # Who is who is told by identity, and each row is of something in the snapshot.
    identities = [row.identity for row in shown]
    assert len(set(identities)) == len(identities)
    assert [shown.find(identity) for identity in identities] == list(range(len(shown)))
    for identity in identities[shown.top :]:
        match identity:
            case ("tool", server, bare):
                assert model.tool(server, bare) is not None
            case ("server" | "empty", server):
                assert model.server(server) is not None
            case other:
                assert other in (("no-match",), ("no-servers",))
    # Without a filter nothing is left out.
    if not state.filter.text.split():
        missing = {(each.name, tool.bare) for each in model.servers for tool in each.tools} - {
            identity[1:] for identity in identities if identity[0] == "tool"
        }
        assert missing == set()
        assert [each.name for each in model.servers] == [i[1] for i in identities if i[0] == "server"]
    # What is shown as pending is under way; and when nothing is, the rows are the snapshot's.
    pending = {
        server_of(row.identity)
        for row in shown
        if (isinstance(row, ToolRow) and (row.pending or row.check.startswith("pending")))
        or (isinstance(row, ServerRow) and (row.pending or row.check.startswith("pending")))
    }
    assert pending <= {getattr(each, "server", None) for each in state.flights}
    if not state.flights:
        truth = rows(state.snapshot, state.now, matching=state.filter.text)
        assert list(truth) == list(shown)
    # Ids tell operations apart.
    ids = [each.id for each in state.flights]
    assert sorted(set(ids)) == ids
    assert all(number < state.next_id for number in ids)
    assert not state.ended or state.quitting
    # Nothing that a screen cannot take.
    assert state.status is None or state.status.text.isprintable()
    assert all(map(str.isprintable, (dialog_title(state), *dialog_lines(state))))
    assert key_hints(state)
    if state.dialog is None:
        assert dialog_lines(state) == ()


def played(names: tuple[str, ...], script: list[tuple[Any, ...]]) -> tuple[State, list[Operation], Stage]:
    """Play a script, and check after each step."""
    stage = Stage(Config([entry(names[0]), entry(names[1], trusted=False)]), {names[0]: tools(*names[1:4])})
    stage.natives = (NATIVE,)
    state = start(stage.snapshot, 100.0)
    asked: list[Operation] = []
    check(state)
    for step in script:
        event = event_of(stage, state, step)
        before = state
        state, operations = reduce(before, event)
        assert reduce(before, event) == (state, operations)
        asked += operations
        assert all(each in state.flights or isinstance(each, Quit) for each in operations)
        check(state)
    return state, asked, stage


SCRIPT_LENGTH = 40


@given(st.lists(steps(PLAIN), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH))
@settings(max_examples=60)
def test_nothing_that_happens_breaks_what_always_holds(script: list[tuple[Any, ...]]) -> None:
    played(PLAIN, script)


@given(st.lists(steps(HOSTILE), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH))
@settings(max_examples=40)
def test_nor_with_hostile_names(script: list[tuple[Any, ...]]) -> None:
    played(HOSTILE, script)


@given(st.lists(steps(PLAIN), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH), st.sampled_from(["done", "failed"]))
def test_when_everything_is_answered_nothing_is_pending(script: list[tuple[Any, ...]], how: str) -> None:
    state, _, stage = played(PLAIN, script)
    for operation in state.flights:
        state, _ = reduce(state, landed(stage, operation.id, operation, how))
        check(state)
    assert state.ended or state.flights == ()


@given(st.lists(steps(PLAIN), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH))
def test_one_who_presses_q_long_enough_leaves(script: list[tuple[Any, ...]]) -> None:
    state, asked, _ = played(PLAIN, script)
    for key in ("esc", "esc", "q", "q"):
        state, operations = reduce(state, Key(key))
        asked += operations
    assert state.ended
    assert [each for each in asked if isinstance(each, Quit)] == [asked[-1]]


@given(*[st.lists(steps(PLAIN), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH)] * 2)
def test_a_host_that_is_closed_is_asked_for_nothing_and_that_is_said(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]
) -> None:
    state, _, stage = played(PLAIN, before)
    state, operations = reduce(state, Closed())
    for step in after:
        assert all(isinstance(each, Quit) for each in operations)
        assert state.ended or (state.flights == () and state.status is not None)
        check(state)
        state, operations = reduce(state, event_of(stage, state, step))


@given(st.lists(steps(PLAIN), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH))
def test_each_operation_has_an_id_of_its_own_and_they_grow(script: list[tuple[Any, ...]]) -> None:
    _, asked, _ = played(PLAIN, script)
    ids = [each.id for each in asked]
    assert ids == sorted(set(ids))


@given(st.lists(steps(PLAIN), min_size=SCRIPT_LENGTH // 4, max_size=SCRIPT_LENGTH))
def test_what_the_memo_keeps_changes_nothing(script: list[tuple[Any, ...]]) -> None:
    """The same script, from the beginning and with nothing kept between any two events, ends in the same state and rows."""
    stage = Stage(Config([entry("git"), entry("web", trusted=False)]), {"git": tools("db", "a")})
    kept = fresh = start(stage.snapshot, 100.0)
    for step in script:
        event = event_of(stage, kept, step)
        kept, told = reduce(kept, event)
        fresh, same = reduce(evolve(fresh, memo=type(fresh.memo)()), event)
        assert (kept, told) == (fresh, same)
        assert list(visible(kept)) == list(visible(evolve(kept, memo=type(kept.memo)())))


@pytest.mark.parametrize("key", [" ", "p", "r", "R", "d", "l", "t", "a"])
def test_every_change_is_of_the_row_under_the_cursor(key: str) -> None:
    stage = Stage(
        Config([entry("git"), entry("web", trusted=False), entry("db")]), {"git": tools("log"), "db": parked()}
    )
    state = start(stage.snapshot, 100.0)
    shown = visible(state)
    for place in range(shown.top, len(shown)):
        _, operations = reduce(evolve(state, cursor=shown.identity(place)), Key(key))
        for each in operations:
            assert getattr(each, "server", shown.identity(place)[1]) == shown.identity(place)[1]
            assert changes(each) == (key not in "lt")
