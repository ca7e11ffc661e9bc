"""Both agents, against a provider that is as strict as the real one, and real servers that crash, hang and change."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from playbill.actors import Host, HostClosed, open_host
from playbill.supervision import Backoff

from .conftest import PATIENCE, Project
from .providers import ANTHROPIC, OPENAI, Provider
from .stub import Reply, Stub, Use, ask, say


@asynccontextmanager
async def working(
    provider: Provider, project: Project, replies: list[Reply], *, profile: str | None = None, **of_agent: Any
) -> AsyncIterator[tuple[Any, Stub, Host]]:
    """An agent of the example, its provider, and its host, ready; at the end nothing was refused."""
    stub = provider.stub(replies, strict=profile == "openai-strict")
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(stub.serve)
            tools = [provider.module.list_files]
            async with (
                open_host(project.path, native_tools=tools, profile=profile or provider.name, backoff=SOON) as host,
                provider.client(api_key="none", base_url=stub.url) as client,
            ):
                assert await host.ready(timeout=PATIENCE)
                yield provider.module.Agent(client, host, **of_agent), stub, host
            nursery.cancel_scope.cancel()
    assert stub.refused == []
    assert stub.replies == []


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


SOON = Backoff(base=0.01, max=0.01)
MEET = Use("call_1", "mcp__one__meet"), Use("call_2", "mcp__one__meet")


async def test_calls_of_one_answer_run_at_the_same_time(provider: Provider, project: Project) -> None:
    async with working(provider, project, [ask(*MEET, text="Let us see."), say("They met.")]) as (agent, stub, _):
        assert await agent.turn("Do they meet?") == "They met."
        assert stub.results(1) == [
            {"id": "call_1", "error": False, "text": "met"},
            {"id": "call_2", "error": False, "text": "met"},
        ]


async def test_results_come_in_the_order_of_the_calls_whatever_fails_among_them(
    provider: Provider, project: Project
) -> None:
    calls = (
        Use("call_1", "mcp__one__echo", {"text": "first"}),
        Use("call_2", "mcp__two__die"),
        Use("call_3", "mcp__one__fail"),
        Use("call_4", "mcp__one__nothing"),
        Use("call_5", "list_files", {"folder": str(project.folder)}),
        Use("call_6", "mcp__one__meet"),
        Use("call_7", "mcp__one__meet"),
    )
    async with working(provider, project, [ask(*calls), say("done")]) as (agent, stub, _):
        assert await agent.turn("Go.") == "done"
        results = stub.results(1)
    assert [result["id"] for result in results] == [f"call_{number}" for number in range(1, 8)]
    assert [result["error"] for result in results] == [False, True, True, True, False, False, False]
    first, died, failed, unknown, files, met, also = (result["text"] for result in results)
    assert (first, met, also) == ("first", "met", "met")
    assert "server 'two' died during the call: the server was killed by SIGKILL. It may have taken effect" in died
    assert "fail does not work" in failed
    assert "no tool is named 'mcp__one__nothing'" in unknown
    assert "mcp.json" in json.loads(files)


async def test_a_turn_holds_one_catalog_whatever_servers_do_in_it(provider: Provider, project: Project) -> None:
    replies = [
        ask(Use("call_1", "mcp__one__change"), Use("call_2", "mcp__two__die")),
        ask(Use("call_3", "mcp__two__echo", {"text": "again"}), Use("call_4", "mcp__one__fail")),
        say("one"),
        say("two"),
    ]
    async with working(provider, project, replies) as (agent, stub, host):

        async def both_are_seen() -> None:
            async for snapshot in host.changes():
                two = snapshot.model.server("two")
                if snapshot.catalog.tool("mcp__one__extra") and two.restarts == 1 and two.phase == "ready":
                    return

        async def toggled() -> None:
            await both_are_seen()
            await host.tool_set_enabled("one", "fail", False)

        stub.replies[1] = Reply(uses=replies[1].uses, first=toggled)
        assert await agent.turn("First.") == "one"
        assert stub.bodies[0]["tools"] == stub.bodies[1]["tools"] == stub.bodies[2]["tools"]
        # The server that came back is called again, and a tool that was switched off meanwhile says so.
        again, off = stub.results(2)
        assert again == {"id": "call_3", "error": False, "text": "again"}
        assert off["error"]
        assert "'mcp__one__fail' is not offered" in off["text"]

        assert await agent.turn("Second.") == "two"
        assert set(names(stub.tools(3))) ^ set(names(stub.tools(0))) == {"mcp__one__extra", "mcp__one__fail"}
        question = stub.bodies[3]["messages" if provider is ANTHROPIC else "input"][-1]["content"]
        assert question.startswith("Second.\n\n[Tools since the last turn: ")
        assert "mcp__one__extra" in question
        assert "withdrawn (mcp__one__fail)" in question


async def test_the_end_of_the_tools_is_marked_for_anthropics_cache_and_nothing_else_is(
    provider: Provider, project: Project
) -> None:
    async with working(provider, project, [say("Hello.")]) as (agent, stub, _):
        await agent.turn("Hello?")
        marks = [tool.get("cache_control") for tool in stub.bodies[0]["tools"]]
    assert len(marks) > 1
    last = {"type": "ephemeral"} if provider is ANTHROPIC else None
    assert marks == [*[None] * (len(marks) - 1), last]


async def test_a_tool_that_takes_other_arguments_now_is_not_called_with_the_old_ones(
    provider: Provider, project: Project
) -> None:
    replies = [ask(Use("call_1", "mcp__one__reshape")), ask(Use("call_2", "mcp__one__fail")), say("done")]
    async with working(provider, project, replies) as (agent, stub, host):

        async def seen() -> None:
            async for snapshot in host.changes():
                tool = snapshot.catalog.tool("mcp__one__fail")
                if tool is not None and tool.input_schema.get("required"):
                    return

        stub.replies[1] = Reply(uses=replies[1].uses, first=seen)
        assert await agent.turn("Go.") == "done"
        assert "'mcp__one__fail' is not offered" in stub.results(2)[0]["text"]


async def test_a_call_without_an_answer_is_a_result_after_its_time(provider: Provider, project: Project) -> None:
    replies = [ask(Use("call_1", "mcp__one__hang")), ask(Use("call_2", "mcp__one__cancelled")), say("done")]
    async with working(provider, project, replies, call_timeout=0.3) as (agent, stub, _):
        assert await agent.turn("Go.") == "done"
        assert "did not answer within 0.3 s. It may have taken effect" in stub.results(1)[0]["text"]
        assert stub.results(2) == [{"id": "call_2", "error": False, "text": "hang"}]  # its server was told


async def test_a_turn_cancelled_in_a_call_leaves_nothing_and_the_conversation_goes_on(
    provider: Provider, project: Project
) -> None:
    replies = [
        ask(Use("call_1", "mcp__one__hang"), Use("call_2", "mcp__two__hang")),
        ask(Use("call_3", "mcp__one__cancelled"), Use("call_4", "mcp__two__cancelled")),
        say("done"),
    ]
    async with working(provider, project, replies) as (agent, stub, host):
        before = host.snapshot()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.turn, "Go.")
                assert await project.hangs() != await project.hangs()  # both
                scope.cancel()
        assert scope.cancelled_caught
        assert len(agent.messages) == 1  # the question; not a call without its result

        assert await agent.turn("Once more.") == "done"
        assert [result["text"] for result in stub.results(2)] == ["hang", "hang"]
        after = host.snapshot()
        assert after.catalog is before.catalog
        assert [server.pid for server in after.model.servers] == [server.pid for server in before.model.servers]


async def test_a_turn_cancelled_while_the_model_speaks_hangs_up(provider: Provider, project: Project) -> None:
    async with working(provider, project, [say("Once upon", hang=True), say("done")]) as (agent, stub, _):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.turn, "Go.")
                await stub.hanging.wait()
                scope.cancel()
        await stub.gone.wait()
        assert await agent.turn("Once more.") == "done"


async def test_a_connection_lost_in_the_midst_of_an_answer_is_tried_again(provider: Provider, project: Project) -> None:
    replies = [say("Once upon", broken=True), ask(*MEET), say("done", broken=True), say("done")]
    async with working(provider, project, replies) as (agent, stub, _):
        assert await agent.turn("Go.") == "done"
        assert stub.tried == 4


async def test_a_stream_runs_on_trio_as_well(project: Project) -> None:
    replies = [ask(*MEET, text="Let us see."), say("Once upon", hang=True)]
    async with working(ANTHROPIC, project, replies) as (agent, stub, host):
        request: dict[str, Any] = {
            "model": "m",
            "max_tokens": 9,
            "tools": host.snapshot().catalog.for_provider("anthropic"),
        }
        request["messages"] = [{"role": "user", "content": "Go."}]
        async with agent.client.messages.stream(**request) as stream:
            assert [text async for text in stream.text_stream] == ["Let us see."]
            assert (await stream.get_final_message()).stop_reason == "tool_use"
        with trio.CancelScope() as scope:
            async with agent.client.messages.stream(**request) as stream:
                async for text in stream.text_stream:
                    assert text == "Once upon"
                    scope.cancel()
        assert scope.cancelled_caught
        await stub.gone.wait()


async def test_the_sdk_asks_again_after_what_passes(provider: Provider, project: Project) -> None:
    replies = [Reply(status=429), Reply(status=500), ask(*MEET), Reply(status=500), say("done")]
    async with working(provider, project, replies) as (agent, stub, _):
        assert await agent.turn("Go.") == "done"
        assert (stub.tried, len(stub.bodies)) == (5, 2)


async def test_an_api_that_stays_broken_is_an_error_and_the_conversation_goes_on(
    provider: Provider, project: Project
) -> None:
    replies = [ask(*MEET), *[Reply(status=500)] * 3, say("done")]
    async with working(provider, project, replies) as (agent, stub, _):
        with pytest.raises(provider.error):
            await agent.turn("Go.")
        assert await agent.turn("Once more.") == "done"
        assert stub.tried == 5


async def test_a_model_that_only_calls_has_to_answer_in_the_end(provider: Provider, project: Project) -> None:
    replies = [ask(Use("call_1", "mcp__one__cancelled")), ask(Use("call_2", "mcp__one__cancelled")), say("well")]
    async with working(provider, project, replies, rounds=2) as (agent, stub, _):
        assert await agent.turn("Go.") == "well"
        choices = [body["tool_choice"] for body in stub.bodies]
    assert [choice["type"] if isinstance(choice, dict) else choice for choice in choices] == ["auto", "auto", "none"]


async def test_a_host_that_is_closed_is_no_result_for_the_model(provider: Provider, project: Project) -> None:
    async with working(provider, project, []) as (agent, _, host):
        catalog = host.snapshot().catalog
    call = SimpleNamespace(id="call_1", call_id="call_1", name="mcp__one__echo", input={}, arguments="{}")
    with pytest.raises(HostClosed):
        await agent.call(catalog, call)


async def test_a_call_that_was_cut_off_is_not_made(provider: Provider, project: Project) -> None:
    replies = [ask(Use("call_1", "mcp__one__die"), text="I shall", cut=True), say("done")]
    async with working(provider, project, replies) as (agent, _, host):
        assert "I shall" in await agent.turn("Go.")
        assert await agent.turn("Go on.") == "done"
        assert host.snapshot().model.server("one").restarts == 0


async def test_arguments_that_are_none_are_a_result(project: Project) -> None:
    uses = [
        Use("call_1", "mcp__one__echo", "{"),
        Use("call_2", "mcp__one__echo", "[1]"),
        Use("call_3", "mcp__one__fail", ""),
    ]
    async with working(OPENAI, project, [ask(*uses), say("done")]) as (agent, stub, _):
        assert await agent.turn("Go.") == "done"
        results = stub.results(1)
    assert ["the arguments are no JSON object" in result["text"] for result in results] == [True, True, False]
    assert "fail does not work" in results[2]["text"]


async def test_in_strict_mode_the_tools_are_strict(project: Project) -> None:
    replies = [ask(Use("call_1", "list_files", {"folder": None})), say("done")]
    async with working(OPENAI, project, replies, profile="openai-strict") as (agent, stub, _):
        assert await agent.turn("Go.") == "done"
        assert all(tool["strict"] for tool in stub.tools(0))
        assert not stub.results(1)[0]["error"]  # the null stands for what was left out


async def test_without_tools_none_are_sent(provider: Provider, project: Project) -> None:
    project.write()
    async with working(provider, project, [say("done")]) as (agent, stub, host):
        agent.host = host.view(exclude=["list_files"])
        assert await agent.turn("Go.") == "done"
        assert stub.bodies[0].keys().isdisjoint({"tools", "tool_choice"})


async def test_two_agents_on_one_host_each_have_their_own_tools(provider: Provider, project: Project) -> None:
    replies = [ask(MEET[0]), ask(MEET[0]), say("a"), say("b")]
    async with working(provider, project, replies) as (agent, stub, host):
        first = provider.module.Agent(agent.client, host.view(include=["one"]))
        second = provider.module.Agent(agent.client, host.view(include=["mcp__one__meet"], exclude=["list_files"]))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.turn, "Go.")
            nursery.start_soon(second.turn, "Go.")  # each waits for the other: in the tool
        assert {len(body["tools"]) for body in stub.bodies} == {9, 1}
