"""What a server may ask of the embedding program, and tell it: in both eras, in memory and in another process.

The features themselves are in `checks`. In memory each has a host of its own; of a server in a process one host plays all.
"""

from __future__ import annotations

import logging

import pytest
import trio
from playbill.actors import Asker, ClientHandlers

from .checks import CHECKS
from .conftest import PATIENCE, Embedder, Open, said

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

IN_MEMORY = ["memory-legacy", "memory-modern"]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("stage", IN_MEMORY)
async def test_in_memory(opened: Open, era: str, check: str) -> None:
    embedder = Embedder()
    async with opened(embedder.handlers()) as host:
        await CHECKS[check](host, embedder, era)


@pytest.mark.parametrize("stage", ["stdio-legacy", "stdio-modern", "http-legacy", "http-modern"])
async def test_in_another_process(opened: Open, era: str) -> None:
    embedder = Embedder()
    async with opened(embedder.handlers()) as host:
        for check in CHECKS.values():
            await check(host, embedder, era)


@pytest.mark.parametrize("stage", IN_MEMORY)
async def test_what_has_no_handler_is_not_announced_and_is_refused(opened: Open) -> None:
    async with opened() as host:
        assert await said(host, "announced") == ""
        for tool in ("sample", "elicit", "elicit_url", "roots"):
            result = await host.call_tool("s", tool, {"text": "x"} if tool == "sample" else {}, timeout=PATIENCE)
            assert result.is_error
            assert "not support" in result.content[0].text
        assert await said(host, "steps") == "done"
    async with opened(ClientHandlers(roots=[])) as host:
        assert await said(host, "announced") == "roots"
    async with opened(ClientHandlers(elicitation=Embedder().elicitation)) as host:
        assert await said(host, "announced") == "elicitation"


@pytest.mark.parametrize("stage", IN_MEMORY)
async def test_sampling_with_tools_is_asked_for_by_word_only(opened: Open) -> None:
    embedder = Embedder()
    async with opened(embedder.handlers(sampling_tools=False)) as host:
        assert await said(host, "announced") == "elicitation roots sampling"
        result = await host.call_tool("s", "sample_with_tools", timeout=PATIENCE)
        assert result.is_error
        assert "not support" in result.content[0].text
        assert embedder.asked == []
        assert await said(host, "sample", text="hear") == "parrot: HEAR"


@pytest.mark.parametrize("stage", IN_MEMORY)
async def test_no_record_quotes_a_result_or_what_a_person_answered(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(asker: Asker, params: object) -> object:
        await trio.lowlevel.checkpoint()
        return {"action": "accept", "content": {"word": [{"open": "sesame"}]}}

    caplog.set_level(logging.DEBUG)
    async with opened(ClientHandlers(elicitation=answer)) as host:
        bad = await host.call_tool("s", "wrong", {"row": "K"}, timeout=PATIENCE)
        assert bad.meta is not None
        assert "many" in bad.meta["playbill/outputInvalid"]
        await host.call_tool("s", "elicit", timeout=PATIENCE)
    told = [record for record in caplog.records if record.name.startswith("playbill")]
    assert any("is not what its output schema says" in record.getMessage() for record in told)
    assert any("elicitation handler returned what is no answer" in record.getMessage() for record in told)
    assert {getattr(record, "server", None) for record in told if "output schema" in record.getMessage()} == {"s"}
    assert not any("many" in record.getMessage() or "sesame" in record.getMessage() for record in told)
