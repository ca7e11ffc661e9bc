"""All tools of real servers, exported for every provider: by its SDK's types, and by its rules as a JSON Schema.

Nine servers by default; sixteen with ``PLAYBILL_REAL_SERVERS=all``. Nothing they say is kept here. ``-s`` shows the figures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import Budget, Catalog, ServerState, open_host
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.projection import project
from playbill.actors.model.snapshot import ToolState
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

from ..providers.rules import violations
from ..providers.sdk import PROVIDERS, check_tools, names
from .conftest import ALL_SERVERS, Installed

pytestmark = pytest.mark.real

PATIENCE = 180.0
"""Seconds, for sixteen programs that start at once."""

STRICT = PROFILES["openai"].in_strict_mode()

FORMS = {
    "anthropic-managed": "anthropic",
    "vertex": "gemini",
    "xai": "openai",
    "vscode": "mcp",
    "windsurf": "mcp",
    "cursor": "mcp",
}
"""The form in which tools are sent under a profile that has none of its own; an editor hands them on."""


def _configured(installed: Installed, folder: Path) -> dict[str, dict[str, Any]]:
    new, old, node, work = installed.new, installed.old, installed.node, str(installed.work)
    servers: dict[str, dict[str, Any]] = {
        "time": {"command": str(new / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": str(new / "mcp-server-git"), "args": ["--repository", work]},
        "excel": {"command": str(new / "excel-mcp-server"), "args": ["stdio"]},
        "sqlite": {"command": str(old / "mcp-server-sqlite"), "args": ["--db-path", str(folder / "a.db")]},
        "everything": {"command": str(node / "mcp-server-everything"), "args": ["stdio"]},
        "filesystem": {"command": str(node / "mcp-server-filesystem"), "args": [work]},
        "memory": {
            "command": str(node / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        },
        "sequential-thinking": {"command": str(node / "mcp-server-sequential-thinking")},
        "notion": {"command": str(node / "notion-mcp-server"), "env": {"NOTION_TOKEN": "ntn_none"}},
    }
    if ALL_SERVERS:
        servers |= {
            "fetch": {"command": str(old / "mcp-server-fetch")},
            "playwright": {"command": str(node / "playwright-mcp")},
            "chrome-devtools": {"command": str(node / "chrome-devtools-mcp")},
            "context7": {"command": str(node / "context7-mcp")},
            "github": {"command": str(node / "mcp-server-github"), "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "none"}},
            "firecrawl": {"command": str(node / "firecrawl-mcp"), "env": {"FIRECRAWL_API_KEY": "none"}},
            "tavily": {"command": str(node / "tavily-mcp"), "env": {"TAVILY_API_KEY": "none"}},
        }
    return servers


def _advertised(server: ServerState) -> tuple[ToolDef, ...]:
    return tuple(
        ToolDef(tool.bare, title=tool.title, description=tool.description, input_schema=tool.input_schema)
        for tool in server.tools
    )


def _projected(advertised: dict[str, tuple[ToolDef, ...]], profile: Profile) -> tuple[Catalog, list[ToolState]]:
    """A catalog of what servers advertised, and all its tools with what was done to them."""
    statuses = {
        name: ServerStatus(
            lifecycle=Lifecycle(stage="running", generation=1),
            report=Report(generation=1, connected=True, ready=True),
            tools=tools,
            tools_generation=1,
        )
        for name, tools in advertised.items()
    }
    config = Config(tuple(ServerEntry(name, command="run") for name in advertised))
    snapshot = project(ConfigState(1, config), statuses, (), Budget(None), profile=profile)
    return snapshot.catalog, [tool for server in snapshot.model.servers for tool in server.tools]


def _check(provider: str, catalog: Catalog, **rules: bool) -> int:
    """Export a catalog and check it in every way; the bytes of its JSON."""
    sent = catalog.for_provider(provider)
    assert names(provider, sent) == [tool.wire_name for tool in catalog.tools]
    check_tools(provider, sent)
    assert violations(provider, sent, **rules) == []
    return len(json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode())


async def test_the_tools_of_real_servers_go_to_every_provider(installed: Installed, tmp_path: Path) -> None:
    servers = _configured(installed, tmp_path)
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    async with open_host(path, budget=Budget(None)) as host:
        readiness = await host.ready(timeout=PATIENCE)
        assert readiness.missing == {}
        model, catalog = host.snapshot().model, host.snapshot().catalog
    assert len(model.servers) == (16 if ALL_SERVERS else 9)

    # What the host itself made, for all providers at once, as far as they take so many.
    for provider in PROVIDERS:
        _check(provider, catalog, portable=True)

    # All tools of each server, for each provider's own profile.
    advertised = {server.name: _advertised(server) for server in model.servers}
    assert all(advertised.values())
    total = sum(map(len, advertised.values()))
    size = sum(len(json.dumps(tool.input_schema)) for tools in advertised.values() for tool in tools)
    print(f"\n{len(advertised)} servers, {total} tools, {size:,} bytes of schemas")
    plans = [(provider, PROFILES[provider], {}) for provider in PROVIDERS]
    # Nine servers' tools are few enough for the host's own catalog above; sixteen are not.
    plans += [(provider, PORTABLE, {"portable": True}) for provider in (PROVIDERS if ALL_SERVERS else ("openai",))]
    plans += [("openai", STRICT, {"strict": True}), ("openai-responses", STRICT, {"strict": True})]
    plans += [(form, PROFILES[name], {}) for name, form in FORMS.items()]
    assert {profile.name for _, profile, _ in plans} == PROFILES.keys()
    for provider, profile, rules in plans:
        bytes_sent = mended = sent = trimmed = 0
        refused: list[str] = []
        for name, tools in advertised.items():
            made, states = _projected({name: tools}, profile)
            bytes_sent += _check(provider, made, **rules)
            sent += len(made.tools)
            mended += sum(bool(state.mended) for state in states)
            trimmed += len(made.trimmed)
            assert not made.trimmed or len(made.tools) == profile.max_tools
            refused += [
                f"{name}.{each.bare}: {each.rule} {each.reason}" for each in states if each.verdict == "quarantined"
            ]
            assert all(each.rule and each.reason for each in states if each.verdict == "quarantined")
        print(
            f"{provider:17} profile {profile.name:17} {sent} tools, {bytes_sent:,} bytes, {mended} mended, "
            f"{trimmed} trimmed; refused: {refused}"
        )
        assert sent + trimmed + len(refused) == total
        if not profile.strict:
            assert refused == []  # a release of theirs that breaks this is worth a look
    assert _projected(advertised, PROFILES["anthropic"])[0].digest  # without a limit, all of them together
