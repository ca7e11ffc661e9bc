"""What a URL without a type is shown as: what it was last reached over, and not what it might have been."""

from __future__ import annotations

from collections.abc import Callable

from playbill.actors.model.snapshot import ServerState

from .conftest import FOR_ONE_LIFE, OnStage
from .server import Web, serving


async def test_a_url_of_the_older_transport_is_shown_as_what_it_was_last_reached_over(on_stage: OnStage) -> None:
    shown: list[str] = []

    def until(phase: str) -> Callable[[ServerState], bool]:
        def holds(state: ServerState) -> bool:
            if not shown or shown[-1] != state.kind:
                shown.append(state.kind)
            return state.phase == phase

        return holds

    async with serving(Web("sse")) as web, on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.until(until("ready"))
        web.streams[0].ended.set()
        await stage.until(until("backing_off"))
        assert shown[-1] == "sse"
        await stage.host.restart("bad")
        await stage.until(until("ready"))
        # Not before it was met, and no more to and fro.
        assert shown in (["http", "sse"], ["sse"])


async def test_a_url_of_streamable_http_is_shown_as_that(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        assert stage.state().kind == "http"
