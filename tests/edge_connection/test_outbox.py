"""`Outbox`: each line once, whole and in order, whoever writes it and however full the pipe is; or taken back, never seen."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.edge.wire.outbox import Outbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes of a given size are Linux's")

PIPE = os.sysconf("SC_PAGE_SIZE")
"""Bytes that a pipe takes, at the least."""

EARLY = 16
"""Lines that wait which are written by whoever queues the last of them."""


def line(number: int, length: int = 10) -> bytes:
    return f"{number:06}".encode().ljust(length - 1, b".") + b"\n"


class Pipe:
    """A small pipe, an outbox before it, and what came out of it."""

    def __init__(self, limit: int = 10**6) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE)
        self.stream = trio.lowlevel.FdStream(writer)
        self.broke = 0
        self.outbox = Outbox(self.stream, limit, self._on_broken)
        self.got = b""

    def _on_broken(self) -> None:
        self.broke += 1

    def read(self, most: int = 10**6) -> bytes:
        """Take what is in the pipe now; all that came so far."""
        with suppress(BlockingIOError):
            self.got += os.read(self.reader, most)
        return self.got

    async def read_all(self) -> bytes:
        """Take what the writer still writes, until it writes no more."""
        before = -1
        while before < len(self.got) < 10**6:  # no test posts as much
            before = len(self.got)
            await trio.testing.wait_all_tasks_blocked()
            self.read()
        return self.got

    def stop_reading(self) -> None:
        os.close(self.reader)
        self.reader = -1


@asynccontextmanager
async def open_pipe(limit: int = 10**6) -> AsyncIterator[Pipe]:
    """With its writer."""
    pipe = Pipe(limit)
    try:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pipe.outbox.write)
                await trio.testing.wait_all_tasks_blocked()
                yield pipe
                nursery.cancel_scope.cancel()
    finally:
        await pipe.stream.aclose()
        if pipe.reader >= 0:
            os.close(pipe.reader)


async def test_lines_that_wait_are_written_in_the_step_in_which_they_are_enough() -> None:
    async with open_pipe() as pipe:
        for number in range(EARLY - 1):
            pipe.outbox.post(line(number))
        assert pipe.read() == b""
        pipe.outbox.post(line(EARLY - 1))
        everything = b"".join(map(line, range(EARLY)))
        assert pipe.read() == everything
        assert (pipe.outbox.size, pipe.outbox.written) == (0, len(everything))
        assert await pipe.read_all() == everything


async def test_what_an_early_write_leaves_is_written_though_nobody_posts_any_more() -> None:
    async with open_pipe() as pipe:
        lines = [line(number, 2 * PIPE) for number in range(EARLY)]
        for each in lines:
            pipe.outbox.post(each)
        assert pipe.outbox.written == PIPE
        assert await pipe.read_all() == b"".join(lines)


async def test_lines_posted_while_the_pipe_is_full_follow_the_line_that_was_begun() -> None:
    async with open_pipe() as pipe:
        lines = [line(0, 3 * PIPE), *map(line, range(1, 3 * EARLY))]
        for each in lines:
            pipe.outbox.post(each, alone=True)
        assert pipe.outbox.written == PIPE
        assert pipe.outbox.size == sum(map(len, lines[1:]))
        assert await pipe.read_all() == b"".join(lines)


async def test_a_line_that_could_go_alone_does_not_overtake_those_that_wait() -> None:
    async with open_pipe() as pipe:
        pipe.outbox.post(line(0))
        pipe.outbox.post(line(1), alone=True)
        assert await pipe.read_all() == line(0) + line(1)


async def test_a_line_begun_by_an_early_write_cannot_be_taken_back_and_one_after_it_can() -> None:
    async with open_pipe() as pipe:
        lines = [line(number, PIPE // 4) for number in range(EARLY)]
        begun = [pipe.outbox.post(each) for each in lines]
        later = pipe.outbox.post(line(EARLY))
        assert not any(map(pipe.outbox.take_back, begun))
        assert pipe.outbox.take_back(later)
        assert not pipe.outbox.take_back(later)
        assert pipe.outbox.size == 0
        assert await pipe.read_all() == b"".join(lines)
        assert not any(map(pipe.outbox.take_back, begun))


async def waiting_for_room(pipe: Pipe, nursery: trio.Nursery) -> trio.Event:
    """One who waits until the queue is below its limit; set when it is."""
    there = trio.Event()

    async def wait() -> None:
        await pipe.outbox.have_room()
        there.set()

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    return there


async def test_who_waits_for_room_goes_on_when_lines_are_begun_or_taken_back_and_when_it_ends() -> None:
    async with open_pipe(limit=100) as pipe, trio.open_nursery() as nursery:
        pipe.outbox.post(line(0, 3 * PIPE), alone=True)
        ticket = pipe.outbox.post(line(1, 100))
        one = await waiting_for_room(pipe, nursery)
        assert not one.is_set()
        pipe.outbox.take_back(ticket)
        await one.wait()

        pipe.outbox.post(line(2, 100))
        one = await waiting_for_room(pipe, nursery)
        assert not one.is_set()
        await pipe.read_all()  # the pipe was full: now the queue is begun
        await one.wait()

        pipe.outbox.post(line(3, 3 * PIPE), alone=True)
        pipe.outbox.post(line(4, 100))
        one = await waiting_for_room(pipe, nursery)
        assert not one.is_set()
        pipe.outbox.end()
        await one.wait()


async def test_of_those_who_wait_for_room_none_goes_on_while_there_is_none() -> None:
    async with open_pipe(limit=100) as pipe, trio.open_nursery() as nursery:
        pipe.outbox.post(line(0, 3 * PIPE), alone=True)
        small, _ = pipe.outbox.post(line(1, 50)), pipe.outbox.post(line(2, 100))
        one = await waiting_for_room(pipe, nursery)
        pipe.outbox.take_back(small)
        await trio.testing.wait_all_tasks_blocked()
        assert not one.is_set()
        await pipe.read_all()
        await one.wait()


async def test_a_server_that_reads_no_more_is_noticed_once_and_by_an_early_write_too() -> None:
    async with open_pipe(limit=100) as pipe:
        pipe.stop_reading()
        for number in range(EARLY):
            pipe.outbox.post(line(number))
        assert (pipe.outbox.broken, pipe.broke) == (True, 1)
        for number in range(2 * EARLY):
            pipe.outbox.post(line(number), alone=True)
        await pipe.outbox.have_room()
        assert (pipe.outbox.size, pipe.broke) == (0, 1)


async def test_posting_after_the_writer_was_cancelled_does_no_harm() -> None:
    pipe = Pipe()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.outbox.write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    pipe.outbox.post(line(0))
    await trio.testing.wait_all_tasks_blocked()
    assert pipe.read() == b""
    os.close(pipe.reader)
    await pipe.stream.aclose()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("post"), st.sampled_from([10, 10, 10, 1000, 5000])),
        st.tuples(st.just("post alone"), st.sampled_from([10, 10, 5000])),
        st.tuples(st.just("post many"), st.integers(2, 40)),
        st.tuples(st.just("take back"), st.integers(0, 100)),
        st.tuples(st.just("read"), st.sampled_from([1, 500, 10_000])),
        st.tuples(st.just("let the writer run"), st.just(0)),
    ),
    max_size=40,
)


@settings(deadline=None, derandomize=True, database=None, max_examples=150)
@given(STEPS)
def test_whatever_happens_in_whatever_order_the_bytes_are_those_of_the_lines_not_taken_back(
    steps: list[tuple[str, int]],
) -> None:
    trio.run(played, steps)


async def played(steps: list[tuple[str, int]]) -> None:
    lines: dict[int, bytes] = {}  # by ticket
    async with open_pipe() as pipe:
        outbox = pipe.outbox

        def post(length: int, alone: bool = False) -> None:
            each = line(len(lines), length)
            lines[outbox.post(each, alone=alone)] = each

        for what, how in steps:
            if what == "post many":
                for _ in range(how):
                    post(10)
            elif what.startswith("post"):
                post(how, alone=what == "post alone")
            elif what == "take back" and lines:
                ticket = [*lines][-1 - how % len(lines)]
                size, known = outbox.size, lines[ticket]
                if outbox.take_back(ticket):
                    assert outbox.size == size - len(known)
                    del lines[ticket]
            elif what == "read":
                pipe.read(how)
            else:
                await trio.testing.wait_all_tasks_blocked()
            assert 0 <= outbox.size <= sum(map(len, lines.values())) - outbox.written
        assert await pipe.read_all() == b"".join(lines.values())
        assert (outbox.size, outbox.written) == (0, len(pipe.got))
