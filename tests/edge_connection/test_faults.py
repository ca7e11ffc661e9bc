"""What servers over stdio do wrong, row by row, with real processes; each must cost itself and nobody else.

The rows are those of the faults seen with the SDK's own stdio client. Both dispatchers must survive them: ours, and the SDK's
behind the bridge.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors.edge.wire import process as process_module
from playbill.actors.edge.wire import session as session_module
from playbill.actors.edge.wire import stdio as stdio_module
from playbill.actors.edge.wire.process import ServerProcess
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.edge.wire.stderr import StderrTail
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import ConnectionFailed, ConnectionLost

from ..processes import marked
from .conftest import Connector
from .test_connection import text

Fake = Callable[..., ServerEntry]
Patience = Callable[[], Any]


@pytest.fixture(params=["native", "sdk"])
def dispatcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def lost_with(connection: Any, fault: dict[str, Any]) -> str:
    """Call the fault; the call must end in a loss. Returns the reason."""
    with pytest.raises(ConnectionLost) as caught:
        await connection.call_tool("fault", fault, None)
    assert await connection.wait_lost() == caught.value.reason
    return caught.value.reason


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (ServerEntry("x", command="/no/such/command"), "command: '/no/such/command' does not exist"),
        (ServerEntry("x", command="/etc/passwd"), "command: '/etc/passwd' is not executable"),
        (ServerEntry("x", command="true", cwd="/no/such/folder"), "cwd: '/no/such/folder' does not exist"),
    ],
)
async def test_what_cannot_be_started_fails_with_the_key(
    connect: Connector, patience: Patience, entry: ServerEntry, reason: str
) -> None:
    with patience(), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry):
            pytest.fail("it never lived")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("method", "known"), [("initialize", None), ("initialize", "legacy"), ("notifications/initialized", "legacy")]
)
async def test_exit_in_the_handshake_gives_code_and_last_line(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, method: str, known: str | None
) -> None:
    if known is not None:
        connect.eras["fake"] = known
    with patience(), pytest.raises((ConnectionFailed, ConnectionLost)) as caught:
        async with connect(fake(exit_on=method), dispatcher=dispatcher) as connection:
            raise ConnectionLost(await connection.wait_lost())
    assert caught.value.reason == "the server exited with code 9: no licence"


async def test_a_stdout_line_is_the_reason_when_stderr_says_nothing(
    connect: Connector, patience: Patience, dispatcher: str
) -> None:
    import_sdk()  # until it is there nobody reads stdout, and a server that has ended by then is told without its words
    code = "print('Usage: server --port'); raise SystemExit(2)"
    entry = ServerEntry("x", command=sys.executable, args=("-I", "-S", "-c", code))
    with patience(), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry, dispatcher=dispatcher):
            pytest.fail("it never lived")
    assert caught.value.reason == "the server exited with code 2: on stdout: Usage: server --port"


@pytest.mark.parametrize("options", [{"hang": True}, {"half_line": True}])
async def test_a_hanging_handshake_ends_with_the_callers_scope(
    fake: Fake, connect: Connector, patience: Patience, mark: str, dispatcher: str, options: dict[str, Any]
) -> None:
    connect.eras["fake"] = "legacy"
    with patience():
        with trio.move_on_after(0.5) as scope:
            async with connect(fake(**options), dispatcher=dispatcher):
                pytest.fail("it never answers")
        assert scope.cancelled_caught
    assert marked(mark) == []


# ── talking ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", [{"do": "garbage"}, {"do": "pings", "count": 300}, {"do": "flood", "count": 3_000}])
async def test_noise_between_messages_is_survived(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, fault: dict[str, Any]
) -> None:
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            assert text(await connection.call_tool("fault", fault, None)) == "done"
            assert text(await connection.call_tool("pid", {}, None)) == str(connection.pid)


async def test_one_invalid_byte_is_replaced(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            assert text(await connection.call_tool("fault", {"do": "bad_utf8"}, None)) == "caf\N{REPLACEMENT CHARACTER}"
            assert text(await connection.call_tool("pid", {}, None)) == str(connection.pid)


async def test_fifty_megabytes_in_one_line_arrive(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            assert (
                len(text(await connection.call_tool("fault", {"do": "long", "bytes": 50_000_000}, None))) == 50_000_000
            )


async def test_a_line_over_the_cap_fails_its_call_and_the_session_survives(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(fake(), max_line=1_000_000) as connection:
            result = await connection.call_tool("fault", {"do": "long", "bytes": 3_000_000}, None)
            assert result.is_error
            assert "longer than 1000000 bytes" in text(result)
            assert text(await connection.call_tool("pid", {}, None)) == str(connection.pid)


async def test_a_megabyte_on_stderr_blocks_nobody(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            assert text(await connection.call_tool("fault", {"do": "stderr", "bytes": 1_000_000}, None)) == "done"
            while not connection.stderr_tail().endswith("\N{REPLACEMENT CHARACTER} last words\n"):
                await trio.sleep(0.01)
            assert len(connection.stderr_tail().encode()) <= 64 * 1024 + 2


async def test_a_server_that_stops_reading_ends_calls_only_by_their_own_scope(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "EOF_GRACE", 0.05)
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            await connection.call_tool("fault", {"do": "stop_reading"}, None)
            scopes = [trio.CancelScope() for _ in range(30)]

            async def call(scope: trio.CancelScope) -> None:
                with scope:
                    await connection.call_tool("echo", {"a": "x" * 100_000}, None)

            async with trio.open_nursery() as nursery:
                for scope in scopes:
                    nursery.start_soon(call, scope)
                await trio.sleep(0.1)
                for scope in scopes:
                    scope.cancel()
            assert all(scope.cancelled_caught for scope in scopes)


# ── dying ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_exit_in_a_call_gives_code_and_last_line(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            reason = await lost_with(connection, {"do": "exit", "code": 3, "say": "disk full"})
            assert reason == "the server exited with code 3: disk full"
            assert connection.stderr_tail() == "disk full\n"
            with pytest.raises(ConnectionLost, match="disk full"):
                await connection.list_tools()


@pytest.mark.parametrize("grandchild", [None, "holds", "stubborn"])
async def test_kill_9_settles_every_call_though_a_grandchild_holds_stdout(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, grandchild: str | None, mark: str
) -> None:
    options = {} if grandchild is None else {"grandchild": grandchild}
    reasons = []
    with patience():
        async with connect(fake(**options), dispatcher=dispatcher) as connection:

            async def call() -> None:
                reasons.append(await lost_with(connection, {"do": "silence"}))

            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(call)
                await connection.call_tool("pid", {}, None)
                os.kill(connection.pid, signal.SIGKILL)
            while marked(mark):
                await trio.sleep(0.01)
    assert reasons == ["the server was killed by SIGKILL"] * 5


async def test_kill_9_of_an_idle_server_is_noticed(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(grandchild="holds"), dispatcher=dispatcher) as connection:
            os.kill(connection.pid, signal.SIGKILL)
            assert await connection.wait_lost() == "the server was killed by SIGKILL"


async def test_a_grandchild_that_escaped_its_group_cannot_hide_the_death(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, tmp_path: Path, mark: str
) -> None:
    pid_file = tmp_path / "pid"
    with patience():
        async with connect(fake(grandchild="escaped", pid_file=str(pid_file)), dispatcher=dispatcher) as connection:
            os.kill(connection.pid, signal.SIGKILL)
            assert await connection.wait_lost() == "the server was killed by SIGKILL"
        assert not marked(mark)


async def test_dead_in_the_handshake_though_an_escaped_grandchild_holds_stdout(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, tmp_path: Path, mark: str
) -> None:
    pid_file = tmp_path / "pid"
    with patience():
        with pytest.raises(ConnectionFailed) as caught:
            async with connect(
                fake(grandchild="escaped", pid_file=str(pid_file), exit_on="initialize"), dispatcher=dispatcher
            ):
                pytest.fail("it never lived")
        assert caught.value.reason == "the server exited with code 9: no licence"
        assert not marked(mark)


async def test_the_rest_of_stderr_is_read_before_the_reason_is_given(
    connect: Connector, patience: Patience, dispatcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_module, "LAST_READ", 15.0)
    drain, watch = StderrTail.drain, ServerProcess.watch
    exited = trio.Event()

    async def watched(self: ServerProcess) -> None:
        await watch(self)
        exited.set()

    async def late(self: StderrTail) -> None:
        """The machine is so busy that nobody has read yet when the exit is known."""
        await exited.wait()
        await drain(self)

    monkeypatch.setattr(ServerProcess, "watch", watched)
    monkeypatch.setattr(StderrTail, "drain", late)
    code = "import sys; sys.stderr.write('x' * 60_000 + '\\nlast words'); sys.exit(4)"
    entry = ServerEntry("x", command=sys.executable, args=("-I", "-S", "-c", code))
    with patience(), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry, dispatcher=dispatcher):
            pytest.fail("it never lived")
    assert caught.value.reason == "the server exited with code 4: last words"


async def test_dead_before_anybody_talks_to_it_though_an_escaped_grandchild_holds_stdout(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str, tmp_path: Path, mark: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    real = session_module.load_sdk

    async def load_late() -> None:
        """The SDK's import takes longer than the server lives."""
        await real()
        while not pid_file.exists() or marked(mark):
            await trio.sleep(0.01)

    monkeypatch.setattr(session_module, "load_sdk", load_late)
    pid_file = tmp_path / "pid"
    options = {"grandchild": "escaped", "pid_file": str(pid_file), "slow": 0, "exit_after_start": 4}
    with patience(), pytest.raises(ConnectionFailed) as caught:
        async with connect(fake(**options), dispatcher=dispatcher):
            pytest.fail("it never lived")
    assert caught.value.reason == "the server exited with code 4"
    assert not marked(mark)


async def test_a_server_that_closes_its_stdout_is_lost_though_it_lives(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(), dispatcher=dispatcher) as connection:
            assert await lost_with(connection, {"do": "close_stdout"}) == "the server closed its stdout"


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "EOF_GRACE", 0.1)
    monkeypatch.setattr(process_module, "TERM_GRACE", 0.1)


@pytest.mark.usefixtures("short_graces")
@pytest.mark.parametrize(
    "options",
    [
        {"ignore_eof": True},
        {"ignore_eof": True, "ignore_term": True},
        {"grandchild": "holds"},
        {"grandchild": "stubborn"},
        {"grandchild": "stubborn", "ignore_eof": True, "ignore_term": True},
    ],
)
async def test_nothing_outlives_the_connection(
    fake: Fake, connect: Connector, patience: Patience, mark: str, options: dict[str, Any]
) -> None:
    with patience():
        async with connect(fake(**options)) as connection:
            await connection.call_tool("pid", {}, None)
            assert marked(mark)
        while marked(mark):  # killed, but the kernel may still be tearing the grandchild down
            await trio.sleep(0.01)
