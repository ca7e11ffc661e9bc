"""The stream of what somebody follows (2026-07-28): ended by its server, it is opened again, and may have missed some."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, RequestRefused, ServerEntry, open_host
from playbill.actors.edge.wire.sdk import import_sdk

from . import server as made


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    import_sdk()
    return trio.testing.MockClock(autojump_threshold=0)


async def test_a_stream_of_updates_that_ended_is_opened_again_and_may_have_missed_some(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp.client.subscriptions import SubscriptionLost
    from playbill.actors.edge.wire import library

    real, opened, breaks = library.listen, 0, trio.Event()

    class Breaking:
        """A stream of the SDK's that is lost when it is told to."""

        def __init__(self, session: Any, **what: Any) -> None:
            self.inner = real(session, **what)

        async def __aenter__(self) -> Any:
            nonlocal opened
            opened += 1
            self.stream = await self.inner.__aenter__()
            return self

        async def __aexit__(self, *raised: Any) -> Any:
            return await self.inner.__aexit__(*raised)

        @property
        def honored(self) -> Any:
            return self.stream.honored

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            if opened == 1:
                await breaks.wait()
                raise SubscriptionLost("it was cut")
            return await self.stream.__anext__()

    monkeypatch.setattr(library, "listen", Breaking)
    async with open_host(Config((ServerEntry("s", server=made.make()),))) as host:
        assert (await host.ready(timeout=30)).missing == {}
        with trio.fail_after(60):
            async with host.subscribe("s", "stage://notes") as updates:
                breaks.set()
                update = await anext(updates)
                assert (update.uri, update.missed, opened) == ("stage://notes", True, 2)
                await host.call_tool("s", "write", {"text": "exit"})
                assert not (await anext(updates)).missed


def listening(monkeypatch: pytest.MonkeyPatch, module: Any, refuse: Callable[[int, Any], str | None]) -> None:
    """Streams of the SDK's that are refused, or never agreed to, as it is said: by their number, and what they are for."""
    from mcp.shared.exceptions import MCPError

    real, opened = module.listen, 0

    @asynccontextmanager
    async def listen(session: Any, **what: Any) -> AsyncIterator[Any]:
        nonlocal opened
        opened += 1
        answer = refuse(opened, what)
        if answer == "silence":
            await trio.sleep_forever()
        if answer is not None:
            raise MCPError(code=-32000, message=answer)
        async with real(session, **what) as stream:
            yield stream

    monkeypatch.setattr(module, "listen", listen)


@pytest.mark.parametrize("how", ["silence", "not that one"])
async def test_a_resource_that_no_stream_is_given_for_ends_none_of_the_others(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    from playbill.actors.edge.wire import library

    listening(
        monkeypatch, library, lambda number, what: how if "stage://odd" in what["resource_subscriptions"] else None
    )
    async with open_host(Config((ServerEntry("s", server=made.make()),))) as host:
        assert (await host.ready(timeout=30)).missing == {}
        async with host.subscribe("s", "stage://notes") as updates, trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(RequestRefused, match="no answer within 30 s" if how == "silence" else how):
                    async with host.subscribe("s", "stage://odd", timeout=1000):
                        pass

            nursery.start_soon(ask)
            await trio.sleep(1)
            async with host.subscribe("s", "stage://other"):
                await host.call_tool("s", "write", {"text": "exit"})
                assert not (await anext(updates)).missed
            await trio.sleep(100)
            await host.call_tool("s", "write", {"text": "enter"})
            with trio.fail_after(10):
                assert not (await anext(updates)).missed


@pytest.mark.parametrize("of", ["resources", "lists"])
async def test_a_stream_that_is_refused_after_it_was_lost_is_asked_for_again(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    from mcp.client.subscriptions import SubscriptionLost
    from playbill.actors.edge.wire import library, link

    breaks, opened = trio.Event(), 0

    def refuse(number: int, what: Any) -> str | None:
        nonlocal opened
        opened = number
        return "not now" if number in (2, 3) else None

    module: Any = library if of == "resources" else link
    listening(monkeypatch, module, refuse)
    inner = module.listen

    @asynccontextmanager
    async def breaking(session: Any, **what: Any) -> AsyncIterator[Any]:
        async with inner(session, **what) as stream:
            if opened > 1:
                yield stream
                return
            yield Once(stream)

    class Once:
        def __init__(self, stream: Any) -> None:
            self.honored = stream.honored

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> Any:
            await breaks.wait()
            raise SubscriptionLost("it was cut")

    monkeypatch.setattr(module, "listen", breaking)
    async with open_host(Config((ServerEntry("s", server=made.make()),))) as host:
        assert (await host.ready(timeout=30)).missing == {}
        async with host.subscribe("s", "stage://notes") as updates:
            breaks.set()
            await trio.sleep(60)
            assert opened == 4
            if of == "resources":
                assert (await anext(updates)).missed
