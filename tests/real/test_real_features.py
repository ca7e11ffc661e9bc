"""What npm's server-everything asks of a client, and what it offers besides tools, over stdio and over streamable HTTP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from playbill.actors import ClientHandlers, Config, Host, RequestRefused, ServerEntry, ServerState, open_host
from playbill.supervision import Backoff, Intensity

from .conftest import Installed

pytestmark = pytest.mark.real

PATIENCE = 90.0


class Embedder:
    """Answers, and notes what it was asked and told."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.logged: list[Any] = []
        self.heard = trio.Event()
        self.places = ["file:///stage"]

    async def sampling(self, asker: Any, params: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked.append(params)
        return {"role": "assistant", "model": "parrot", "content": {"type": "text", "text": "hear, hear"}}

    async def elicitation(self, asker: Any, params: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked.append(params)
        return {"action": "accept"} | ({"content": {"name": "Ophelia"}} if params.mode == "form" else {})

    async def roots(self, asker: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return self.places

    async def logging(self, asker: Any, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.logged.append(message)
        self.heard.set()

    def handlers(self) -> ClientHandlers:
        return ClientHandlers(
            sampling=self.sampling,
            elicitation=self.elicitation,
            logging=self.logging,
            roots=self.roots,
            log_level="debug",
        )


@asynccontextmanager
async def serving(program: Path, mode: str) -> AsyncIterator[ServerEntry]:
    """The entry of the server; over HTTP it runs in a process of its own meanwhile."""
    if mode == "stdio":
        yield ServerEntry("everything", command=str(program), args=("stdio",))
        return
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = await trio.lowlevel.open_process(
        [str(program), mode],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield ServerEntry("everything", url=f"http://127.0.0.1:{port}/mcp")
    finally:
        with trio.CancelScope(shield=True):
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def shown(host: Host, holds: Callable[[ServerState], bool]) -> ServerState:
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            state = snapshot.model.server("everything")
            if state is not None and holds(state):
                return state
    raise AssertionError("the host closed")


async def said(host: Host, tool: str, **arguments: Any) -> str:
    result = await host.call_tool("everything", tool, arguments, timeout=PATIENCE)
    text = " ".join(part.text for part in result.content if part.type == "text")
    assert not result.is_error, text
    return text


async def play(program: Path, mode: str) -> None:
    """All of it, with one host."""
    embedder = Embedder()
    many = Intensity(restarts=10_000, window=60.0, then="park", park_retry=None)
    async with (
        serving(program, mode) as entry,
        open_host(
            Config((entry,)), handlers=embedder.handlers(), backoff=Backoff(base=0.05, max=0.2), intensity=many
        ) as host,
    ):
        # The tools that ask something are listed only once it knows what the client can.
        await shown(host, lambda state: {"get-roots-list", "trigger-sampling-request"} <= {t.bare for t in state.tools})
        await _asking(host, embedder)
        await _calls(host)
        await _about(host)
        await _cancelled(host)
        await _shelves(host)
        await _changes(host)


async def _asking(host: Host, embedder: Embedder) -> None:
    assert "hear, hear" in await said(host, "trigger-sampling-request", prompt="Who's there?", maxTokens=5)
    assert "Ophelia" in await said(host, "trigger-elicitation-request")
    assert "file:///stage" in await said(host, "get-roots-list")
    assert len(embedder.asked) == 2
    with trio.fail_after(PATIENCE):
        await embedder.heard.wait()
    assert embedder.logged[0].logger == "everything-server"
    embedder.places = ["file:///foyer"]
    await host.roots_changed()
    with trio.fail_after(PATIENCE):
        while "file:///foyer" not in await said(host, "get-roots-list"):
            await trio.sleep(0.05)
    where = "https://example.com/pay"
    assert "completed" in await said(host, "trigger-url-elicitation", url=where)
    assert embedder.asked[-1].url == where
    # The same as an error (-32042): what is to be visited first is another URL, and the call is made again by whoever wants it.
    first = await host.call_tool(
        "everything", "trigger-url-elicitation", {"url": where, "errorPath": True}, timeout=PATIENCE
    )
    assert first.is_error
    assert "asked (accept)" in first.content[0].text
    assert embedder.asked[-1].url != where


async def _calls(host: Host) -> None:
    heard: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        await trio.lowlevel.checkpoint()
        heard.append(done)

    arguments = {"duration": 0.3, "steps": 3}
    await host.call_tool("everything", "trigger-long-running-operation", arguments, timeout=PATIENCE, progress=progress)
    assert heard == [1, 2, 3]
    result = await host.call_tool("everything", "get-structured-content", {"location": "Chicago"}, timeout=PATIENCE)
    assert set(result.structured_content or {}) == {"temperature", "conditions", "humidity"}
    assert "playbill/outputInvalid" not in (result.meta or {})
    links = await host.call_tool("everything", "get-resource-links", {"count": 2}, timeout=PATIENCE)
    uris = [str(part.uri) for part in links.content if part.type == "resource_link"]
    assert len(uris) == 2
    for uri in uris:
        assert (await host.read_resource("everything", uri, timeout=PATIENCE)).contents
    message = await host.call_tool("everything", "get-annotated-message", {"messageType": "error"}, timeout=PATIENCE)
    assert message.content[0].annotations is not None


async def _about(host: Host) -> None:
    state = await shown(host, lambda state: state.info is not None)
    assert state.info is not None
    assert state.info.name == "mcp-servers/everything"
    assert state.info.version is not None
    assert state.info.instructions is not None
    assert "\n" in state.info.instructions
    tool = state.tool("trigger-url-elicitation")
    assert tool is not None
    assert (tool.annotations or {})["openWorldHint"] is True


async def _cancelled(host: Host) -> None:
    """A call that is given up leaves the server usable."""
    arguments = {"duration": 3600, "steps": 7200}
    with trio.move_on_after(0.5):
        await host.call_tool("everything", "trigger-long-running-operation", arguments)
    assert "5" in await said(host, "get-sum", a=2, b=3)


async def _changes(host: Host) -> None:
    before = len((await shown(host, lambda state: state.resources_state == "current")).resources)
    given = {"name": "line.gz", "data": "data:text/plain,Who%27s%20there%3F", "outputType": "resourceLink"}
    linked = await host.call_tool("everything", "gzip-file-as-resource", given, timeout=PATIENCE)
    (link,) = linked.content
    state = await shown(host, lambda state: len(state.resources) > before)
    assert str(link.uri) in {each.uri for each in state.resources}
    read = await host.read_resource("everything", str(link.uri), timeout=PATIENCE)
    assert read.contents[0].blob


async def _shelves(host: Host) -> None:
    state = await shown(host, lambda state: state.resources_state == state.prompts_state == "current")
    assert len(state.resources) >= 5
    assert len(state.templates) >= 2
    assert {"simple-prompt", "args-prompt"} <= {prompt.name for prompt in state.prompts}
    read = await host.read_resource("everything", state.resources[0].uri, timeout=PATIENCE)
    assert read.contents
    text = await host.read_resource("everything", "demo://resource/dynamic/text/1", timeout=PATIENCE)
    assert "1" in text.contents[0].text
    prompt = await host.get_prompt("everything", "args-prompt", {"city": "Elsinore"}, timeout=PATIENCE)
    assert "Elsinore" in prompt.messages[0].content.text
    with pytest.raises(RequestRefused):
        await host.get_prompt("everything", "args-prompt", timeout=PATIENCE)
    found = await host.complete("everything", "department", "E", prompt="completable-prompt", timeout=PATIENCE)
    assert "Engineering" in found.values
    async with host.subscribe("everything", "demo://resource/dynamic/text/1", timeout=PATIENCE) as updates:
        await said(host, "toggle-subscriber-updates")
        with trio.fail_after(PATIENCE):
            update = await anext(updates)
        assert update.uri == "demo://resource/dynamic/text/1"


@pytest.mark.parametrize("mode", ["stdio", "streamableHttp"])
async def test_what_server_everything_asks_and_offers(installed: Installed, mode: str) -> None:
    await play(installed.node / "mcp-server-everything", mode)
