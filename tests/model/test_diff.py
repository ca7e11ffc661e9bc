from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.diff import Delta, launch_key, plan, transport_kind

STDIO = ServerEntry("s", command="run", args=("a", "b"), env={"X": "1", "Y": "${Z}"}, cwd="/w", env_file=".env")
REMOTE = ServerEntry("r", url="https://h/mcp", headers={"Authorization": "${T}", "X-A": "1"})


@pytest.mark.parametrize(
    ("entry", "same"),
    [
        (STDIO, evolve(STDIO, env={"Y": "${Z}", "X": "1"})),
        (STDIO, evolve(STDIO, type="stdio")),
        (STDIO, evolve(STDIO, type="STDIO")),
        (REMOTE, evolve(REMOTE, headers={"x-a": "1", "AUTHORIZATION": "${T}"})),
        *(
            (REMOTE, evolve(REMOTE, type=t))
            for t in ("http", "streamable-http", "streamable_http", "streamableHttp", "HTTP")
        ),
        (STDIO, evolve(STDIO, exclude=("x",), include=("y",), pin=("z",), priority=3, timeout=1, connect_timeout=2)),
        (STDIO, evolve(STDIO, protocol_version="2026-07-28")),
        (STDIO, evolve(STDIO, line=9, disabled=True, trusted=False, name="other")),
    ],
)
def test_what_means_the_same_launch_has_the_same_key(entry: ServerEntry, same: ServerEntry) -> None:
    assert launch_key(entry) == launch_key(same)
    assert hash(launch_key(entry)) == hash(launch_key(same))


@pytest.mark.parametrize(
    ("entry", "other"),
    [
        (STDIO, evolve(STDIO, command="run2")),
        (STDIO, evolve(STDIO, args=("b", "a"))),
        (STDIO, evolve(STDIO, args=("a b",))),
        (STDIO, evolve(STDIO, env={"X": "1"})),
        (STDIO, evolve(STDIO, env={"X": "1", "Y": "z"})),
        (STDIO, evolve(STDIO, env={"x": "1", "Y": "${Z}"})),
        (STDIO, evolve(STDIO, cwd=None)),
        (STDIO, evolve(STDIO, env_file=None)),
        (STDIO, evolve(STDIO, protocol_version="2025-11-25")),
        (evolve(REMOTE, protocol_version="2025-06-18"), evolve(REMOTE, protocol_version="2025-11-25")),
        (REMOTE, evolve(REMOTE, url="https://h/mcp2")),
        (REMOTE, evolve(REMOTE, type="sse")),
        (REMOTE, evolve(REMOTE, headers={"Authorization": "${t}", "X-A": "1"})),
        (ServerEntry("m", server=object()), ServerEntry("m", server=object())),
    ],
)
def test_what_means_another_launch_has_another_key(entry: ServerEntry, other: ServerEntry) -> None:
    assert launch_key(entry) != launch_key(other)


def test_an_in_memory_server_is_itself_and_is_held() -> None:
    server = ["equal", "by value"]
    key = launch_key(ServerEntry("m", server=server))
    assert key == launch_key(ServerEntry("m", server=server))
    assert key != launch_key(ServerEntry("m", server=list(server)))


def test_a_type_is_known_by_any_of_its_spellings() -> None:
    assert transport_kind(STDIO) == "stdio"
    assert transport_kind(REMOTE) == "http"
    assert transport_kind(evolve(REMOTE, type="Streamable HTTP")) == "http"
    assert transport_kind(evolve(REMOTE, type="SSE")) == "sse"
    assert transport_kind(evolve(REMOTE, type="web-socket")) == "websocket"
    assert transport_kind(ServerEntry("m", server=object())) == "memory"


def running(*entries: ServerEntry) -> dict[str, Any]:
    return {entry.name: launch_key(entry) for entry in entries}


def test_nothing_to_do_is_an_empty_delta() -> None:
    delta = plan(Config([STDIO, REMOTE]), running(STDIO, REMOTE))
    assert delta == Delta()
    assert delta == Delta()


def test_the_delta_is_exact() -> None:
    a, b, c, d = (ServerEntry(name, command=name) for name in "abcd")
    b2 = evolve(b, args=("new",))
    delta = plan(Config([d, b2, a]), running(a, b, c))
    assert delta == Delta(start=(d,), stop=("c",), replace=(b2,))
    assert delta


@pytest.mark.parametrize("change", [{"disabled": True}, {"trusted": False}, {"error": "wrong"}])
def test_an_entry_that_is_not_to_run_is_stopped_and_not_started(change: dict[str, Any]) -> None:
    off = evolve(STDIO, **change)
    assert plan(Config([off]), running(STDIO)) == Delta(stop=("s",))
    assert plan(Config([off]), {}) == Delta()
    assert plan(Config([STDIO]), {}) == Delta(start=(STDIO,))


@pytest.mark.parametrize(
    "change",
    [{"exclude": ("t",)}, {"include": ()}, {"pin": ("t",)}, {"priority": 9}, {"line": 3}, {"timeout": 5.0}],
)
def test_any_change_but_of_launch_keys_replaces_nothing(change: dict[str, Any]) -> None:
    assert plan(Config([evolve(STDIO, **change)]), running(STDIO)) == Delta()


entries = st.builds(
    ServerEntry,
    st.sampled_from("abcdef"),
    command=st.sampled_from(["x", "y"]),
    disabled=st.booleans(),
    error=st.sampled_from([None, None, "wrong"]),
)
configs = st.lists(entries, unique_by=lambda e: e.name).map(Config)


@given(configs, configs)
def test_after_its_delta_is_done_there_is_nothing_to_do(before: Config, after: Config) -> None:
    held = running(*(e for e in before.servers if e.runnable))
    delta = plan(after, held)
    for name in delta.stop:
        del held[name]
    for entry in delta.start:
        assert entry.name not in held
        held[entry.name] = launch_key(entry)
    for entry in delta.replace:
        assert entry.name in held
        held[entry.name] = launch_key(entry)
    assert held == running(*(e for e in after.servers if e.runnable))
    assert plan(after, held) == Delta()


@pytest.mark.parametrize(
    "keys",
    [{"type": 5}, {"command": 1}, {"args": "--verbose"}, {"args": [1]}, {"env": {"X": 1}}, {"headers": {"X": None}}],
)
def test_what_no_configuration_can_mean_is_refused_where_it_is_written(keys: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        ServerEntry("m", **keys)


def test_a_process_is_another_one_when_its_entry_moves_to_another_folder() -> None:
    here = ServerEntry("a", command="c", source="/home/u/mcp.json")
    there = evolve(here, source="/srv/project/mcp.json")
    beside = evolve(here, source="/home/u/.mcp.json")
    assert launch_key(here) != launch_key(there)
    assert launch_key(here) == launch_key(beside)


def test_a_remote_server_is_the_same_wherever_its_entry_is_unless_it_says_the_folder() -> None:
    here = ServerEntry("a", url="https://h/", source="/home/u/mcp.json")
    assert launch_key(here) == launch_key(evolve(here, source="/srv/mcp.json"))
    for keys in ({"url": "https://h/${workspaceFolderBasename}"}, {"headers": {"root": "${workspaceFolder}"}}):
        placed = evolve(here, **keys)
        assert launch_key(placed) != launch_key(evolve(placed, source="/srv/mcp.json"))
