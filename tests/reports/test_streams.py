"""What servers write beside the protocol, on stderr and on stdout."""

from __future__ import annotations

import pytest
import trio
from playbill.actors import CallTimeout, open_host

from .conftest import PATIENCE, Project, fake, said, small


async def test_b105_a_dump_on_stderr_for_each_unknown_message_blocks_nothing_in_any_phase(project: Project) -> None:
    server = small("""
        dumps = []

        def unknown(message):
            dumps.append(message["method"])
            sys.stderr.write(f"cannot validate {message['method']} " + "x" * 70_000 + "\\n")
            sys.stderr.flush()

        def call(id_, name):
            if name == "dumps":
                write(line(id=id_, result=text(" ".join(dumps))))

        serve(lambda cursor: listed("dumps", "silent"), call, unknown)
    """)
    project.write(a=server)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        for n in range(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(host.call, "mcp__a__silent")
                while not host._board.lines["a"].in_flight:
                    await trio.lowlevel.checkpoint()
                await host.call("mcp__a__dumps", timeout=PATIENCE)
                nursery.cancel_scope.cancel()
            dumps = said(await host.call("mcp__a__dumps", timeout=PATIENCE)).split()
            assert dumps.count("notifications/cancelled") == n + 1
        assert dumps[0] == "server/discover"
        assert host.snapshot().model.server("a").restarts == 0
        assert len(host.stderr_tail("a")) < 70_000


async def test_b071_a_log_line_within_a_call_costs_no_more_than_the_message_it_is_glued_to(project: Project) -> None:
    server = small("""
        waiting, glued = [], []

        def call(id_, name):
            if name == "wait" and glued:
                write(line(id=id_, result=text("waited")))
            elif name == "wait":
                waiting.append(id_)
            elif name == "line":
                write("opened the database\\n" + line(id=id_, result=text("whole")))
            elif name == "glued":
                glued.append(id_)
                write("opened the database" + line(id=id_, result=text("glued")))
                while waiting:
                    write(line(id=waiting.pop(), result=text("waited")))

        serve(lambda cursor: listed("wait", "line", "glued"), call)
    """)
    project.write(a=server)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        pid = host.snapshot().model.server("a").pid
        assert said(await host.call("mcp__a__line", timeout=PATIENCE)) == "whole"
        waited: list[str] = []

        async def wait() -> None:
            waited.append(said(await host.call("mcp__a__wait", timeout=PATIENCE)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            while not host._board.lines["a"].in_flight:
                await trio.lowlevel.checkpoint()
            with pytest.raises(CallTimeout):
                await host.call("mcp__a__glued", timeout=0.5)
        assert waited == ["waited"]
        assert said(await host.call("mcp__a__line", timeout=PATIENCE)) == "whole"
        state = host.snapshot().model.server("a")
        assert (state.pid, state.restarts) == (pid, 0)


async def test_b072_lines_that_begin_like_json_and_are_none_are_skipped_as_noise(project: Project) -> None:
    server = small(r"""
        NOISE = [
            "2025-07-10 10:49:36 Starting", "2025", "-1 is the level", "-", '"quoted" text', '"', "{ready}", "{", "[INFO]",
            "[", "null, void", "true", "1e999", "NaN", '{"level": "info"}', '{"id": 1, "message": "log"}', "7" * 1_000_000,
        ]

        def noisy(text):
            write("\n".join(NOISE) + "\n" + text)

        def call(id_, name):
            noisy(line(id=id_, result=text("heard")))

        noisy("")
        serve(lambda cursor: noisy("") or listed("say"), call)
    """)
    project.write(a=server, neighbour=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        for _ in range(3):
            assert said(await host.call("mcp__a__say", timeout=PATIENCE)) == "heard"
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["say"]
        assert all(state.restarts == 0 for state in host.snapshot().model.servers)
