"""Every client feature, end to end, as a function of a host whose embedder answers; each era and wire plays all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from playbill.actors import Asker, Host, LogMessage, RequestRefused, Root, ServerState, UnknownPrompt

from .conftest import PATIENCE, VERSIONS, Embedder, said

__all__ = ["CHECKS", "shown"]

Check = Callable[[Host, Embedder, str], Awaitable[None]]


async def sampling(host: Host, embedder: Embedder, era: str) -> None:
    assert await said(host, "sample", text="hear, hear") == "parrot: HEAR, HEAR"
    _sees_who_asks(host, embedder, era, "CreateMessageRequestParams")


async def sampling_with_tools(host: Host, embedder: Embedder, era: str) -> None:
    assert await said(host, "sample_with_tools") == "CreateMessageResultWithTools toolUse: poor prop({'of': 'Yorick'})"
    _, params = embedder.asked[-1]
    assert [(tool.name, tool.description) for tool in params.tools] == [("prop", "Fetch a prop.")]
    assert params.tool_choice.mode == "required"


async def elicitation_by_form(host: Host, embedder: Embedder, era: str) -> None:
    answer = await said(host, "elicit")
    assert "accept" in answer
    assert "Ophelia" in answer
    _sees_who_asks(host, embedder, era, "ElicitRequestFormParams")


async def elicitation_by_url(host: Host, embedder: Embedder, era: str) -> None:
    told = len(embedder.told)
    assert await said(host, "elicit_url") == "accept"
    _sees_who_asks(host, embedder, era, "ElicitRequestURLParams")
    if era == "legacy":
        assert (await embedder.heard(told + 1))[told:] == ["payment-1"]


def _sees_who_asks(host: Host, embedder: Embedder, era: str, asked: str) -> None:
    state = host.snapshot().model.server("s")
    assert state is not None
    asker, params = embedder.asked[-1]
    assert asker == Asker("s", state.generation, VERSIONS[era])
    assert type(params).__name__ == asked


async def roots(host: Host, embedder: Embedder, era: str) -> None:
    embedder.roots = [Root("file:///stage", "stage"), "file:///house"]
    assert await said(host, "roots") == "file:///stage=stage file:///house=None"
    embedder.roots = ["file:///foyer"]
    await host.roots_changed()
    if era == "legacy":
        with trio.fail_after(PATIENCE):
            while await said(host, "roots_heard") == "0":
                await trio.lowlevel.checkpoint()
    assert await said(host, "roots") == "file:///foyer=None"


async def what_is_announced(host: Host, embedder: Embedder, era: str) -> None:
    assert await said(host, "announced") == "elicitation roots sampling sampling-with-tools"


async def logging(host: Host, embedder: Embedder, era: str) -> None:
    told = len(embedder.told)
    assert await said(host, "log", count=3) == "logged"
    messages = (await embedder.heard(told + 3))[told:]
    assert messages == [LogMessage("warning", {"number": number}, "house") for number in range(3)]
    if era == "legacy":
        with trio.fail_after(PATIENCE):
            while await said(host, "log_level") != "info":
                await trio.lowlevel.checkpoint()


async def progress(host: Host, embedder: Embedder, era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        await trio.lowlevel.checkpoint()
        heard.append((done, total, message))

    await host.call_tool("s", "steps", {}, timeout=PATIENCE, progress=hear)
    with trio.fail_after(PATIENCE):  # in memory, the SDK's dispatcher has a task for each
        while len(heard) < 3:
            await trio.lowlevel.checkpoint()
    assert sorted(heard) == [(step, 3, f"step {step}") for step in range(3)]


async def cancellation(host: Host, embedder: Embedder, era: str) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.call_tool, "s", "sleep")
        while not host._board.lines["s"].in_flight:
            await trio.lowlevel.checkpoint()
        await said(host, "steps")  # the server has read the other one
        nursery.cancel_scope.cancel()
    with trio.fail_after(PATIENCE):
        while await said(host, "cancelled") != "1":
            await trio.lowlevel.checkpoint()


async def cancellation_by_the_server(host: Host, embedder: Embedder, era: str) -> None:
    """It gives up what it asked: the handler is cancelled. (Since 2026-07-28 a server asks nothing by itself.)"""
    if era == "modern":
        return
    embedder.hangs = True
    assert "given up" in await said(host, "sample_for_a_moment")
    with trio.fail_after(PATIENCE):
        await embedder.cancelled.wait()
    embedder.hangs = False


async def ping_by_the_server(host: Host, embedder: Embedder, era: str) -> None:
    if era == "legacy":
        assert await said(host, "ping") == "EmptyResult"


async def meta(host: Host, embedder: Embedder, era: str) -> None:
    result = await host.call_tool("s", "meta", timeout=PATIENCE, meta={"example.com/act": 3})
    assert result.meta is not None
    assert result.meta["example.com/answer"] == {"example.com/act": 3}


async def structured_output(host: Host, embedder: Embedder, era: str) -> None:
    good = await host.call_tool("s", "seats", {"row": "K"}, timeout=PATIENCE)
    assert good.structured_content == {"row": "K", "seats": [1, 2]}
    assert "playbill/outputInvalid" not in (good.meta or {})
    bad = await host.call_tool("s", "wrong", {"row": "K"}, timeout=PATIENCE)
    assert not bad.is_error
    assert bad.structured_content == {"row": "K", "seats": "many"}
    assert bad.meta is not None
    assert "$.seats" in bad.meta["playbill/outputInvalid"]


async def what_a_tool_says_of_itself(host: Host, embedder: Embedder, era: str) -> None:
    tool = host.snapshot().model.tool("s", "seats")
    assert tool is not None
    assert tool.annotations == {"readOnlyHint": True}
    assert [icon["mimeType"] for icon in tool.icons] == ["image/png"]
    assert tool.meta == {"example.com/kind": "seats"}
    assert tool.output_schema is not None
    assert tool.output_schema["title"] == "Seats"


async def what_a_server_says_of_itself(host: Host, embedder: Embedder, era: str) -> None:
    state = host.snapshot().model.server("s")
    assert state is not None
    info = state.info
    assert info is not None
    assert (info.name, info.title, info.version) == ("features", "The house", "1.5")
    assert info.website_url == "https://example.com/house"
    assert [icon["mimeType"] for icon in info.icons] == ["image/png"]
    assert info.instructions == "Ask the ushers.\nThey  [31mknow [0m."


async def resource_links(host: Host, embedder: Embedder, era: str) -> None:
    result = await host.call_tool("s", "link", timeout=PATIENCE)
    (linked,) = result.content
    assert (linked.type, str(linked.uri), linked.icons[0].mime_type) == (
        "resource_link",
        "stage://programme",
        "image/png",
    )


async def rounds_of_input(host: Host, embedder: Embedder, era: str) -> None:
    if era == "legacy":
        return
    assert await said(host, "later") == "curtain"
    result = await host.call_tool("s", "never", timeout=PATIENCE)
    assert result.is_error
    assert "10 times" in result.content[0].text


async def resources(host: Host, embedder: Embedder, era: str) -> None:
    state = await shown(host, lambda state: state.resources_state == "current")
    assert {each.uri: each.mime_type for each in state.resources} == {
        "stage://notes": "text/plain",
        "stage://picture": "image/png",
    }
    notes = next(each for each in state.resources if each.uri == "stage://notes")
    assert (notes.title, notes.description) == ("Notes", "What the prompter wrote.")
    assert notes.meta == {"example.com/k": 1}
    assert notes.icons[0]["mimeType"] == "image/png"
    assert [(each.uri_template, each.title) for each in state.templates] == [
        ("stage://scenes/{act}/{scene}", "A scene")
    ]
    read = await host.read_resource("s", "stage://notes", timeout=PATIENCE)
    assert read.contents[0].text == "the ghost enters"
    blob = await host.read_resource("s", "stage://picture", timeout=PATIENCE)
    assert blob.contents[0].blob == "UE5H"
    scene = await host.read_resource("s", "stage://scenes/2/3", timeout=PATIENCE)
    assert scene.contents[0].text == "act 2, scene 3"
    with pytest.raises(RequestRefused, match="did you mean 'stage://notes'"):
        await host.read_resource("s", "stage://nodes", timeout=PATIENCE)


async def prompts(host: Host, embedder: Embedder, era: str) -> None:
    state = await shown(host, lambda state: state.prompts_state == "current")
    (prompt,) = state.prompts
    assert (prompt.name, prompt.title, prompt.description) == ("audition", "Audition", "How to read a part.")
    assert [(each.name, each.required) for each in prompt.arguments] == [("part", True), ("mood", False)]
    assert len(prompt.icons) == 1
    got = await host.get_prompt("s", "audition", {"part": "Yorick"}, timeout=PATIENCE)
    assert got.messages[0].content.text == "Read Yorick, grave"
    with pytest.raises(UnknownPrompt, match="did you mean 'audition'"):
        await host.get_prompt("s", "audtion", timeout=PATIENCE)
    with pytest.raises(RequestRefused):
        await host.get_prompt("s", "audition", timeout=PATIENCE)


async def completion(host: Host, embedder: Embedder, era: str) -> None:
    found = await host.complete("s", "part", "Yo", prompt="audition", context={"mood": "merry"}, timeout=PATIENCE)
    assert found.values == ["audition/part=Yo0", "audition/part=Yo1", "merry"]
    assert (found.total, found.has_more) == (5, True)
    found = await host.complete("s", "act", "1", template="stage://scenes/{act}/{scene}", timeout=PATIENCE)
    assert found.values == [f"stage://scenes/{{act}}/{{scene}}/act=1{number}" for number in range(2)]


async def subscriptions(host: Host, embedder: Embedder, era: str) -> None:
    async with host.subscribe("s", "stage://notes", timeout=PATIENCE) as updates:
        if era == "legacy":
            assert await said(host, "subscribed") == "stage://notes"
        await said(host, "write", text="exit ghost")
        with trio.fail_after(PATIENCE):
            update = await anext(updates)
        assert (update.server, update.uri, update.missed) == ("s", "stage://notes", False)
        read = await host.read_resource("s", "stage://notes", timeout=PATIENCE)
        assert read.contents[0].text == "exit ghost"
    if era == "legacy":
        with trio.fail_after(PATIENCE):
            while await said(host, "subscribed"):
                await trio.lowlevel.checkpoint()


async def changes_of_lists(host: Host, embedder: Embedder, era: str) -> None:
    state = await shown(host, lambda state: state.resources_state == state.prompts_state == "current")
    before = {each.uri: each for each in state.resources}
    await said(host, "add")
    state = await shown(host, lambda state: len(state.resources) == 3 and len(state.prompts) == 2)
    assert {each.uri: each for each in state.resources if each.uri in before} == before
    assert (await host.get_prompt("s", "new", timeout=PATIENCE)).messages[0].content.text == "new"


async def shown(host: Host, holds: Callable[[ServerState], bool]) -> ServerState:
    """The server in the first snapshot in which it is so."""
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            state = snapshot.model.server("s")
            if state is not None and holds(state):
                return state
    raise AssertionError("the host closed")


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        sampling,
        sampling_with_tools,
        elicitation_by_form,
        elicitation_by_url,
        roots,
        what_is_announced,
        logging,
        progress,
        cancellation,
        cancellation_by_the_server,
        ping_by_the_server,
        meta,
        structured_output,
        what_a_tool_says_of_itself,
        what_a_server_says_of_itself,
        resource_links,
        rounds_of_input,
        resources,
        prompts,
        completion,
        subscriptions,
        changes_of_lists,
    )
}
