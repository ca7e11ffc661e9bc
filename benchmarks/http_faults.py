"""Every fault of a server over HTTP: what its caller sees, in what time, and that a stdio neighbour's calls went on.

    python benchmarks/http_faults.py [--rows TEXT …] [--json] [--no-npm]

Each row has a host of its own with two servers: the one that does wrong, over real loopback sockets, and a good one over stdio,
which is called without a pause. A row is played by its kind:

    healthy   one call; what the others are compared with
    call      it does wrong when it is called
    start     it does wrong from the start, and is called at once
    refused   nobody listens, and it is called at once
    forget    it forgets its sessions, and is called
    resume    its stream breaks off, and another brings the answer
    end       it ends while nobody calls; its "caller" is who watches its phase
    idle      it hangs while nobody calls; likewise
    restart   it ends with calls in flight, and starts on the same port
    pool      it never answers 100 calls, and is called once more
    cancel    1,000 calls are cancelled, and it is called once more
    leave     the host closes; seconds until it has
    uvicorn, npm   a real server in a process of its own is killed with a call in flight, and started on the same port

Columns: seconds until the caller had its answer, or (restart, uvicorn, npm) the last of them since the end; that as a
multiple of a call or a start that goes well (of the same era, in this run, the least of several), or of the deadline in force;
the neighbour's calls, those that failed, and its slowest, in ms; restarts and phase of the server when the answer was there;
then, with nothing wrong any more, seconds until a call succeeds, by itself, or after a ``restart()`` (+r), or when the server
said (at).

Exit code 1 when a call of the neighbour failed, or a caller had no answer within `NEVER`. The numbers depend on the machine:
look at the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import asdict, define
from http_rows import LONG, ROWS, Row
from playbill.actors import Config, Host, PlaybillError, ServerEntry, open_host
from playbill.actors.edge.wire.remote.opening import DELETE_SECONDS
from playbill.actors.model.snapshot import ServerState
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff, Intensity

from tests.faulty_http.server import Web, deed
from tests.faulty_http.test_sdk_servers import free_port, running
from tests.neighbour import NEIGHBOUR, Heard, beside

NEVER = 45.0
"""Seconds after which a caller is taken for one that hangs."""

IN_FLIGHT = 10


@define
class Seen:
    """What one row brought; times in seconds.

    Attributes:
        saw: error class and reason, or result.
        seconds: until the caller had it.
        measure: what that is a multiple of: ``call``, ``start``, ``deadline``.
        ratio: the multiple; None where there is nothing to compare with.
        calls, failed, worst: the neighbour's.
        restarts, phase: of the server then.
        again: until a call succeeded, with nothing wrong any more; None: not before ``at``, or the host was closed.
        how: what that took: nothing, ``restart``, or ``at`` the time that the server said.
    """

    row: str
    era: str
    saw: str = ""
    seconds: float = 0.0
    measure: str = "call"
    ratio: float | None = None
    calls: int = 0
    failed: int = 0
    worst: float = 0.0
    restarts: int = 0
    phase: str = ""
    again: float | None = None
    how: str = ""


class Played:
    """One row on its stage."""

    def __init__(self, host: Host, row: Row, seen: Seen) -> None:
        self.host = host
        self.row = row
        self.seen = seen

    def state(self) -> ServerState:
        state = self.host.snapshot().model.server("bad")
        assert state is not None
        return state

    async def call(self, tool: str = "echo", **how: Any) -> str:
        """Call the server; what the caller sees, in words."""
        try:
            with trio.fail_after(NEVER):
                result = await self.host.call_tool("bad", tool, how.pop("arguments", {}), **how)
        except (PlaybillError, trio.TooSlowError) as error:
            return f"{type(error).__name__}: {getattr(error, 'reason', error)}"
        said = "".join(getattr(block, "text", "") for block in result.content)
        return f"tool error: {said}" if result.is_error else "result"

    async def measured(self, tool: str = "echo", **how: Any) -> None:
        begun = trio.current_time()
        self.answered(await self.call(tool, **how), begun)

    def answered(self, saw: str, begun: float) -> None:
        """The caller has its answer."""
        self.seen.saw, self.seen.seconds = saw, trio.current_time() - begun
        state = self.state()
        self.seen.restarts, self.seen.phase = state.restarts, state.phase

    async def until(self, condition: Any) -> ServerState:
        with trio.fail_after(NEVER):
            async for snapshot in self.host.changes():
                state = snapshot.model.server("bad")
                if state is not None and condition(state):
                    return state
        raise AssertionError("the host closed")

    async def ready(self) -> None:
        await self.until(lambda state: state.phase == "ready")

    async def in_flight(self, number: int) -> None:
        """Wait until so many calls are under way."""
        with trio.fail_after(NEVER):
            while self.host._board.lines["bad"].in_flight < number:  # noqa: ASYNC110
                await trio.sleep(0.001)

    async def again(self, tool: str = "echo", arguments: dict[str, Any] | None = None) -> None:
        """Nothing is wrong any more: how long until a call succeeds."""
        begun = trio.current_time()
        while trio.current_time() - begun < NEVER:
            state = self.state()
            if state.phase in ("needs_auth", "parked"):
                await self.host.restart("bad")
                self.seen.how = "restart"
            elif state.next_retry_at is not None and (left := state.next_retry_at - trio.current_time()) > 5:
                self.seen.how, self.seen.again = "at", left
                return
            if await self.call(tool, arguments=arguments or {}, timeout=LONG) == "result":
                self.seen.again = trio.current_time() - begun
                return
            await trio.sleep(0.002)


async def in_this_program(row: Row, web: Web, nursery: trio.Nursery, played: Played, begun: float) -> None:
    """Play a row of the faulty server."""
    if row.kind not in ("start", "refused"):
        await played.ready()
    if row.kind == "healthy":
        await played.call()
        spent = []
        for _ in range(20):
            await played.measured()
            spent.append(played.seen.seconds)
        played.seen.seconds = min(spent)
    elif row.kind in ("start", "refused"):
        await played.host.server_set_enabled("bad", True)
        first = await played.call(timeout=LONG)
        played.answered(first, begun)
    elif row.kind == "call":
        web.deeds |= row.deeds
        await played.measured()
    elif row.kind == "forget":
        web.forget()
        await played.measured()
    elif row.kind == "resume":
        await web.until(lambda web: web.streams)
        answer = '{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "resumed"}]}}'
        web.deeds["tools/call"] = [deed("break_off", said="id: 7\nretry: 1\ndata:")]
        web.deeds["GET"] = [deed("end", said=f"id: 8\ndata: {answer % 4}")]
        await played.measured()
    elif row.kind in ("end", "idle"):
        if row.prepare is None and row.kind == "end":
            await web.until(lambda web: web.streams)
        begun = trio.current_time()
        if row.kind == "end":
            web.stop()
        state = await played.until(lambda state: state.error)
        played.answered(f"{state.phase}: {state.error}", begun)
    elif row.kind == "restart":
        answers: list[str] = []
        ended = begun

        async def one() -> None:
            answers.append(await played.call("do", arguments=deed("hang"), timeout=LONG))

        async with trio.open_nursery() as calls:
            for _ in range(IN_FLIGHT):
                calls.start_soon(one)
            await web.until(lambda web: web.waiting == IN_FLIGHT)
            ended = trio.current_time()
            web.stop()
        played.answered(f"{len(answers)} × {sorted(set(answers))[0]}", ended)
    elif row.kind == "pool":
        async with trio.open_nursery() as calls:
            for _ in range(100):
                calls.start_soon(lambda: played.call("do", arguments=deed("hang"), timeout=LONG))
            await web.until(lambda web: web.waiting == 100)
            await played.measured()
            calls.cancel_scope.cancel()
    elif row.kind == "cancel":
        for _ in range(10):
            async with trio.open_nursery() as calls:
                for _ in range(100):
                    calls.start_soon(lambda: played.call("do", arguments=deed("hang"), timeout=LONG))
                await web.until(lambda web: web.waiting == 100)
                calls.cancel_scope.cancel()
        await played.measured()
    if row.kind == "leave":
        return
    web.deeds.clear()
    if row.kind in ("end", "restart"):
        web.forget()
    if row.kind in ("end", "restart", "refused"):
        await nursery.start(web.run)
    await played.again()


@asynccontextmanager
async def stage(row: Row, seen: Seen, url: str) -> AsyncIterator[Played]:
    """A host with the server of a row, and the neighbour, which is called meanwhile."""
    config = Config((NEIGHBOUR, ServerEntry("bad", url=url, disabled=row.kind in ("start", "refused"), **row.entry)))
    many = Intensity(restarts=10_000, window=60.0, then="park", park_retry=None)
    heard = Heard()
    try:
        async with open_host(
            config, backoff=Backoff(base=0.05, max=0.2), intensity=many, settings=ServerSettings(drain=0.2)
        ) as host:
            async with beside(host) as heard:
                yield Played(host, row, seen)
            left = trio.current_time()
        if row.kind == "leave":
            seen.saw, seen.phase, seen.seconds = "closed", "–", trio.current_time() - left
    finally:
        seen.calls, seen.failed, seen.worst = heard.answered, heard.failed, heard.worst


async def faulty(row: Row, seen: Seen) -> None:
    """Play a row whose server is in this program."""
    web = Web(row.era)
    if row.prepare is not None:
        row.prepare(web)
    if row.kind in ("start", "idle", "leave"):
        web.deeds |= row.deeds
    async with trio.open_nursery() as nursery:
        await nursery.start(web.run)
        if row.kind == "refused":
            web.stop()
        async with stage(row, seen, web.url) as played:
            await in_this_program(row, web, nursery, played, trio.current_time())
        nursery.cancel_scope.cancel()


async def real(row: Row, seen: Seen, node: Path | None) -> None:
    """Play a row whose server is a real one in a process of its own."""
    port = free_port()
    path = "sse" if row.era == "sse" else "mcp"

    @asynccontextmanager
    async def server() -> AsyncIterator[Any]:
        if row.kind == "uvicorn":
            async with running(port, **row.options) as process:
                yield lambda: os.kill(process.pid, signal.SIGKILL)
        else:
            from tests.real.conftest import Installed
            from tests.real.test_real_remote import everything

            assert node is not None
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(
                    everything(Installed(node, node, node, node), row.options["mode"], port)
                )
                yield stack.aclose

    tools: tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]] = (
        (("slow", {}), ("add", {"a": 1, "b": 2}))
        if row.kind == "uvicorn"
        else (
            ("trigger-long-running-operation", {"duration": 600, "steps": 2}),
            ("echo", {"message": "x"}),
        )
    )
    (slow, slowly), (quick, quickly) = tools
    async with stage(row, seen, f"http://127.0.0.1:{port}/{path}") as played:
        async with server() as kill:
            await played.ready()
            spent = []
            for _ in range(20):
                begun = trio.current_time()
                assert await played.call(quick, arguments=quickly, timeout=LONG) == "result"
                spent.append(trio.current_time() - begun)
            answers: list[str] = []
            ended = 0.0

            async def one() -> None:
                answers.append(await played.call(slow, arguments=slowly, timeout=LONG))

            async with trio.open_nursery() as calls:
                calls.start_soon(one)
                await played.in_flight(1)
                await trio.sleep(0.2)  # the other process has to have it, and says nothing of that
                ended = trio.current_time()
                if (closing := kill()) is not None:
                    await closing
            played.answered(answers[0], ended)
            played.seen.ratio = played.seen.seconds / min(spent)
        async with server():
            await played.again(quick, quickly)


@contextmanager
def patience(row: Row) -> Iterator[None]:
    """What no key of a configuration can shorten, shortened for a row; and an era that the SDK's server would not choose."""
    from playbill.actors.edge.wire import link, meeting, negotiate

    before = link.PING_EVERY, link.PING_WITHIN, meeting.negotiate

    async def legacy(session: Any, known: Any, seconds: float) -> Any:
        return await negotiate.negotiate(session, "legacy", seconds)

    if row.pings is not None:
        link.PING_EVERY = link.PING_WITHIN = row.pings
    if row.kind == "uvicorn" and row.era == "legacy":
        meeting.negotiate = legacy
    try:
        yield
    finally:
        link.PING_EVERY, link.PING_WITHIN, meeting.negotiate = before


def compare(row: Row, seen: Seen, healthy: dict[tuple[str, str], float]) -> None:
    """Put the time of an answer against what says most: a deadline that was in force and reached, or what goes well."""
    deadlines = {**{key: row.entry[key] for key in ("timeout", "connect_timeout") if key in row.entry}}
    if row.pings is not None:
        deadlines["pings"] = 2 * row.pings
    if row.kind == "leave":
        deadlines["leave"] = DELETE_SECONDS
    limit = sum(deadlines.values())
    if limit and seen.seconds > 0.5 * limit:
        seen.measure, seen.ratio = "deadline", seen.seconds / limit
    elif seen.ratio is None:
        seen.measure = "start" if row.kind in ("start", "refused") else "call"
        usual = healthy.get((seen.measure, row.era))
        seen.ratio = None if usual is None else seen.seconds / usual


def npm_packages(folder: Path) -> Path | str:
    """The folder of the commands of ``server-everything``, installed as the tests of real servers do; or why there is none."""
    from tests.real.conftest import _node_packages

    if not all(map(shutil.which, ("npx", "npm", "node"))):
        return "needs node, npm and npx"
    try:
        return _node_packages(folder / "node", "@modelcontextprotocol/server-everything")
    except (AssertionError, OSError) as error:
        return f"npm: {' '.join(str(error).split())[:200]}"


async def measure(rows: list[Row], node: Path | str, rounds: int = 3) -> list[Seen]:
    """Play rows, one after the other, and before them, so many times, what goes well; each is printed on stderr as it comes."""
    found = []
    healthy: dict[tuple[str, str], float] = {}
    eras = {row.era for row in rows if row.kind not in ("healthy", "uvicorn", "npm")}
    for era in sorted(eras):  # what goes well, first: what the rest is compared with
        spent = []
        for _ in range(rounds):
            start = Seen("start", era)
            await faulty(Row("start", era, "start"), start)
            spent.append(start.seconds)
        healthy["start", era] = min(spent)
        call = Seen("call", era)
        await faulty(Row("nothing", era, "healthy"), call)
        healthy["call", era] = call.seconds
    for row in rows:
        seen = Seen(row.name, row.era)
        found.append(seen)
        if row.kind == "npm" and isinstance(node, str):
            seen.saw = f"not run: {node}"
            continue
        try:
            with patience(row):
                if row.kind in ("uvicorn", "npm"):
                    await real(row, seen, node if isinstance(node, Path) else None)
                else:
                    await faulty(row, seen)
            compare(row, seen, healthy)
        except Exception as error:
            seen.saw = f"WRONG: {error!r}"
        print(f"{len(found)}/{len(rows)} {row}", file=sys.stderr, flush=True)
    return found


def show(found: list[Seen], width: int) -> None:
    """Print the table."""
    head = f"{'row':<44} {'era':<7} {'seconds':>8} {'ratio':>14} {'calls':>6} {'failed':>6} {'worst ms':>8} "
    print(f"{head}{'restarts':>8} {'phase':<12} {'again s':>9}  what the caller saw")
    for each in found:
        ratio = "–" if each.ratio is None else f"{each.ratio:.1f} {each.measure}"
        again = "–" if each.again is None else f"{each.again:.3f}"
        again = {"restart": f"{again}+r", "at": f"at {each.again or 0:.0f}"}.get(each.how, again)
        print(
            f"{each.row:<44} {each.era:<7} {each.seconds:>8.4f} {ratio:>14} {each.calls:>6} {each.failed:>6} "
            f"{1000 * each.worst:>8.1f} {each.restarts:>8} {each.phase:<12} {again:>9}  {each.saw[:width]}"
        )


def wrong_in(found: list[Seen]) -> list[str]:
    """What must not be, whatever the machine."""
    wrong = [f"{each.row} [{each.era}]: {each.failed} calls of the neighbour failed" for each in found if each.failed]
    wrong += [
        f"{each.row} [{each.era}]: {each.saw}" for each in found if each.saw.startswith(("WRONG", "TooSlowError"))
    ]
    ran = [each for each in found if not each.saw.startswith(("WRONG", "not run"))]
    wrong += [
        f"{each.row} [{each.era}]: not callable again" for each in ran if each.again is None and each.phase != "–"
    ]
    return wrong


def chosen(texts: list[str] | None) -> list[Row]:
    """The rows whose name and era, or kind, have one of these in them; None: all."""
    return [row for row in ROWS if texts is None or any(text in f"{row} {row.kind}" for text in texts)]


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", nargs="+", metavar="TEXT", help="those whose name and era, or kind, have one of these in them"
    )
    parser.add_argument("--json", action="store_true", help="for a program")
    parser.add_argument("--no-npm", action="store_true", help="install nothing")
    parser.add_argument("--width", type=int, default=100, help="letters of what the caller saw")
    given = parser.parse_args()
    rows = chosen(given.rows)
    if not rows:
        parser.error("no row has that in its name")
    with tempfile.TemporaryDirectory() as folder:
        node: Path | str = "--no-npm"
        if not given.no_npm and any(row.kind == "npm" for row in rows):
            node = npm_packages(Path(folder))
        found = trio.run(measure, rows, node)
    if given.json:
        print(json.dumps([asdict(each) for each in found], indent=1, ensure_ascii=False))
    else:
        show(found, given.width)
    wrong = wrong_in(found)
    print(
        "\n".join(f"WRONG {each}" for each in wrong) or f"{len(found)} rows; every caller had its answer",
        file=sys.stderr,
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
