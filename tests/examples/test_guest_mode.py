"""Trio as a guest of asyncio: results, errors and cancellation cross both ways, and nothing is left on either side."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import ConfigError, Host, UnknownTool, native_tool, open_host
from trio_guest import Guest, in_asyncio

from .conftest import EXAMPLES, PATIENCE, Project


def in_a_loop(function: Callable[[], Awaitable[None]]) -> None:
    """Run it in asyncio; nothing it leaves behind is overlooked."""
    told: list[dict[str, Any]] = []

    async def whole() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with asyncio.timeout(PATIENCE):
            await function()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())
    assert told == []


@asynccontextmanager
async def context(log: list[str]) -> AsyncIterator[list[str]]:
    """A trio context that takes its time to leave, as a host does."""
    await trio.lowlevel.checkpoint()
    try:
        yield log
        log.append("body left")
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.01)
        log.append("closed")


def text(result: Any) -> str:
    return str(result.content[0].text)


def test_the_example_runs() -> None:
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "guest_mode.py"],
        cwd=EXAMPLES,
        env={**os.environ, "PATH": here},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    tools, results, given_up = done.stdout.splitlines()
    assert tools.startswith("address, mcp__clock__between")
    assert results.split(" | ")[1] in ("127.0.0.1", "::1")
    assert given_up.startswith("waited long enough")


def test_calls_of_asyncio_tasks_run_at_the_same_time(project: Project) -> None:
    async def program() -> None:
        async with Guest(open_host(project.path)) as guest:
            host: Host = guest.value
            assert await guest.run(host.ready, timeout=PATIENCE)
            both = (guest.run(host.call, "mcp__one__meet") for _ in range(2))
            assert [text(result) for result in await asyncio.gather(*both)] == ["met", "met"]
            assert host.snapshot().model.server("two").phase == "ready"  # read without the bridge

    in_a_loop(program)
    assert project.processes() == []


def test_a_task_that_is_cancelled_cancels_its_call_and_the_host_goes_on(project: Project) -> None:
    async def program() -> None:
        async with Guest(open_host(project.path)) as guest:
            host: Host = guest.value
            assert await guest.run(host.ready, timeout=PATIENCE)
            task = asyncio.create_task(guest.run(host.call, "mcp__one__hang"))
            await guest.run(project.hangs)
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await task
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await guest.run(host.call, "mcp__two__hang")
            assert text(await guest.run(host.call, "mcp__one__cancelled")) == "hang"
            assert text(await guest.run(host.call, "mcp__two__cancelled")) == "hang"

    in_a_loop(program)


def test_a_call_that_is_given_up_in_trio_cancels_its_asyncio_function() -> None:
    log: list[str] = []

    async def sleeps() -> None:
        log.append("began")
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append("cancelled")
            await asyncio.sleep(0)
            log.append("cleared up")
            raise

    async def gives_up() -> None:
        with trio.move_on_after(0.05):
            await in_asyncio(sleeps)
        log.append("went on")

    async def program() -> None:
        async with Guest(context([])) as guest:
            await guest.run(gives_up)

    in_a_loop(program)
    assert log == ["began", "cancelled", "cleared up", "went on"]


def test_errors_cross_in_both_directions(project: Project) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise LookupError("in asyncio")

    @native_tool
    async def broken() -> None:
        """Fails in asyncio."""
        await in_asyncio(fails)

    async def is_cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(10)

    async def program() -> None:
        async with Guest(open_host(project.path, native_tools=[broken])) as guest:
            host: Host = guest.value
            with pytest.raises(UnknownTool):
                await guest.run(host.call, "no_such_tool")
            with pytest.raises(LookupError, match="in asyncio"):
                await guest.run(in_asyncio, fails)
            with pytest.raises(RuntimeError, match="the asyncio task was cancelled"):
                await guest.run(in_asyncio, is_cancelled)
            result = await guest.run(host.call, "broken")
            assert result.is_error
            assert "in asyncio" in text(result)

    in_a_loop(program)


def test_an_error_in_the_midst_of_being_cancelled_is_not_lost() -> None:
    began = asyncio.Event()

    async def trio_side() -> None:
        try:
            began.set()
            await trio.sleep_forever()
        finally:
            raise OSError("while clearing up in trio")

    async def asyncio_side() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            raise OSError("while clearing up in asyncio")

    async def gives_up() -> None:
        with trio.move_on_after(0.05):
            await in_asyncio(asyncio_side)

    async def program() -> None:
        async with Guest(context([])) as guest:
            task = asyncio.create_task(guest.run(trio_side))
            await began.wait()
            task.cancel()
            with pytest.raises(OSError, match="in trio"):
                await task
            with pytest.raises(OSError, match="in asyncio"):
                await guest.run(gives_up)

    in_a_loop(program)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    opened: list[bool] = []

    async def program() -> None:
        with pytest.raises(ConfigError, match=r"missing\.json"):
            async with Guest(open_host(tmp_path / "missing.json")):
                opened.append(True)

    in_a_loop(program)
    assert opened == []


def test_what_the_body_raises_leaves_as_it_is_and_the_context_is_left_in_order() -> None:
    log: list[str] = []

    async def program() -> None:
        with pytest.raises(LookupError, match="mine"):
            async with Guest(context(log)):
                raise LookupError("mine")

    in_a_loop(program)
    assert log == ["body left", "closed"]


def test_what_goes_wrong_while_the_context_is_left_is_raised() -> None:
    @asynccontextmanager
    async def breaks() -> AsyncIterator[str]:
        yield "value"
        await trio.lowlevel.checkpoint()
        raise OSError("while closing")

    async def program() -> None:
        with pytest.raises(OSError, match="while closing"):
            async with Guest(breaks()) as guest:
                assert guest.value == "value"

    in_a_loop(program)


def test_calls_in_flight_end_when_trio_does_and_none_is_taken_afterwards() -> None:
    async def program() -> None:
        guest = Guest(context([]))
        async with guest:
            task = asyncio.create_task(guest.run(trio.sleep_forever))
            await guest.run(trio.lowlevel.checkpoint)
        with pytest.raises(RuntimeError, match="trio ended before the call did"):
            await task
        with pytest.raises(RuntimeError, match="trio has ended"):
            await guest.run(trio.sleep_forever)

    in_a_loop(program)


@asynccontextmanager
async def breaking(when: trio.Event) -> AsyncIterator[None]:
    """A trio context whose core breaks by itself, as a host's may."""

    async def core() -> None:
        await when.wait()
        raise ValueError("the core broke")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(core)
        yield


def test_all_that_waits_is_told_at_once_when_trio_ends_by_itself() -> None:
    told: list[str] = []

    async def program() -> None:
        when = trio.Event()

        async def pending(guest: Guest[None]) -> None:
            try:
                await guest.run(trio.sleep_forever)
            except RuntimeError as error:
                told.append(str(error))

        with pytest.raises(ExceptionGroup) as caught:
            async with Guest(breaking(when)) as guest:
                call = asyncio.create_task(pending(guest))
                await asyncio.sleep(0.01)
                when.set()
                try:
                    await asyncio.sleep(10 * PATIENCE)
                finally:
                    told.append("body")
        assert [str(each) for each in caught.value.exceptions] == ["the core broke"]
        await call
        with pytest.raises(RuntimeError, match="trio has ended"):
            await guest.run(trio.sleep, 0)
        await asyncio.sleep(0)  # nothing of the cancellation is left
        this = asyncio.current_task()
        assert this is not None
        assert this.cancelling() == 0

    in_a_loop(program)
    assert sorted(told) == ["body", "trio ended before the call did"]


def test_in_a_task_of_its_own_too_the_reason_is_what_it_ends_with() -> None:
    async def program() -> None:
        when = trio.Event()

        async def inner() -> None:
            async with Guest(breaking(when)):
                when.set()
                await asyncio.sleep(10 * PATIENCE)

        task = asyncio.create_task(inner())
        with pytest.raises(ExceptionGroup):
            await task
        assert not task.cancelled()

    in_a_loop(program)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("when", ["opening", "working", "closing"])
def test_cancelled_at_any_time_it_waits_for_trio(project: Project, when: str, times: int) -> None:
    log: list[str] = []
    reached = asyncio.Event()

    @asynccontextmanager
    async def whole() -> AsyncIterator[Host]:
        async with context(log), open_host(project.path) as host:
            if when == "opening":
                reached.set()
                await trio.sleep_forever()
            await host.ready(timeout=PATIENCE)
            yield host

    async def user() -> None:
        async with Guest(whole()):
            if when == "working":
                reached.set()
                await asyncio.sleep(10)
            reached.set()

    async def program() -> None:
        task = asyncio.create_task(user())
        await reached.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log[-1] == "closed"
        assert project.processes() == []

    in_a_loop(program)


def test_one_guest_at_a_time_and_one_after_another() -> None:
    async def program() -> None:
        for _ in range(2):
            async with Guest(context([])) as guest:
                with pytest.raises(RuntimeError, match="run"):
                    await Guest(context([])).__aenter__()
                assert await guest.run(trio.to_thread.run_sync, lambda: 5) == 5

    in_a_loop(program)


def test_context_variables_are_those_of_the_caller() -> None:
    variable = contextvars.ContextVar("variable", default="none")

    async def reads() -> str:
        return variable.get() + await in_asyncio(also)

    async def also() -> str:
        return variable.get()

    async def program() -> None:
        async with Guest(context([])) as guest:
            variable.set("mine")
            assert await guest.run(reads) == "minemine"

    in_a_loop(program)


PROGRAM = """
import asyncio, sys
from playbill.actors import open_host
from trio_guest import Guest

async def main():
    async with Guest(open_host(sys.argv[1])) as guest:
        await guest.run(guest.value.call, "mcp__one__hang")

try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


async def test_ctrl_c_in_a_call_ends_it_in_order(project: Project) -> None:
    with trio.fail_after(PATIENCE):
        process = await trio.lowlevel.open_process(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM), str(project.path)],
            cwd=EXAMPLES,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        await project.hangs(process)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        assert process.stdout is not None
        assert process.stderr is not None
        async with process.stdout, process.stderr:
            assert await process.stderr.receive_some() == b""
            assert await process.stdout.receive_some() == b""
    assert project.processes() == []
