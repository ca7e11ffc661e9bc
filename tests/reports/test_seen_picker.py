"""Reports of the areas toggle, slow-start and tool-budget, as a person sees them in the picker.

The rows and the reducer over a real host: its coordinator, its projector and its files; only the servers are scripted, and the
clock jumps. A key that is pressed is done by the host as the picker's view does it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Host, NativeTool
from playbill.actors.edge.config.file import FileStore
from playbill.actors.picker.dispatch import Desk
from playbill.actors.picker.reducer import reduce, start, visible
from playbill.actors.picker.values import Event, Key, News, NoticeRow, Operation, ServerRow, Tick, ToolRow
from playbill.actors.testing import Script, ScriptedServers

from .conftest import PATIENCE, opened, virtual_time

REFUSED = "the server exited with code 1: not yet"


class Person:
    """Somebody who looks at a picker and presses keys.

    Args:
        host: that the picker is of.
        nursery: in which it does what is asked for.
    """

    def __init__(self, host: Host, nursery: trio.Nursery) -> None:
        self._host = host
        self.state = start(host.snapshot(), trio.current_time())
        self._desk = Desk(host, nursery, self.tell)

    def tell(self, event: Event) -> None:
        self.state, operations = reduce(self.state, event)
        for operation in operations:
            self._take(operation)

    def _take(self, operation: Operation) -> None:
        self._desk.take(operation)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tell(Key(key))

    def go_to(self, *identity: str) -> None:
        """Move to a row with the keys."""
        self.press("home")
        for _ in range(len(visible(self.state))):
            if self.state.cursor == identity:
                return
            self.press("down")
        raise AssertionError(f"there is no row {identity}")

    def look(self) -> None:
        """See what the host publishes."""
        self.tell(Tick(trio.current_time()))
        self.tell(News(self._host.snapshot()))

    async def sees(self, what: Any) -> None:
        """Look until it is so."""
        with trio.fail_after(PATIENCE):
            self.look()
            while not what():
                await trio.sleep(0.1)
                self.look()

    async def settled(self) -> None:
        """Look until nothing is under way."""
        await self.sees(lambda: not self.state.flights)

    def server(self, name: str) -> ServerRow:
        return self._row("server", name)

    def tool(self, server: str, bare: str) -> ToolRow:
        return self._row("tool", server, bare)

    def tools(self, server: str) -> dict[str, ToolRow]:
        """The tools that are shown of a server, by name."""
        shown = [row for row in visible(self.state) if isinstance(row, ToolRow) and row.identity[1] == server]
        return {row.identity[2]: row for row in shown}

    def warnings(self) -> list[tuple[str, str | None]]:
        return [(row.text, row.more) for row in visible(self.state) if isinstance(row, NoticeRow)]

    def _row(self, *identity: str) -> Any:
        place = visible(self.state).find(identity)
        assert place is not None, identity
        return visible(self.state)[place]


@asynccontextmanager
async def looking(path: Path, servers: ScriptedServers, **options: Any) -> AsyncIterator[Person]:
    """Somebody in front of a host over these servers and this file."""
    async with opened(servers, store=FileStore(path), **options) as host, trio.open_nursery() as nursery:
        yield Person(host, nursery)
        nursery.cancel_scope.cancel()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def write(path: Path, **entries: dict[str, Any]) -> None:
    path.write_text(json.dumps({"mcpServers": {name: {"command": name, **keys} for name, keys in entries.items()}}))


@virtual_time
async def test_b124_a_server_that_is_disabled_in_any_words_is_shown_off_and_is_not_started(path: Path) -> None:
    write(path, a={"disabled": True}, b={"enabled": False}, c={"isActive": False}, d={})
    servers = ScriptedServers(a=["x"], b=["x"], c=["x"], d=["x"])
    async with looking(path, servers) as person:
        await person.sees(lambda: person.server("d").phase == "ready")
        for name in "abc":
            row = person.server(name)
            assert (row.check, row.state, row.count, row.pending) == ("off", "disabled", None, None)
        assert person.server("d").check == "on"
        assert servers.spawns == {"d": 1}
        person.go_to("server", "b")
        person.press(" ")
        assert (person.server("b").check, person.server("b").pending) == ("pending-on", "enabling")
        await person.sees(lambda: person.server("b").state == "ready")
        assert person.server("b").check == "on"
        assert servers.spawns == {"d": 1, "b": 1}


@virtual_time
async def test_b127_a_hidden_tool_stays_unchecked_whatever_else_is_changed(path: Path) -> None:
    write(path, a={"disabledTools": ["hidden"]}, b={}, c={"disabled": True})
    servers = ScriptedServers(a=["hidden", "shown"], b=["x"], c=["y"], d=["z"])
    async with looking(path, servers) as person:
        await person.sees(lambda: person.server("b").phase == "ready" and person.server("a").phase == "ready")
        person.press("a", *"d", "enter", *"d", "enter")
        await person.settled()
        person.go_to("server", "c")
        person.press(" ")
        person.go_to("tool", "b", "x")
        person.press(" ", "p")
        person.go_to("server", "d")
        person.press("d", "d")
        await person.settled()
        person.press("r")
        await person.settled()
        await person.sees(lambda: person.server("c").phase == "ready")
        assert {name: row.check for name, row in person.tools("a").items()} == {"hidden": "off", "shown": "on"}
        assert person.tool("a", "hidden").words.startswith("not on the wire: excluded by the entry 'a'")
        assert (person.tool("b", "x").check, person.tool("b", "x").pinned) == ("off", True)
    assert json.loads(path.read_text())["mcpServers"]["a"]["disabledTools"] == ["hidden"]


@virtual_time
async def test_b128_a_storm_of_toggles_is_shown_as_the_last_one_and_ends_so(path: Path) -> None:
    write(path, a={})
    servers = ScriptedServers(a=Script(["x"], connect_delay=0.3, close_delay=0.1))
    async with looking(path, servers) as person:
        await person.sees(lambda: person.server("a").phase == "ready")
        for turn in range(21):
            person.press(" ")
            assert person.server("a").check == ("pending-on" if turn % 2 else "pending-off")
        await person.settled()
        await person.sees(lambda: person.server("a").state == "disabled")
        assert (person.server("a").check, person.server("a").pending) == ("off", None)
        assert json.loads(path.read_text())["mcpServers"]["a"]["disabled"] is True
        assert servers.most_at_once["a"] == 1
        assert servers.alive == {}
        person.go_to("tool", "a", "x")  # its tools are toggled all the same
        person.press(*" " * 4, " ")
        await person.settled()
        assert (person.tool("a", "x").check, person.tool("a", "x").pending) == ("off", 0)


@virtual_time
@pytest.mark.parametrize(
    ("lists", "shown"),
    [
        ({"enabledTools": ["a"]}, {"a"}),
        ({"disabledTools": ["a"]}, {"b", "c"}),
        ({"enabledTools": []}, set()),
        ({"disabledTools": []}, {"a", "b", "c"}),
        ({"enabledTools": ["a", "b"], "disabledTools": ["a"]}, {"b"}),
    ],
)
async def test_b129_a_tool_that_comes_later_is_shown_as_the_list_means_it_and_says_which_list(
    path: Path, lists: dict[str, Any], shown: set[str]
) -> None:
    write(path, s=lists)
    servers = ScriptedServers(s=["a"])
    async with looking(path, servers) as person:
        await person.sees(lambda: person.server("s").phase == "ready")
        servers.scripts["s"] = servers.live["s"].script = Script(["a", "b", "c"])
        servers.live["s"].announce()
        await person.sees(lambda: len(person.tools("s")) == 3)
        assert {name for name, row in person.tools("s").items() if row.check == "on"} == shown
        assert {name for name, row in person.tools("s").items() if row.verdict == "on_wire"} == shown
        assert person.server("s").count == f"{len(shown)} of 3 tools on the wire"
        for name in {"a", "b", "c"} - shown:
            assert "entry 's'" in person.tool("s", name).words


@virtual_time
async def test_b121_a_server_whose_first_starts_fail_is_shown_with_its_reason_and_when_it_is_tried_again(
    path: Path,
) -> None:
    write(path, flaky={}, well={})
    flaky = Script(["x"], refuse=REFUSED)
    servers = ScriptedServers(flaky=flaky, well=["y"])
    async with looking(path, servers) as person:
        await person.sees(lambda: person.server("flaky").phase == "backing_off")
        row = person.server("flaky")
        assert row.state.startswith("retry in ")
        assert row.error is not None
        assert "not yet" in row.error
        assert (row.check, row.count) == ("on", None)
        await person.sees(lambda: person.server("well").state == "ready")
        flaky.refuse = None
        await person.sees(lambda: person.server("flaky").state == "ready")
        assert (person.server("flaky").error, person.server("flaky").count) == (None, "1 of 1 tool on the wire")


@virtual_time
async def test_b121_a_server_that_never_starts_ends_parked_and_is_revived_with_a_key(path: Path) -> None:
    write(path, dead={})
    dead = Script(["x"], refuse=REFUSED)
    servers = ScriptedServers(dead=dead)
    async with looking(path, servers) as person:
        with trio.fail_after(10_000):
            while person.server("dead").phase != "parked":
                await trio.sleep(1)
                person.look()
        assert person.server("dead").state.startswith("parked — press R to revive")
        assert "not yet" in (person.server("dead").error or "")
        dead.refuse = None
        person.press("R")
        await person.sees(lambda: person.server("dead").state == "ready")


@virtual_time
async def test_b122_a_slow_server_is_added_at_once_and_shown_as_starting(path: Path) -> None:
    write(path)
    servers = ScriptedServers(slow=Script(("x",), connect_delay=10))
    async with looking(path, servers) as person:
        before = trio.current_time()
        person.press("a", *"slow", "enter", *"slow", "enter")
        await person.sees(lambda: person.state.dialog is None)
        assert trio.current_time() - before < 10
        assert person.state.cursor == ("server", "slow")
        assert (person.server("slow").state, person.server("slow").check) == ("starting", "on")
        assert "slow" in json.loads(path.read_text())["mcpServers"]
        await person.sees(lambda: person.server("slow").state == "ready")


@virtual_time
async def test_b066_a_huge_server_crowds_out_no_other_and_the_warning_names_it(path: Path) -> None:
    sizes = {"huge": 300, "big": 161, "small": 3, "other": 1}
    write(path, huge={"priority": -1, "tools": {"pin": ["t299"]}}, big={"priority": -1}, small={}, other={})
    servers = ScriptedServers(**{name: [f"t{n:03}" for n in range(size)] for name, size in sizes.items()})
    native = NativeTool("own", "ours", {"type": "object", "properties": {}}, lambda: "own")
    async with looking(path, servers, native_tools=[native], budget=100) as person:
        await person.sees(lambda: all(person.server(name).phase == "ready" for name in sizes))
        assert person.warnings() == [
            (
                "466 tools over the budget of 100 — 366 MCP tools were dropped from this session; disable some to make room",
                "mostly from huge (300), big (161), small (3)",
            )
        ]
        assert [person.server(name).count for name in ("small", "other")] == [
            "3 of 3 tools on the wire",
            "1 of 1 tool on the wire",
        ]
        assert (person.tool("huge", "t299").verdict, person.tool("huge", "t299").pinned) == ("on_wire", True)
        last = person.tool("big", "t160")
        assert (last.verdict, last.check) == ("over_budget", "on")
        assert "of 466 tools and the budget is 100" in last.words
        for name in ("huge", "big"):
            person.go_to("server", name)
            person.press(" ")
        await person.settled()
        assert person.warnings() == []


@virtual_time
async def test_b069_which_tools_are_hidden_is_shown_and_follows_the_order_of_the_file(path: Path) -> None:
    tools = [f"t{n:02}" for n in range(20)]
    servers = ScriptedServers(a=list(reversed(tools)), b=tools, c=tools)
    write(path, a={}, b={}, c={})
    async with looking(path, servers, budget=40) as person:
        await person.sees(lambda: all(person.server(name).phase == "ready" for name in "abc"))
        for order in ("abc", "cab", "bca"):
            write(path, **{name: {} for name in order})
            person.press("r")
            await person.settled()
            assert [row.identity[1] for row in visible(person.state) if isinstance(row, ServerRow)] == list(order)
            for name in order:
                hidden = name == order[-1]
                assert {row.verdict for row in person.tools(name).values()} == {"over_budget" if hidden else "on_wire"}
                assert person.server(name).count == f"{0 if hidden else 20} of 20 tools on the wire"
            for at, bare in enumerate(tools):
                assert f"it is number {41 + at} of 60 tools and the budget is 40" in person.tool(order[-1], bare).words
            assert person.warnings()[0][0].startswith("60 tools over the budget of 40 — 20 MCP tools were dropped")
