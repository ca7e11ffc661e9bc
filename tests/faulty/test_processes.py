"""What a server's processes can do wrong, with a neighbour whose calls go on, and nothing left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import CallTimeout, ServerDied, ServerUnavailable
from playbill.supervision import Backoff, Intensity

from ..processes import start_of
from .conftest import FOR_ONE_LIFE, PATIENCE, SetUp, deed, faulty

BYSTANDER = """
import os, signal, sys, time
def note(number, frame):
    os.write(1, b"%d\\n" % number)
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, note)
for _ in range(2):
    if os.fork() == 0:
        break
os.write(2, b".")
while True:
    time.sleep(60)
"""


class Bystander:
    """A group of three processes that is none of a host's business: it notes every signal that it gets."""

    def __init__(self, folder: Path) -> None:
        self.notes = folder / "signals"
        with self.notes.open("wb") as notes:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BYSTANDER],
                stdout=notes,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        assert self.process.stderr is not None
        up = b""
        while len(up) < 3:
            up += self.process.stderr.read(1)

    def members(self) -> dict[int, str]:
        """The processes of its group that live, and the state of each."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.process.pid:
                found[int(folder.name)] = fields[0]
        return found

    def untouched(self) -> bool:
        """Whether no signal came, nor one of those that cannot be noted: all live, and none is stopped."""
        states = list(self.members().values())
        return self.notes.read_bytes() == b"" and len(states) == 3 and not set(states) & set("TtZX")


@pytest.fixture
def bystander(tmp_path: Path) -> Iterator[Bystander]:
    bystander = Bystander(tmp_path)
    yield bystander
    os.killpg(bystander.process.pid, signal.SIGKILL)
    bystander.process.wait()
    assert bystander.process.stderr is not None
    bystander.process.stderr.close()


@pytest.mark.parametrize("where", [{}, {"group": True}, {"session": True}], ids=["at home", "group", "session"])
async def test_a_leader_that_exits_takes_its_stubborn_grandchildren_along_and_nobody_else(
    on_stage: SetUp, bystander: Bystander, where: dict[str, Any]
) -> None:
    # A neighbour's grandchildren do what those of the bad one do, and must not be taken for them.
    kept = faulty(start=deed("children", count=2, **where))
    async with on_stage(bad=faulty(), backoff=FOR_ONE_LIFE, kept=kept) as stage:
        await stage.ready("bad", "kept")
        mine = stage.project.processes() - {stage.state().pid}
        assert await stage.call("do", do="children", count=2, **where) == "done"
        assert await stage.call("do", do="children", quiet=True, nameless=True, **where) == "done"
        with pytest.raises(ServerDied) as died:
            await stage.call("do", do="leave", code=0, timeout=PATIENCE)
        assert died.value.reason == "the server exited with code 0"
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert (state.error, state.stderr_tail) == ("the server exited with code 0", "")
        assert stage.project.processes() == mine
        assert (stage.state("kept").restarts, stage.state("kept").phase) == (0, "ready")
    assert bystander.untouched()


@pytest.mark.parametrize("end", ["leave", "die", "stop"])
async def test_children_that_hold_all_its_files_hold_up_neither_its_end_nor_its_successor(
    on_stage: SetUp, end: str
) -> None:
    async with on_stage(faulty()) as stage:
        await stage.ready()
        pid = stage.state().pid
        assert await stage.call("do", do="children", count=3, session=True) == "done"
        if end == "stop":
            await stage.host.restart("bad")
        else:
            with pytest.raises(ServerDied):
                await stage.call("do", do=end)
        state = await stage.replaced(pid)
        assert stage.project.processes() == {stage.pid, state.pid}, "never two copies"


@pytest.mark.parametrize("session", [False, True], ids=["at home", "sessions"])
@pytest.mark.parametrize("end", ["die", "stop"])
async def test_a_bomb_of_twenty_children_is_gone_with_its_server(on_stage: SetUp, session: bool, end: str) -> None:
    bad = faulty(start=deed("children", count=20, session=session))
    async with on_stage(bad, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        assert len(stage.project.processes()) == 22
        if end == "die":
            with pytest.raises(ServerDied):
                await stage.call("do", do="die")
            await stage.until(lambda state: state.phase == "backing_off")
        else:
            await stage.host.server_set_enabled("bad", False)
            await stage.until(lambda state: state.phase == "disabled")
        assert stage.project.processes() == {stage.pid}


async def test_one_that_exits_as_soon_as_it_is_ready_is_parked_with_its_reason(on_stage: SetUp) -> None:
    bad = faulty(start=deed("say", text="nothing to do"), listed=deed("leave_soon", seconds=0.001))
    async with on_stage(bad, intensity=Intensity(restarts=2, window=600.0, then="park", park_retry=None)) as stage:
        state = await stage.until(lambda state: state.phase == "parked")
        assert state.error is not None
        assert state.error.startswith("the server exited with code 0: nothing to do")
        assert (state.restarts, state.connected, state.next_retry_at) == (2, False, None)
        assert state.stderr_tail == "nothing to do\n"
        with pytest.raises(ServerUnavailable, match="it is parked after 2 restarts: the server exited with code 0"):
            await stage.call()
        await stage.goes_on(20)
        assert stage.project.processes() == {stage.pid}
        await stage.host.revive("bad")
        assert (await stage.until(lambda state: state.phase == "parked")).restarts == 2


async def test_one_that_flaps_every_fifty_milliseconds_is_started_more_and_more_seldom(on_stage: SetUp) -> None:
    backoff = Backoff(base=0.1, max=10.0, jitter=0.0, reset_after=600.0)
    intensity = Intensity(restarts=3, window=600.0, then="park", park_retry=None)
    began = trio.current_time()
    async with on_stage(
        faulty(listed=deed("leave_soon", seconds=0.05, code=4)), backoff=backoff, intensity=intensity
    ) as stage:
        calls: list[type[Exception]] = []

        async def keep_trying() -> None:
            while True:
                try:
                    await stage.call("silence", timeout=PATIENCE)
                except (ServerDied, ServerUnavailable) as error:
                    calls.append(type(error))
                await trio.sleep(0.001)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_trying)
            state = await stage.until(lambda state: state.phase == "parked")
            nursery.cancel_scope.cancel()
        # Three restarts: after 0.1, 0.2 and 0.4 s, though it was ready each time.
        assert trio.current_time() >= began + 0.7
        assert (state.restarts, state.error) == (3, "the server exited with code 4")
        assert set(calls) == {ServerDied, ServerUnavailable}


@pytest.mark.parametrize("leader", ["waits", "leaves"])
@pytest.mark.parametrize("how", ["group", "session"])
async def test_one_that_goes_on_in_another_group_is_still_its_own(on_stage: SetUp, how: str, leader: str) -> None:
    bad = faulty(start=deed("move", how=how, leader=leader))
    async with on_stage(bad, backoff=FOR_ONE_LIFE) as stage:
        if leader == "waits":
            await stage.ready()
            pid = stage.state().pid
            assert pid is not None
            server = int(await stage.call("pid"))
            assert os.getpgid(server) != pid
            async with trio.open_nursery() as nursery:

                async def call() -> None:
                    with pytest.raises(ServerDied, match="was killed by SIGKILL"):
                        await stage.call("silence", timeout=600)

                nursery.start_soon(call)
                await stage.in_flight()
                os.kill(pid, signal.SIGKILL)
        state = await stage.until(lambda state: state.phase == "backing_off")
        how_it_ended = "exited with code 0" if leader == "leaves" else "was killed by SIGKILL"
        assert state.error == f"the server {how_it_ended}"
        await stage.project.count(3)
        assert stage.project.processes() == {stage.pid}


async def test_one_that_goes_on_in_another_group_is_ended_with_the_host(on_stage: SetUp) -> None:
    servers = {how: faulty(start=deed("move", how=how), eof=deed("hang")) for how in ("group", "session")}
    async with on_stage(**servers) as stage:
        await stage.ready("group", "session")
        assert len(stage.project.processes()) == 5


async def test_one_that_falls_silent_when_it_was_idle_costs_each_call_its_deadline_and_a_restart_mends_it(
    on_stage: SetUp,
) -> None:
    async with on_stage(faulty(idle_seconds=0.2, idle=[deed("say", text="asleep"), deed("deaf")])) as stage:
        await stage.ready()
        await stage.has_said("asleep")
        for _ in range(2):
            began = trio.current_time()
            with pytest.raises(CallTimeout, match=r"^tool 'bad/echo' did not answer within 0\.3 s$"):
                await stage.call(timeout=0.3)
            assert trio.current_time() >= began + 0.3
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)
        await stage.host.restart("bad")
        await stage.until(lambda state: state.generation > 1 and state.phase == "ready")
        assert await stage.call() == "{}"


async def test_one_that_exits_when_it_was_idle_is_replaced_before_anybody_calls(on_stage: SetUp) -> None:
    async with on_stage(faulty(idle_seconds=0.2, idle=[deed("say", text="idle"), deed("leave", code=0)])) as stage:
        await stage.ready()
        pid = stage.state().pid
        state = await stage.until(lambda state: state.error is not None)
        assert state.error == "the server exited with code 0: idle"
        state = await stage.replaced(pid)
        assert (state.restarts >= 1, state.error) == (True, None)


async def test_one_that_ignores_every_signal_it_can_is_replaced_and_never_twice_there(on_stage: SetUp) -> None:
    every = [each.name for each in signal.Signals if each not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)]
    async with on_stage(faulty(start=deed("ignore", signals=every), eof=deed("hang"))) as stage:
        await stage.ready()
        for _ in range(3):
            pid = stage.state().pid
            assert pid is not None
            await stage.host.restart("bad")
            with trio.fail_after(PATIENCE):
                while start_of(pid) is not None:
                    assert len(stage.project.enrolled()) <= 2
                    await trio.sleep(0.001)
            await stage.replaced(pid)
        assert stage.state().restarts == 0


async def test_one_that_closes_all_its_files_is_lost_and_ended(on_stage: SetUp) -> None:
    async with on_stage(faulty(), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        with pytest.raises(ServerDied, match=r"the server closed its std(in|out)$"):
            await stage.call("do", do="close_all", timeout=PATIENCE)
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert (state.connected, state.pid) == (False, None)
        assert stage.project.processes() == {stage.pid}
