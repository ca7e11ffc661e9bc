"""Connections from entry to nothing: both eras, real servers and servers in memory."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult
from playbill.actors.edge.wire import process as process_module
from playbill.actors.edge.wire.link import LOSS_SECONDS
from playbill.actors.edge.wire.session import make_connect
from playbill.actors.edge.wire.warden import open_warden
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import ConnectionFailed, ConnectionLost

from ..processes import marked, parent_of
from .conftest import Connector, expand_as_written

Fake = Callable[..., ServerEntry]
Patience = Callable[[], Any]
ERAS = [("legacy", "2025-11-25"), ("modern", "2026-07-28"), ("both", "2026-07-28")]


def text(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    return str(result.content[0].text)  # type: ignore[union-attr]


def memory_server(*tools: Callable[..., Any]) -> Any:
    server = MCPServer("memory")
    for tool in tools:
        server.tool()(tool)
    return server


def add(a: int, b: int) -> int:
    return a + b


@pytest.mark.parametrize("dispatcher", ["native", "sdk"])
@pytest.mark.parametrize(("era", "version"), ERAS)
async def test_a_real_server_lists_and_answers(
    fake: Fake, connect: Connector, patience: Patience, era: str, version: str, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(era=era), dispatcher=dispatcher) as connection:
            assert connection.protocol_version == version
            listing = await connection.list_tools()
            assert [tool.bare for tool in listing.tools] == ["echo", "pid", "fault"]
            assert listing.problems == ()
            assert json.loads(text(await connection.call_tool("echo", {"a": [1, "é"]}, None))) == {"a": [1, "é"]}
            assert text(await connection.call_tool("pid", {}, None)) == str(connection.pid)
    assert connect.eras == {"fake": "modern" if version > "2026" else "legacy"}


async def test_a_server_in_memory_lists_and_answers(connect: Connector, patience: Patience) -> None:
    with patience():
        async with connect(ServerEntry("m", server=memory_server(add))) as connection:
            assert connection.pid is None
            assert connection.stderr_tail() == ""
            assert [tool.bare for tool in (await connection.list_tools()).tools] == ["add"]
            result = await connection.call_tool("add", {"a": 1, "b": 2}, None)
            assert result.structured_content == {"result": 3}
        with pytest.raises(ConnectionLost, match="was closed"):
            await connection.call_tool("add", {"a": 1, "b": 2}, None)


async def test_progress_reaches_the_caller(fake: Fake, connect: Connector, patience: Patience) -> None:
    seen = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        await trio.lowlevel.checkpoint()
        seen.append((progress, total))

    with patience():
        async with connect(fake()) as connection:
            await connection.call_tool("fault", {"do": "progress", "steps": 3}, on_progress)
    assert seen == [(0.0, 9.0), (1.0, 9.0), (2.0, 9.0)]


# ── which era ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def asked(log: Path) -> list[str]:
    return log.read_text().split()


async def test_the_era_is_remembered(fake: Fake, connect: Connector, tmp_path: Path, patience: Patience) -> None:
    for round_, expected in ((1, ["server/discover", "initialize"]), (2, ["initialize"])):
        log = tmp_path / str(round_)
        with patience():
            async with connect(fake(era="legacy", log=str(log))) as connection:
                await connection.call_tool("pid", {}, None)
        assert asked(log) == [*expected, "notifications/initialized", "tools/call"]


async def test_a_server_that_is_silent_on_the_probe_is_asked_in_legacy(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(fake(silent=True), probe_seconds=0.05) as connection:
            assert connection.protocol_version == "2025-11-25"


@pytest.mark.parametrize("known", [None, "modern"])
async def test_a_server_that_dies_of_the_probe_is_started_again_in_legacy(
    fake: Fake, connect: Connector, patience: Patience, known: str | None, tmp_path: Path
) -> None:
    if known is not None:
        connect.eras["fake"] = known
    log = tmp_path / "log"
    with patience():
        async with connect(fake(die_of_probe=True, log=str(log))) as connection:
            assert connection.protocol_version == "2025-11-25"
            assert text(await connection.call_tool("pid", {}, None)) == str(connection.pid)
    assert asked(log)[:2] == ["server/discover", "initialize"]
    assert connect.eras == {"fake": "legacy"}


async def test_a_server_that_dies_without_having_read_the_probe_is_started_once(
    fake: Fake, connect: Connector, patience: Patience, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    entry = fake(exit_at_once=3, say="no database", env={"STARTS": str(starts)})
    code = f"open({str(starts)!r}, 'a').write('x'); exec(open({entry.args[2]!r}).read())"
    entry = ServerEntry("fake", command=entry.command, args=("-I", "-S", "-c", code, entry.args[3]), env=entry.env)
    with patience(), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry):
            pytest.fail("it never lived")
    assert caught.value.reason == "the server exited with code 3: no database"
    assert caught.value.stderr_tail == "no database\n"
    assert starts.read_text() == "x"
    assert connect.eras == {}


async def test_a_slow_modern_server_refuses_initialize_and_its_late_answer_is_used(
    fake: Fake, connect: Connector, patience: Patience, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with patience():
        async with connect(fake(era="both", slow=0.5, log=str(log)), probe_seconds=0.05) as connection:
            assert connection.protocol_version == "2026-07-28"
            assert (await connection.list_tools()).tools
    assert asked(log)[:2] == ["server/discover", "initialize"]
    assert "server/discover" not in asked(log)[1:]


async def test_a_server_remembered_as_legacy_that_became_modern_is_asked_again(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    connect.eras["fake"] = "legacy"
    with patience():
        async with connect(fake(era="modern")) as connection:
            assert connection.protocol_version == "2026-07-28"
    assert connect.eras == {"fake": "modern"}


# ── changes of the list ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            {"do": "error", "error": {"code": -32602, "message": "bad a", "data": {"a": 1}}},
            "The server refused the call: bad a (error -32602): {'a': 1}",
        ),
        (
            {"do": "error", "error": {"code": -32000, "message": "busy"}},
            "The server refused the call: busy (error -32000)",
        ),
        ({"do": "null"}, "its result is null, not an object"),
        ({"do": "nonsense"}, "The server answered with an invalid result: content"),
        ({"do": "half_line"}, "its response is not valid JSON"),
    ],
)
async def test_an_answer_that_is_no_result_is_a_tool_error(
    fake: Fake, connect: Connector, patience: Patience, args: dict[str, Any], said: str
) -> None:
    with patience():
        async with connect(fake()) as connection:
            result = await connection.call_tool("fault", args, None)
            assert result.is_error
            assert said in text(result)
            assert not (await connection.call_tool("pid", {}, None)).is_error


async def test_a_tool_that_wants_input_gets_none(connect: Connector, patience: Patience) -> None:
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ListToolsResult, Tool

    async def on_list(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="ask", input_schema={"type": "object"})])

    async def on_call(context: Any, params: Any) -> InputRequiredResult:
        form = ElicitRequestFormParams(message="who?", requested_schema={"type": "object", "properties": {}})
        return InputRequiredResult(input_requests={"who": ElicitRequest(params=form)})

    server: Any = Server("asker", on_list_tools=on_list, on_call_tool=on_call)
    with patience():
        async with connect(ServerEntry("m", server=server)) as connection:
            result = await connection.call_tool("ask", {}, None)
    assert result.is_error
    assert "asks for input" in text(result)


async def test_arguments_that_json_cannot_say_are_a_tool_error(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(fake()) as connection:
            result = await connection.call_tool("echo", {"a": object()}, None)
            assert result.is_error
            assert "could not be sent" in text(result)


# ── entering and leaving ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_body_raises_leaves_unwrapped(fake: Fake, connect: Connector, patience: Patience) -> None:
    with patience(), pytest.raises(LookupError, match="mine"):
        async with connect(fake()):
            raise LookupError("mine")


async def test_leaving_ends_the_process_and_all_its_files(
    fake: Fake, connect: Connector, patience: Patience, mark: str
) -> None:
    with patience():
        async with connect(fake()):
            pass
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            async with connect(fake()):
                pass
    assert len(os.listdir("/proc/self/fd")) == before
    assert marked(mark) == []


@pytest.mark.parametrize("passes", range(0, 60, 3))
async def test_cancelled_at_any_point_nothing_is_left(
    fake: Fake, connect: Connector, patience: Patience, mark: str, passes: int
) -> None:
    """The caller is cancelled after so many passes of the scheduler, somewhere between spawn and use."""
    with patience(), trio.CancelScope() as scope:

        async def cancel_later(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            task_status.started()
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
                await trio.sleep(0.002)
            scope.cancel()

        async with trio.open_nursery() as nursery:
            await nursery.start(cancel_later)
            async with connect(fake(slow=0.03)) as connection:
                await connection.call_tool("fault", {"do": "silence"}, None)
    assert marked(mark) == []


async def test_a_connection_in_the_making_is_killed_without_grace(
    fake: Fake, connect: Connector, mark: str, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "EOF_GRACE", 1000.0)
    with patience():
        async with trio.open_nursery() as nursery:

            async def attempt() -> None:
                async with connect(fake(hang=True, ignore_eof=True, ignore_term=True)):
                    pytest.fail("it never answers")

            nursery.start_soon(attempt)
            while not marked(mark):
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    assert marked(mark) == []


async def test_a_process_that_survives_sigkill_for_too_long_is_still_reaped_when_it_ends(
    fake: Fake, connect: Connector, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "KILL_GRACE", 0.0)  # so that no process can be quick enough
    with patience():
        async with connect(fake()) as connection:
            pid = connection.pid
            os.kill(pid, signal.SIGSTOP)
            monkeypatch.setattr(process_module, "EOF_GRACE", 0.0)
            monkeypatch.setattr(process_module, "TERM_GRACE", 0.0)
        while Path(f"/proc/{pid}").exists():
            await trio.sleep(0.01)


async def test_a_live_server_is_given_its_grace_even_when_the_caller_is_cancelled(
    fake: Fake, connect: Connector, patience: Patience, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    entry = fake()
    code = f"exec(open({entry.args[2]!r}).read()); open({str(said)!r}, 'w').write('goodbye')"
    entry = ServerEntry("fake", command=entry.command, args=("-I", "-S", "-c", code, entry.args[3]), env=entry.env)
    with patience(), trio.CancelScope() as scope:
        async with connect(entry):
            scope.cancel()
            await trio.sleep_forever()
    assert said.read_text() == "goodbye"


async def test_a_cancelled_caller_can_still_use_the_connection_to_finish(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    said = ""
    with patience(), trio.CancelScope() as scope:
        async with connect(fake()) as connection:
            scope.cancel()
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    said = text(await connection.call_tool("pid", {}, None))
    assert said == str(connection.pid)


async def test_many_at_once_side_by_side(fake: Fake, connect: Connector, patience: Patience) -> None:
    pids = set()

    async def one(number: int) -> None:
        async with connect(fake(f"server-{number}", era="both")) as connection:
            pids.add(text(await connection.call_tool("pid", {}, None)))

    with patience():
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(one, number)
    assert len(pids) == 10


async def test_the_parent_of_each_server_is_a_reaper_of_the_watcher(fake: Fake, patience: Patience) -> None:
    with patience():
        async with open_warden() as warden:
            connect = make_connect(warden=warden, expand=expand_as_written)
            opening = [connect(fake(name), eras={}, on_list_changed=lambda: None) for name in ("a", "b")]
            async with opening[0] as first, opening[1] as second:
                assert first.pid is not None
                assert second.pid is not None
                reapers = {parent_of(first.pid), parent_of(second.pid)}
                assert len(reapers) == 2
                assert {parent_of(pid) for pid in reapers} == {warden.pid}


# ── servers in memory that go wrong ──────────────────────────────────────────────────────────────────────────────────────


class Broken:
    """A server object whose run goes wrong."""

    def create_initialization_options(self) -> None:
        return None

    async def run(self, read: Any, write: Any, options: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError("its own fault")


async def test_a_server_in_memory_that_raises_fails_alone(connect: Connector, patience: Patience) -> None:
    with patience(), pytest.raises(ConnectionFailed, match="the in-memory server raised LookupError: its own fault"):
        async with connect(ServerEntry("m", server=Broken())):
            pytest.fail("it never lived")


async def test_a_server_in_memory_costs_no_real_time(
    connect: Connector, autojump_clock: trio.testing.MockClock
) -> None:
    async def slow() -> str:
        await trio.sleep(3600)
        return "slept"

    async with connect(ServerEntry("m", server=memory_server(slow))) as connection:
        result = await connection.call_tool("slow", {}, None)
        assert text(result) == "slept"


@pytest.mark.parametrize(("message", "seconds"), [("busy", 0.0), ("Connection closed", LOSS_SECONDS)])
async def test_an_error_with_the_code_of_a_closed_connection_is_no_loss(
    connect: Connector, autojump_clock: trio.testing.MockClock, message: str, seconds: float
) -> None:
    def fail() -> None:
        raise MCPError(code=-32000, message=message)

    async with connect(ServerEntry("m", server=memory_server(fail))) as connection:
        began = trio.current_time()
        result = await connection.call_tool("fail", {}, None)
        assert result.is_error
        assert message in text(result)
        assert trio.current_time() - began == pytest.approx(seconds, abs=0.1)
        assert (await connection.list_tools()).tools


async def test_the_default_expansion_is_used(
    connect: Connector, patience: Patience, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _, value = mark.partition("=")
    monkeypatch.setenv("PLAYBILL_TEST_PYTHON", sys.executable)
    fake = str(Path(__file__).with_name("fake_server.py"))
    entry = ServerEntry("fake", command="${PLAYBILL_TEST_PYTHON}", args=("-I", "-S", fake), env={key: value})
    with patience():
        async with make_connect()(entry, eras={}, on_list_changed=lambda: None) as connection:
            assert (await connection.list_tools()).tools
        with pytest.raises(ConnectionFailed, match="PLAYBILL_NO_SUCH"):
            async with make_connect()(
                ServerEntry("fake", command="${PLAYBILL_NO_SUCH}"), eras={}, on_list_changed=lambda: None
            ):
                pytest.fail("it cannot be expanded")


async def test_secrets_are_in_no_reason_and_no_tail(fake: Fake, connect: Connector, patience: Patience) -> None:
    env = {"SECRET_KEY": "hunter2-hunter2"}
    with patience():
        with pytest.raises(ConnectionFailed) as caught:
            async with connect(fake(exit_at_once=1, say="bad key hunter2-hunter2!", env=env)):
                pytest.fail("it never lived")
        assert caught.value.reason == "the server exited with code 1: bad key ***!"
        assert caught.value.stderr_tail == "bad key ***!\n"
        async with connect(fake(env=env)) as connection:
            error = {"code": 1, "message": "key hunter2-hunter2 refused"}
            result = await connection.call_tool("fault", {"do": "error", "error": error}, None)
            assert "hunter2" not in text(result)
            with pytest.raises(ConnectionLost) as lost:
                await connection.call_tool("fault", {"do": "exit", "say": "died of hunter2-hunter2"}, None)
            assert lost.value.reason == "the server exited with code 1: died of ***"
