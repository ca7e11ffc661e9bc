"""What a server can do wrong over stdio, row by row: what its caller sees and in what time, and that a neighbour does not.

The rows are those of a study of what hosts get wrong; each was seen to hang, leak, deafen or slow down some host.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import CallTimeout, ServerDied, ServerUnavailable

from ..processes import start_of
from .conftest import FOR_ONE_LIFE, PATIENCE, SetUp, deed, faulty


async def test_one_that_cannot_be_started_is_named_with_what_is_wrong_in_its_entry(
    on_stage: SetUp, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    servers = {
        "absent": {"command": "no-such-command"},
        "gone": {"command": "/no/such/command"},
        "plain": {"command": str(plain)},
        "nowhere": {**faulty(), "cwd": "/no/such/folder"},
        "a-file": {**faulty(), "cwd": str(plain)},
    }
    errors = {
        "absent": "command: 'no-such-command' is not found in PATH",
        "gone": "command: '/no/such/command' does not exist",
        "plain": f"command: {str(plain)!r} is not executable",
        "nowhere": "cwd: '/no/such/folder' does not exist",
        "a-file": f"cwd: {str(plain)!r} is not a folder",
    }
    async with on_stage(backoff=FOR_ONE_LIFE, **servers) as stage:
        for name, error in errors.items():
            state = await stage.until(lambda state: state.phase == "parked", name)
            assert (state.futile, state.restarts) == (True, 0)
            assert (state.connected, state.pid, state.error, state.stderr_tail) == (False, None, error, "")
            with pytest.raises(ServerUnavailable) as refused:
                await stage.call(server=name)
            assert str(refused.value) == (
                f"server {name!r} is unavailable: it is parked: {error}; mend that and revive it"
            )


@pytest.mark.parametrize("moment", ["start", "initialize", "tools/list"])
async def test_one_that_exits_before_it_is_ready_is_shown_with_its_own_words(on_stage: SetUp, moment: str) -> None:
    words = "ModuleNotFoundError: No module named 'x'"
    deeds = [deed("say", text="Traceback (most recent call last):"), deed("say", text=words), deed("leave", code=3)]
    async with on_stage(faulty(**{moment: deeds}), backoff=FOR_ONE_LIFE) as stage:
        # A call made while it starts for the first time waits for that, and no longer.
        with pytest.raises(ServerUnavailable) as refused:
            await stage.call()
        reason = f"the server exited with code 3: {words}"
        assert reason in refused.value.reason
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert (state.error, state.connected, state.pid) == (reason, False, None)
        assert state.stderr_tail.splitlines() == ["Traceback (most recent call last):", words]
        assert state.next_retry_at is not None


@pytest.mark.parametrize(
    ("deeds", "missing", "seconds"),
    [
        ({"start": deed("hang")}, "the handshake", 0.8),
        ({"server/discover": deed("hang")}, "the handshake", 0.8),
        ({"initialize": [deed("put", text='{"jsonrpc": "2.0", "id": 1, "resu'), deed("hang")]}, "the handshake", 0.8),
        # These two must get so far, also on a busy machine.
        ({"initialize": [deed("say", text="loading"), deed("deaf")]}, "the handshake", 2.5),
        ({"tools/list": deed("hang")}, "its tool list", 2.5),
    ],
)
async def test_one_that_hangs_before_it_is_ready_is_given_up_in_its_time(
    on_stage: SetUp, deeds: dict[str, object], missing: str, seconds: float
) -> None:
    bad = {**faulty(**deeds), "connectTimeout": seconds}
    async with on_stage(bad, backoff=FOR_ONE_LIFE) as stage:
        with pytest.raises(ServerUnavailable):  # it waits for a first start, and as long as that
            await stage.call()
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert state.error is not None
        assert state.error.startswith(f"no answer within {seconds} s (it waited for {missing})")
        assert state.stderr_tail == ("loading\n" if "loading" in str(deeds) else "")
        assert stage.project.processes() == {stage.pid}


async def test_a_call_to_one_that_hangs_in_its_handshake_ends_by_its_own_deadline(on_stage: SetUp) -> None:
    async with on_stage(faulty(initialize=deed("hang"))) as stage:
        began = trio.current_time()
        with pytest.raises(CallTimeout, match=r"did not answer within 0\.3 s"):
            await stage.call(timeout=0.3)
        assert trio.current_time() >= began + 0.3
        assert (stage.state().phase, stage.state().error, stage.state().connected) == ("starting", None, False)


async def test_one_that_exits_at_an_unknown_method_is_met_in_its_own_era_and_that_is_no_crash(on_stage: SetUp) -> None:
    bad = faulty(**{"server/discover": [deed("say", text="unknown method"), deed("leave", code=1)]})
    async with on_stage(bad) as stage:
        await stage.ready()
        assert (stage.state().restarts, stage.state().error, stage.state().protocol_version) == (0, None, "2025-11-25")
        assert await stage.call() == "{}"


async def test_so_is_one_that_was_so_slow_to_start_that_initialize_was_sent_too(on_stage: SetUp) -> None:
    bad = faulty(**{"server/discover": [deed("say", text="unknown method"), deed("leave", code=1, after=2.5)]})
    async with on_stage(bad) as stage:
        await stage.ready()
        assert (stage.state().restarts, stage.state().error, stage.state().protocol_version) == (0, None, "2025-11-25")


async def test_lines_that_are_no_messages_are_passed_over(on_stage: SetUp) -> None:
    noise = 'starting\n\n[1, 2]\n{"jsonrpc": "2.0"}\nnull\n{"id": 1}\n\x00\xff\n{"jsonrpc": "2.0", "id": 1, "resu\n'
    bad = faulty(start=deed("put", text=noise), initialize=deed("put", text=noise), listed=deed("put", text=noise))
    async with on_stage(bad) as stage:
        await stage.ready()
        for _ in range(3):
            assert await stage.call("do", do="put", text=noise, times=100) == "done"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


async def test_half_a_line_costs_the_call_whose_answer_is_glued_to_it_and_no_other(on_stage: SetUp) -> None:
    async with on_stage(faulty()) as stage:
        await stage.ready()
        with pytest.raises(CallTimeout) as late:
            await stage.call("do", timeout=0.4, do="put", text="half a line ")
        assert str(late.value) == "tool 'bad/do' did not answer within 0.4 s"
        assert await stage.call() == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


async def test_a_byte_that_is_no_utf8_deafens_nobody(on_stage: SetUp) -> None:
    answer = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "caf\xe9"}]}}\n'
    async with on_stage(faulty()) as stage:
        await stage.ready()
        for _ in range(3):
            assert await stage.call("do", do="answer_with", text=answer) == "caf�"
            assert await stage.call("do", do="put", text="\xff\xfe\n") == "done"
        assert await stage.call() == "{}"


async def test_a_very_long_line_arrives_whole_and_one_over_the_limit_fails_its_call_alone(on_stage: SetUp) -> None:
    async with on_stage(faulty()) as stage:
        await stage.ready()
        assert len(await stage.call("do", do="answer_long", size=50 << 20)) == 50 << 20
        result = await stage.host.call_tool("bad", "do", deed("answer_long", size=80 << 20), timeout=PATIENCE)
        assert result.is_error
        assert "its response is longer than 67108864 bytes" in result.content[0].text
        assert await stage.call() == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


def memory() -> int:
    """The bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def test_a_line_that_never_ends_fails_its_call_and_is_not_kept(on_stage: SetUp) -> None:
    async with on_stage(faulty()) as stage:
        await stage.ready()
        before = memory()
        deeds = deed("answer_long", size=320 << 20, ends=False)
        result = await stage.host.call_tool("bad", "do", deeds, timeout=PATIENCE)
        assert "its response is longer than 67108864 bytes" in result.content[0].text
        await stage.has_said("written")
        assert memory() - before < 160 << 20
        with pytest.raises(CallTimeout):
            await stage.call(timeout=0.1)


async def test_a_flood_on_stderr_is_drained_and_its_end_is_kept(on_stage: SetUp) -> None:
    async with on_stage(faulty(), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        assert await stage.call("do", do="flood", size=100 << 20) == "done"
        with pytest.raises(ServerDied) as died:
            await stage.call("do", do="die")
        assert died.value.reason.startswith("the server was killed by SIGKILL: eee")
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert 0 < len(state.stderr_tail) <= 64 * 1024
        assert set(state.stderr_tail) == {"e"}


async def test_the_last_words_before_a_death_are_its_reason(on_stage: SetUp) -> None:
    bad = faulty(listed=[deed("flood", size=1 << 20), deed("say", text="\nout of memory")])
    async with on_stage(bad, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        with pytest.raises(ServerDied, match=r"exited with code 1: out of memory$"):
            await stage.call("do", do="leave", code=1)
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert state.stderr_tail == "out of memory\n", "a line that lost its beginning is not shown"


async def test_a_kill_ends_every_call_in_flight_at_once_and_the_server_comes_back(on_stage: SetUp) -> None:
    async with on_stage(faulty(listed=deed("say", text="I am well"))) as stage:
        await stage.ready()
        old = stage.state().pid
        assert old is not None
        errors: list[ServerDied] = []

        async def call() -> None:
            with pytest.raises(ServerDied) as died:
                await stage.call("silence", timeout=600)
            errors.append(died.value)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(call)
                await stage.in_flight(50)
                os.kill(old, signal.SIGKILL)
        expected = "server 'bad' died during the call: the server was killed by SIGKILL: I am well"
        assert {str(error) for error in errors} == {expected}
        state = await stage.replaced(old)
        assert (state.restarts, state.error, state.list_state) == (1, None, "current")
        assert await stage.call("pid") == str(state.pid)


async def test_a_kill_when_idle_is_noticed_without_a_call(on_stage: SetUp) -> None:
    async with on_stage(faulty(), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        pid = stage.state().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert (state.error, state.connected, state.pid) == ("the server was killed by SIGKILL", False, None)
        assert state.list_state == "stale"
        assert len(state.tools) == 5
        assert not os.path.exists(f"/proc/{pid}"), "not even a zombie is left"
        with pytest.raises(ServerUnavailable):
            await stage.call()


async def test_a_kill_is_noticed_though_a_grandchild_holds_the_pipes_open(on_stage: SetUp) -> None:
    bad = faulty(start=deed("children", count=2, session=True))
    async with on_stage(bad, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        pid = stage.state().pid
        assert pid is not None
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(ServerDied, match="was killed by SIGKILL"):
                    await stage.call("silence", timeout=600)

            nursery.start_soon(call)
            await stage.in_flight()
            os.kill(pid, signal.SIGKILL)
            with trio.fail_after(PATIENCE):
                while nursery.child_tasks:
                    await trio.sleep(0.001)
        await stage.until(lambda state: state.phase == "backing_off")
        assert stage.project.processes() == {stage.pid}


async def test_a_kill_is_noticed_though_a_stranger_holds_its_stdout_open(on_stage: SetUp) -> None:
    async with on_stage(faulty(), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        stranger = os.open(f"/proc/{stage.state().pid}/fd/1", os.O_WRONLY)
        try:
            with pytest.raises(ServerDied, match="was killed by SIGKILL"):
                await stage.call("do", do="die", timeout=PATIENCE)
            await stage.until(lambda state: state.phase == "backing_off")
        finally:
            os.close(stranger)


async def test_calls_to_one_that_stops_reading_end_by_their_own_deadlines(on_stage: SetUp) -> None:
    async with on_stage(faulty()) as stage:
        await stage.ready()
        ended: list[float] = []

        async def call(timeout: float) -> None:
            began = trio.current_time()
            with pytest.raises(CallTimeout) as late:
                await stage.call("echo", timeout=timeout, much="x" * 500_000)
            assert late.value.seconds == pytest.approx(timeout, abs=0.001)
            assert trio.current_time() >= began + timeout
            ended.append(timeout)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                with pytest.raises(CallTimeout):
                    await stage.call("do", timeout=0.1, do="hang")
                for number in range(20):  # far more than the pipe and our queue hold
                    nursery.start_soon(call, 0.2 + 0.02 * number)
        assert len(ended) == 20
        state = await stage.host.restart("bad")
        assert state.model.server("bad") is not None
        await stage.ready()
        assert await stage.call() == "{}"


@pytest.mark.parametrize("deeds", [["eof"], ["eof", "start"]], ids=["the end of stdin", "and SIGTERM"])
async def test_one_that_ignores_its_stop_is_killed_in_time(on_stage: SetUp, deeds: list[str]) -> None:
    does = {"eof": deed("hang"), "start": deed("ignore")}
    async with on_stage(faulty(**{moment: does[moment] for moment in deeds})) as stage:
        await stage.ready()
        pid = stage.state().pid
        await stage.host.restart("bad")
        state = await stage.replaced(pid)
        assert pid is not None
        assert start_of(pid) is None
        assert (state.restarts, state.error) == (0, None)
        await stage.host.server_set_enabled("bad", False)
        await stage.until(lambda state: state.phase == "disabled")
        assert stage.project.processes() == {stage.pid}
        await stage.host.server_set_enabled("bad", True)
        await stage.ready()
        closing = trio.current_time()
    assert trio.current_time() < closing + 10.0, "the whole budget of a close"


@pytest.mark.parametrize("where", [{}, {"group": True}, {"session": True}], ids=["at home", "group", "session"])
async def test_a_grandchild_does_not_outlive_a_server_that_left_when_asked_to(
    on_stage: SetUp, where: dict[str, Any]
) -> None:
    bad = faulty(start=deed("children", quiet=True, **where), eof=deed("leave"))
    async with on_stage(bad) as stage:
        await stage.ready()
        await stage.project.count(3)
        await stage.host.server_set_enabled("bad", False)
        await stage.until(lambda state: state.phase == "disabled")
        assert stage.project.processes() == {stage.pid}
        await stage.host.server_set_enabled("bad", True)
        await stage.ready()


async def test_an_answer_without_a_result_is_an_error_and_one_without_an_id_a_timeout(on_stage: SetUp) -> None:
    null = '{"jsonrpc": "2.0", "id": ID, "result": null}\n'
    nobody = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "oops"}}\n'
    async with on_stage(faulty()) as stage:
        await stage.ready()
        result = await stage.host.call_tool("bad", "do", deed("answer_with", text=null), timeout=PATIENCE)
        assert result.is_error
        assert "invalid response: its result is null, not an object" in result.content[0].text
        began = trio.current_time()
        with pytest.raises(CallTimeout, match=r"did not answer within 0\.3 s"):
            await stage.call("do", timeout=0.3, do="answer_with", text=nobody)
        assert trio.current_time() >= began + 0.3
        assert await stage.call() == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


async def test_twenty_thousand_list_changes_a_second_cost_a_few_listings(on_stage: SetUp) -> None:
    async with on_stage(faulty()) as stage:
        await stage.ready()
        before = int(await stage.call("asked"))
        began = trio.current_time()
        assert await stage.call("do", do="storm", count=30_000, seconds=1.5) == "done"
        await stage.has_said("over")
        # At most one for each second that they go on, and one when they have settled.
        assert 1 <= int(await stage.call("asked")) - before <= trio.current_time() - began + 1
        assert (stage.state().phase, stage.state().restarts, stage.state().list_state) == ("ready", 0, "current")
