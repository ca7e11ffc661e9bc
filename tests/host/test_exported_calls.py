"""From the catalog to a provider and back: the name that went out is the tool that is called, the answer what it takes."""

from __future__ import annotations

from typing import Any

import pytest
from playbill.actors import NativeTool, ServerEntry, result_for_provider
from playbill.actors.model.config import Config
from playbill.actors.model.provider import PROVIDERS
from playbill.actors.testing import Script, ScriptedServers

from ..providers.sdk import check_answer, check_tools, names
from .conftest import Open

HOSTILE = ("a__b", "c d", "Case", "case", "mcp__x__y", "ünïcode", "x" * 200, "", "line\nend")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_a_model_calls_by_its_exported_name_reaches_the_tool(opened: Open, provider: str) -> None:
    servers = ScriptedServers(**{name: Script(HOSTILE) for name in ("a", "a__b", "sérver two")})
    entries = tuple(ServerEntry(name, command=name) for name in ("a", "a__b", "sérver two"))
    async with opened(servers, Config(entries)) as host:
        await host.ready(timeout=5)
        catalog = host.snapshot().catalog
        sent = catalog.for_provider(provider)
        check_tools(provider, sent)
        assert len(catalog.tools) == 3 * len(HOSTILE)
        for tool, name in zip(catalog.tools, names(provider, sent), strict=True):
            reached: Any = await host.call(name, {"from": tool.server}, catalog=catalog)
            assert reached == {"tool": tool.bare, "arguments": {"from": tool.server}}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_a_native_tool_returns_goes_back_to_the_model(opened: Open, provider: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    async def doubled(a: int) -> dict[str, int]:
        return {"doubled": 2 * a}

    double = NativeTool("double", "Doubles a number.", schema, doubled)
    async with opened(ScriptedServers(), native_tools=[double]) as host:
        (name,) = names(provider, host.snapshot().catalog.for_provider(provider))
        for arguments, expected in (({"a": 21}, "42"), ({"b": 1}, "unexpected keyword")):
            result = await host.call(name, arguments)
            answer = result_for_provider(result, provider, call_id="call_1", name=name)
            check_answer(provider, answer)
            assert expected in str(answer)
